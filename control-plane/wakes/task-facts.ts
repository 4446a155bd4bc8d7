import type { Db } from '../db/open.ts'
import type { AgentRow } from '../resources/agents/store.ts'
import { openGatesOfTasks } from '../resources/approvals/open-gates.ts'
import { startsLater } from '../resources/tasks/rules.ts'
import { hasOpenBlocker } from '../resources/tasks/store.ts'
import type { TaskFacts } from './admission.ts'
import type { WakeTask } from './wake.ts'

/** Reads the facts of a task that admission needs. */
export async function loadTaskFacts(
  db: Db,
  task: WakeTask,
  wake: { agent: AgentRow; triggerSource: string; now: number; workflowRunId: string | null },
): Promise<TaskFacts> {
  const gates = (await openGatesOfTasks(db, [task.id])).get(task.id) ?? []
  // A workflow's own steps are not held by what it asks.
  const gate = gates.find(({ workflowRunId }) => workflowRunId === null || workflowRunId !== wake.workflowRunId)
  return {
    key: task.key,
    isFinished: task.status === 'done' || task.status === 'cancelled' || task.archivedAt !== null,
    startsLater: startsLater(task, wake.now),
    hasOpenBlocker: await hasOpenBlocker(db, task.id),
    openGate: gate === undefined ? null : { kind: gate.kind, id: gate.id },
    isOthers: wake.triggerSource === 'assignment' && task.assigneeAgentId !== wake.agent.id,
  }
}
