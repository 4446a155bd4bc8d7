import { systemActor } from '../resources/tasks/rules.ts'
import { claimDueStart, findTaskById, listDueStarts } from '../resources/tasks/store.ts'
import { wakeForAssignment } from '../resources/tasks/wakes.ts'
import { oneByOne } from './one-by-one.ts'
import type { Sweep } from './sweeper.ts'

/**
 * Wakes the assignees of tasks whose scheduled start has come (document 2, `startAt`), each once: the time is taken off the
 * task in the transaction that asks for the wake.
 */
export function scheduledTasksSweep(options: { everyMs: number; poke(): void }): Sweep {
  return {
    name: 'scheduled_tasks',
    everyMs: options.everyMs,
    async run({ root, now, world, log }) {
      const due = await listDueStarts(root, now, 1_000)
      await oneByOne({ log }, due, (task) =>
        root.transaction(async (tx) => {
          if (!(await claimDueStart(tx, task))) return
          const current = await findTaskById(tx, task.id)
          if (current === null) return
          const reason = 'The scheduled start of this task has come.'
          const key = `scheduled_start:${task.id}:${task.wakeAt}`
          await wakeForAssignment(tx, { task: current, actor: systemActor, world, reason, key })
        }),
      )
      if (due.length > 0) options.poke()
    },
  }
}
