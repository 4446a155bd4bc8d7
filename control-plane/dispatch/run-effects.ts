import type { World } from '../../shared/lib/world.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { Db } from '../db/open.ts'
import { closeGatesOfRun } from '../resources/approvals/run-ended.ts'
import { postReply } from '../resources/conversations/reply.ts'
import type { RunRow } from '../resources/runs/store.ts'
import { moveStartedTask, recordRunEnd } from '../resources/tasks/run-effects.ts'

/** What else happens, in the same transaction, when a run starts or ends. A new part adds its effect to these lists. */
export type RunEffect = (
  db: Db,
  /** As it was before its ending; with a start, as it is now. */
  run: RunRow,
  happening: {
    at: number
    world: World
    /** null: the run starts. */
    exitReason: ExitReason | null
  },
) => Promise<void>

export const onRunStarted: readonly RunEffect[] = [moveStartedTask]
// Tasks are locked before conversations, as everywhere.
export const onRunEnded: readonly RunEffect[] = [closeGatesOfRun, recordRunEnd, postReply]
