import type { RunEffect } from '../../../run/effects.ts'
import { recordActivity, recordStatusChanged } from '../record.ts'
import { taskWithStatus } from '../rules.ts'
import { replaceTask, findTaskById } from '../store.ts'

// The effects of a run's start and end on its task.

type Happening = Parameters<RunEffect>

/** Wakes by which somebody looks at a task without taking up the work. */
const onlookers: readonly string[] = ['mention', 'task_watched', 'channel_message']

/** The start of work moves an open task to `in_progress`. Done in the claim of the run, so it must not fail. */
export async function moveStartedTask(...[tx, run, { world }]: Happening): Promise<void> {
  const task = run.taskId === null ? null : await findTaskById(tx, run.taskId, true)
  if (task === null) return
  const of = { taskId: task.id, actor: { type: 'agent', id: run.agentRef }, world } as const
  const { triggerSource } = run
  await recordActivity(tx, { ...of, kind: 'run.started', data: { runId: run.id, triggerSource } })
  const isOthers = task.assigneeAgentRef !== null && task.assigneeAgentRef !== run.agentRef
  if (task.status !== 'open' || task.archivedAt !== null || isOthers || onlookers.includes(triggerSource)) return
  const moved = await replaceTask(tx, task, taskWithStatus(task, 'in_progress', world.now()))
  const data = { from: task.status, to: 'in_progress', runId: run.id }
  await recordActivity(tx, { ...of, kind: 'task.status_changed', data })
  await recordStatusChanged(tx, moved, { from: task.status, world })
}

export async function recordRunEnd(...[tx, run, { world, exitReason }]: Happening): Promise<void> {
  if (run.taskId === null || (await findTaskById(tx, run.taskId)) === null) return
  const actor = { type: 'agent', id: run.agentRef } as const
  await recordActivity(tx, { taskId: run.taskId, kind: 'run.ended', actor, data: { runId: run.id, exitReason }, world })
}
