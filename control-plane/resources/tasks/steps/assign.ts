import type { AgentRef, RunId } from '../../../../shared/lib/ids.ts'
import { mostUnassignedNamed } from '../../../../shared/api/agent-lifecycle.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { publish } from '../../../db/transaction.ts'
import type { AgentRow } from '../../agents/store.ts'
import { causeOf } from '../../runs/cause.ts'
import { listLiveOfTask } from '../../runs/live-store.ts'
import { cancelWaitingRuns } from './transition.ts'
import { recordActivity, recordOfAll } from '../record.ts'
import { systemActor, wakeAtOf, type Actor } from '../rules.ts'
import { findTaskById, listUnfinishedOf, removeAssignee, replaceTask, type NamedTask, type TaskRow } from '../store.ts'
import { claimUnassignment, insertUnassignment, removeUnassignment } from '../unassignment-store.ts'
import { wakeForAssignment } from './wakes.ts'

export interface Assignment {
  task: TaskRow
  /** null: nobody. */
  agent: Pick<AgentRow, 'id'> | null
  actor: Actor
  /** The run that asks for it. */
  byRunId: RunId | null
  world: World
}

/**
 * Assigns the task to an agent and wakes it, or to nobody. A run that executes keeps the task where it is
 * (`task_has_active_run`), unless it hands the task on itself: the wake of the other agent waits for its end then. A run that
 * only waits is ended, as what it was to do is now another's. Giving it to whom has it changes nothing.
 */
export async function assignTask(tx: Tx, assignment: Assignment): Promise<TaskRow> {
  const { task, agent, byRunId, world } = assignment
  if (task.archivedAt !== null && agent !== null) fail('task_archived')
  if (task.assigneeAgentRef === (agent?.id ?? null)) return task
  const live = await listLiveOfTask(tx, task.id)
  const active = live.find((run) => run.status === 'running' && run.id !== byRunId)
  if (active !== undefined) fail('task_has_active_run', { details: { runId: active.id } })
  await cancelWaitingRuns(tx, { task, world, reason: 'The task was given to another.' })
  const before = (await findTaskById(tx, task.id, true)) ?? fail('task_not_found', { param: 'id' })
  return giveTo(tx, { ...assignment, task: before })
}

async function giveTo(tx: Db, { task, agent, actor, world }: Omit<Assignment, 'byRunId'>): Promise<TaskRow> {
  const now = world.now()
  const assignedByUuid = agent === null ? null : await causeOf(tx, actor.id)
  const changed = { ...task, assigneeAgentRef: agent?.id ?? null, assignedByUuid, updatedAt: now }
  const given = await replaceTask(tx, task, { ...changed, wakeAt: wakeAtOf(changed, now) })
  const kind = agent === null ? 'task.unassigned' : 'task.assigned'
  const data = { from: task.assigneeAgentRef, to: given.assigneeAgentRef }
  await recordActivity(tx, { taskId: task.id, kind, actor, data, world })
  await wakeForAssignment(tx, { task: given, actor, world })
  return given
}

/** Taking an agent off one costs some tenths of a millisecond, in which a SQLite database does nothing else. */
const atOnce = 100

/** The name of the job that goes on with taking a deleted agent off its tasks. */
export const unassignmentJob = 'unassign_tasks'

/**
 * Takes a deleted agent off its open tasks and returns these: off the first here, off the others one batch after another once it
 * is committed. Its runs are ended by whoever deletes it.
 */
export async function unassignTasks(
  tx: Tx,
  { agent, world }: { agent: AgentRow; world: World },
): Promise<{ tasks: NamedTask[]; hasMore: boolean }> {
  const { id: agentRef, workspaceId } = agent
  const tasks = await listUnfinishedOf(tx, agentRef, mostUnassignedNamed + 1)
  await takeOff(tx, tasks.slice(0, atOnce), { agentRef, world })
  if (tasks.length > atOnce) {
    const at = world.now()
    await insertUnassignment(tx, { agentRef, workspaceId, createdAt: at })
    const payload = { job: unassignmentJob, workspaceId }
    await publish(tx, { topic: 'job.requested', key: agentRef, payload, at })
  }
  return { tasks: tasks.slice(0, mostUnassignedNamed), hasMore: tasks.length > mostUnassignedNamed }
}

/** Takes a deleted agent off some more of its tasks. `taken`: it is done already, or somebody else is at it. */
export async function goOnUnassigning(tx: Tx, agentRef: AgentRef, world: World): Promise<'more' | 'done' | 'taken'> {
  if ((await claimUnassignment(tx, agentRef)) === null) return 'taken'
  const tasks = await listUnfinishedOf(tx, agentRef, atOnce + 1)
  await takeOff(tx, tasks.slice(0, atOnce), { agentRef, world })
  if (tasks.length > atOnce) return 'more'
  await removeUnassignment(tx, agentRef)
  return 'done'
}

async function takeOff(
  tx: Tx,
  tasks: readonly NamedTask[],
  { agentRef, world }: { agentRef: AgentRef; world: World },
): Promise<void> {
  if (tasks.length === 0) return
  const ids = tasks.map(({ id }) => id)
  await removeAssignee(tx, ids, world.now())
  const off = { kind: 'task.unassigned', actor: systemActor, data: { from: agentRef, to: null }, world } as const
  await recordOfAll(
    tx,
    ids.map((taskId) => ({ ...off, taskId })),
  )
}
