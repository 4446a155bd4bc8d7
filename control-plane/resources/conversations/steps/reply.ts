import type { World } from '../../../../shared/lib/world.ts'
import type { ExitReason } from '../../../../shared/runs/exit-reasons.ts'
import type { Db } from '../../../db/open.ts'
import { causeThrough } from '../../../wakes/cause.ts'
import { findFinalAnswer } from '../../runs/event-log.ts'
import type { RunRow } from '../../runs/store.ts'
import { secretIn } from '../../../../shared/lib/secret-shapes.ts'
import { postMessage } from './post.ts'
import { claimConversation } from '../store.ts'
import { findReplyOfRun } from '../message-store.ts'

/** A run that stopped to ask goes on once it is answered; what it asked is said by the question or approval. */
const asks: readonly (ExitReason | null)[] = ['question_asked', 'approval_requested']
const maxChars = 100_000

/**
 * An effect of a run's end: what the agent said last is its message in the conversation that woke it. In the transaction
 * of the ending, so it is said once, whatever is repeated.
 */
export async function postReply(
  tx: Db,
  run: RunRow,
  happening: { world: World; exitReason: ExitReason | null },
): Promise<void> {
  if (run.conversationId === null || asks.includes(happening.exitReason)) return
  // Before the conversation is locked: whoever ends runs that only waited has locked their workspace, which who begins a
  // turn locks after the conversation.
  const answer = await findFinalAnswer(tx, run.id)
  const body = answer?.text.trim() ?? ''
  if (body === '') return
  const conversation = await claimConversation(tx, run.conversationId)
  if (conversation === null || (await findReplyOfRun(tx, run.id)) !== null) return
  const isSecret = secretIn(body) !== null
  await postMessage(tx, {
    conversation,
    author: isSecret ? { type: 'system', id: null } : { type: 'agent', id: run.agentId },
    body: isSecret ? secretNote(run.id) : body.length > maxChars ? `${body.slice(0, maxChars - 1)}…` : body,
    replyOfRun: run.id,
    // The run has ended, so its agent's other runs are no sign of who is behind it.
    causedBy: await causeThrough(tx, run),
    world: happening.world,
  })
}

const secretNote = (runId: string) =>
  `The agent's answer looked like it holds a secret and was not posted. It stands in the transcript of ${runId}.`
