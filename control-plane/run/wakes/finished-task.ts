import { idFrom, type TaskId, type WorkflowRunId } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { findRun, type RunStep } from '../../resources/runs/store.ts'
import { findLastActivity } from '../../resources/tasks/activity-store.ts'
import { isFinished } from '../../resources/tasks/rules.ts'
import { findWorkflowRunInWorkspace } from '../../resources/workflows/run-store.ts'
import { stepWorksOn, type FinishedBy } from './admission.ts'
import type { WakeTask } from './wake.ts'

/**
 * Tells whether a wake finds its task finished or in the archive, so that there is nothing to do. A step of a workflow may work on such a
 * task (`stepWorksOn`).
 */
export async function isOver(db: Db, task: WakeTask, step: RunStep | null): Promise<boolean> {
  if (!isFinished(task) && task.archivedAt === null) return false
  const run = step === null ? null : await findWorkflowRunInWorkspace(db, task.workspaceId, step.workflowRunId)
  if (run === null || run.taskId !== task.id) return true
  const finishedBy = isFinished(task) ? await whoFinished(db, task.id, run.id) : null
  return !stepWorksOn(task, { beganAt: run.createdAt, finishedBy })
}

/** Finds who finished the task, by the last change of its status in the task's history. */
async function whoFinished(db: Db, taskId: TaskId, workflowRunId: WorkflowRunId): Promise<FinishedBy> {
  const moved = await findLastActivity(db, { taskId, kind: 'task.status_changed' })
  if (moved?.actorType === 'system') return 'platform'
  const runId = moved?.data['runId']
  const run = typeof runId === 'string' ? await findRun(db, idFrom(runId)) : null
  return run?.workflowRunId === workflowRunId ? 'own_step' : 'somebody'
}
