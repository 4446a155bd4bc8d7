import type { RunId, TaskId } from '../../../../shared/lib/ids.ts'
import type { z } from 'zod'
import type { included } from '../../../../shared/api/approval-includes.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import type { Moment } from '../../../run/placement/facts.ts'
import { presentRuns } from '../../runs/steps/present.ts'
import { lookUpRun } from '../../runs/lookup.ts'
import { lookUpTask } from '../../tasks/lookup.ts'

type Included = { [K in keyof typeof included]?: z.input<(typeof included)[K]> }

/**
 * The records that `include` adds to an approval or question; null for those that do not exist or that the caller may
 * not see.
 */
export async function includedIn(
  db: Db,
  hold: { taskId: TaskId | null; runId: RunId | null; sessionId: string | null },
  wanted: readonly string[],
  { caller, moment }: { caller: Caller; moment: Moment },
): Promise<Included> {
  const isWanted = (part: string) => wanted.includes(part)
  const found =
    hold.runId === null || !(isWanted('run') || isWanted('session')) ? null : await lookUpRun(db, caller, hold.runId)
  const run = found?.isVisible === true ? found.run : null
  const task = hold.taskId === null || !isWanted('task') ? null : await lookUpTask(db, caller, hold.taskId)
  const { sessionId } = hold
  return {
    ...(isWanted('task') && {
      task: task && { object: 'task' as const, id: task.id, key: task.key, title: task.title, status: task.status },
    }),
    ...(isWanted('run') && { run: run && ((await presentRuns(db, [run], moment))[0] ?? null) }),
    ...(isWanted('session') && {
      session:
        sessionId === null || run === null
          ? null
          : { object: 'session' as const, id: sessionId, harness: run.harness, runId: run.id },
    }),
  }
}
