import type { RunId } from '../../../../shared/lib/ids.ts'
import { asStorable } from '../../../../shared/lib/storable.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { ExitReason } from '../../../../shared/runs/exit-reasons.ts'
import type { Db } from '../../../db/open.ts'
import { causeThrough } from '../../runs/cause.ts'
import { findFinalAnswer } from '../../runs/event-log.ts'
import type { RunRow } from '../../runs/store.ts'
import { secretIn } from '../../../../shared/lib/secret-shapes.ts'
import { postMessage } from './post.ts'
import { claimConversation } from '../store.ts'
import { findReplyOfRun } from '../message-store.ts'

/** A run that stopped to ask continues once it is answered; the question or approval shows what it asked. */
const asks: readonly (ExitReason | null)[] = ['question_asked', 'approval_requested']
const maxChars = 100_000

/**
 * An effect of a run's end: posts the agent's final text to the conversation that woke it. It is part of the ending's
 * transaction, so it is posted once, whatever is repeated.
 */
export async function postReply(
  tx: Db,
  run: RunRow,
  happening: { world: World; exitReason: ExitReason | null },
): Promise<void> {
  if (run.conversationId === null || asks.includes(happening.exitReason)) return
  // The answer is read before the conversation is locked: whoever ends waiting runs has locked their workspace, and beginning a turn locks
  // the workspace after the conversation.
  const answer = await findFinalAnswer(tx, run)
  const body = asStorable(answer?.text ?? '').trim()
  if (body === '') return
  const conversation = await claimConversation(tx, run.conversationId)
  if (conversation === null || (await findReplyOfRun(tx, run.id)) !== null) return
  const isSecret = secretIn(body) !== null
  await postMessage(tx, {
    conversation,
    author: isSecret ? { type: 'system', id: null } : { type: 'agent', id: run.agentRef },
    body: isSecret ? secretNote(run.id) : body.length > maxChars ? `${body.slice(0, maxChars - 1)}…` : body,
    replyOfRun: run.id,
    // The run has ended, so its agent's other runs do not show who is responsible.
    causedByUuid: await causeThrough(tx, run),
    world: happening.world,
  })
}

const secretNote = (runId: RunId) =>
  `The agent's answer looked like it holds a secret and was not posted. It stands in the transcript of ${runId}.`
