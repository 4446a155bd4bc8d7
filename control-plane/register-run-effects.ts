import { registerRunEffects } from './run/effects.ts'
import { closeHoldsOfRun } from './resources/approvals/steps/run-ended.ts'
import { followLostSession, followFailure, followLimit } from './run/wakes/successors.ts'
import { followMemoryLoss } from './run/wakes/more-memory.ts'
import { forgetTold } from './resources/platform-changes/steps/forget-told.ts'
import { postReply } from './resources/conversations/steps/reply.ts'
import { recordEndedEvent } from './resources/runs/steps/ended-event.ts'
import { endStep } from './resources/workflows/steps/step-ended.ts'
import { moveStartedTask, recordRunEnd } from './resources/tasks/steps/run-of-task.ts'

/**
 * Registers the effects of the start and the end of a run, in this order. A new part adds its effect to these lists.
 */
export function registerAllRunEffects(): void {
  registerRunEffects({
    started: [moveStartedTask],
    // Tasks are locked before conversations, as everywhere.
    ended: [
      closeHoldsOfRun,
      forgetTold,
      recordRunEnd,
      postReply,
      followLimit,
      followFailure,
      followMemoryLoss,
      followLostSession,
      endStep,
      recordEndedEvent,
    ],
  })
}
