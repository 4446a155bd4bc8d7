import { fail } from '../../../../shared/api/errors.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import type { AgentRow } from '../../agents/store.ts'
import { causeOf } from '../../runs/cause.ts'
import { listLiveOfTask } from '../../runs/live-store.ts'
import { cancelWaitingRuns } from './transition.ts'
import { recordActivity, recordOfAll } from '../record.ts'
import { systemActor, wakeAtOf, type Actor } from '../rules.ts'
import { replaceTask, findTaskById, removeAssignee, type TaskRow } from '../store.ts'
import { wakeForAssignment } from './wakes.ts'

export interface Assignment {
  task: TaskRow
  /** null: nobody. */
  agent: Pick<AgentRow, 'id'> | null
  actor: Actor
  /** The run that asks for it. */
  byRunId: string | null
  world: World
}

/**
 * Assigns the task to an agent and wakes it, or to nobody. A run that executes keeps the task where it is
 * (`task_has_active_run`), unless it hands the task on itself: the wake of the other agent waits for its end then. A run that
 * only waits is ended, as what it was to do is now another's. Giving it to whom has it changes nothing.
 */
export async function assignTask(tx: Db, assignment: Assignment): Promise<TaskRow> {
  const { task, agent, byRunId, world } = assignment
  if (task.archivedAt !== null && agent !== null) fail('task_archived')
  if (task.assigneeAgentId === (agent?.id ?? null)) return task
  const live = await listLiveOfTask(tx, task.id)
  const active = live.find((run) => run.status === 'running' && run.id !== byRunId)
  if (active !== undefined) fail('task_has_active_run', { details: { runId: active.id } })
  await cancelWaitingRuns(tx, { task, world, reason: 'The task was given to another.' })
  const before = (await findTaskById(tx, task.id, true)) ?? fail('task_not_found', { param: 'id' })
  return giveTo(tx, { ...assignment, task: before })
}

async function giveTo(tx: Db, { task, agent, actor, world }: Omit<Assignment, 'byRunId'>): Promise<TaskRow> {
  const now = world.now()
  const assignedByUserId = agent === null ? null : await causeOf(tx, actor.id)
  const changed = { ...task, assigneeAgentId: agent?.id ?? null, assignedByUserId, updatedAt: now }
  const given = await replaceTask(tx, task, { ...changed, wakeAt: wakeAtOf(changed, now) })
  const kind = agent === null ? 'task.unassigned' : 'task.assigned'
  const data = { from: task.assigneeAgentId, to: given.assigneeAgentId }
  await recordActivity(tx, { taskId: task.id, kind, actor, data, world })
  await wakeForAssignment(tx, { task: given, actor, world })
  return given
}

/** Takes a deleted agent off its open tasks and returns these. Its runs are ended by whoever deletes it. */
export async function unassignTasks(
  tx: Db,
  { agent, world }: { agent: AgentRow; world: World },
): Promise<{ id: string; key: string; title: string }[]> {
  const { id: agentId, workspaceId } = agent
  // There may be thousands: each by itself would hold up who else writes for half a minute.
  const tasks = await removeAssignee(tx, { workspaceId, agentId, at: world.now() })
  const data = { from: agentId, to: null }
  const off = { kind: 'task.unassigned', actor: systemActor, data, world } as const
  await recordOfAll(
    tx,
    tasks.map(({ id: taskId }) => ({ ...off, taskId })),
  )
  return tasks
}
