import { inPages } from '../db/in-pages.ts'
import type { Tx } from '../db/open.ts'
import { systemActor } from '../resources/tasks/rules.ts'
import { claimDueStart, findTaskById, listDueStarts, type DueStart } from '../resources/tasks/store.ts'
import { wakeForAssignment } from '../resources/tasks/steps/wakes.ts'
import type { Sweep, SweepContext } from './sweeper.ts'
import { inTransaction } from '../db/transaction.ts'

const pageSize = 200

/**
 * Wakes the assignees of tasks whose scheduled start (`startAt`) has come, once each: the same transaction requests the
 * wake and removes the time from the task.
 */
export function scheduledTasksSweep(options: { everyMs: number }): Sweep {
  return {
    name: 'scheduled_tasks',
    everyMs: options.everyMs,
    async run(context) {
      const { root, now, lines } = context
      for await (const page of inPages<DueStart>(pageSize, (next) => listDueStarts(root, { now, ...next })))
        for (const task of page) lines.add(task.workspaceId, () => startOne(context, task), task.id)
    },
  }
}

async function startOne({ root, world }: SweepContext, task: DueStart): Promise<void> {
  const start = async (tx: Tx) => {
    if (!(await claimDueStart(tx, task))) return
    const current = await findTaskById(tx, task.id)
    if (current === null) return
    const reason = 'The scheduled start of this task has come.'
    const key = `scheduled_start:${task.id}:${task.wakeAt}`
    await wakeForAssignment(tx, { task: current, actor: systemActor, world, reason, key })
  }
  await inTransaction(root, start, { turns: [task.workspaceId] })
}
