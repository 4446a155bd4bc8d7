import { hasPrefix, type RunId } from '../../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import type { conversationRoutes } from '../../../../shared/api/conversations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { messageId } from '../../../../shared/api/ids.ts'
import { sentText, sentTextKey } from '../../../../shared/api/messages.ts'
import { decodeCursor } from '../../../../shared/lib/cursor.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { inTransaction } from '../../../db/transaction.ts'
import { asked } from '../../../trust/askers.ts'
import { listHolding } from '../../../run/placement/refused-runs.ts'
import { startRun } from '../../../run/wakes/start-run.ts'
import { answer, type HandlerInput } from '../../../http/implement.ts'
import { EventStream } from '../../../http/sse.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { findAgent, type AgentRow } from '../../agents/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { presentMessages } from '../present-message.ts'
import { findMessage, findSentMessage, replaceTurnRun, type MessageRow } from '../message-store.ts'
import { listLiveOfConversation } from '../../runs/live-store.ts'
import { authorsOf } from '../../tasks/rules.ts'
import { findTaskById } from '../../tasks/store.ts'
import { participantOnly, readableConversation } from '../lookup.ts'
import { listParticipants } from '../participant-store.ts'
import { checkText, postMessage } from '../steps/post.ts'
import { runtimeOf } from '../runtime.ts'
import { claimConversation, type ConversationRow } from '../store.ts'
import { requiredText } from '../text.ts'
import { followTurn, type TurnPlace } from './turn.ts'
import { promptFor } from '../steps/own/wakes.ts'

type Dependencies = Pick<ResourceDependencies, 'bus' | 'wakeContext'>

type Send = HandlerInput<typeof conversationRoutes.send>
interface Turn {
  conversation: ConversationRow
  message: MessageRow
  runId: RunId
  place: TurnPlace
  /** An earlier call with the same key began it. */
  isReplay?: true
}

/**
 * A person's turn: one transaction posts the message and makes the run that answers it, so the caller knows at once
 * whether the agent takes the turn. Then the agent's words are streamed as they come. A call with `Last-Event-ID`, or
 * with the key of an earlier one, continues that turn and posts nothing.
 */
export async function sendMessage(input: Send, deps: Dependencies) {
  const { db, stream } = input
  const lastEventId = stream?.lastEventId
  const { conversation, message, runId, isReplay, place } = lastEventId
    ? await turnOf(input, lastEventId)
    : await begin(input, deps)
  if (stream === null) {
    const headers = isReplay === true ? { 'Idempotency-Replayed': 'true' } : {}
    const [shown] = await presentMessages(db, input.caller, { conversation, messages: [message] })
    return answer(200, { message: shown!, runId }, headers)
  }
  const { world, signal, room, caller } = input
  const source = followTurn({ db, bus: deps.bus, world, signal, room, caller, conversation, message, runId, place })
  return new EventStream(source, async (now) => {
    await participantOnly(db, now, await readableConversation(db, now, conversation.id))
  })
}

const placeKey = z.tuple([messageId, z.number().int().min(-1)])

async function conversationOf({ caller, params }: Send, db: Db): Promise<ConversationRow> {
  const conversation = await readableConversation(db, caller, params.id)
  await participantOnly(db, caller, conversation)
  return conversation
}

async function turnOf(input: Send, lastEventId: string): Promise<Turn> {
  const { db, caller } = input
  const conversation = await conversationOf(input, db)
  const key = decodeCursor(lastEventId, placeKey)
  const message = key === null ? null : await findMessage(db, key[0])
  const isOwn = message?.conversationId === conversation.id && message.authorRef === caller.personRef
  if (key === null || message === null || !isOwn || message.turnRun === null)
    return fail('invalid_cursor', { param: 'Last-Event-ID' })
  return { conversation, message, runId: message.turnRun, place: key[1] }
}

async function begin(input: Send, deps: Dependencies): Promise<Turn> {
  const work = async (tx: Tx) => {
    const conversation = await conversationOf(input, tx)
    const body = requiredText(sentText(input.body))
    checkText(body, sentTextKey(input.body))
    const target = await targetOf(tx, input, conversation)
    return beginIn(tx, { input, conversation, target, body, deps })
  }
  return inTransaction(input.db as Knex, work, { locks: [input.caller.workspaceId] })
}

/** The agent that answers: the named one, else the only one in the conversation. */
async function targetOf(db: Db, { caller, body }: Send, conversation: ConversationRow): Promise<AgentRow> {
  const participants = (await listParticipants(db, [conversation.id])).get(conversation.id) ?? []
  const agentRefs = participants.flatMap(({ id }) => (hasPrefix(id, 'agt_') ? [id] : []))
  if (body.agentId == null) {
    if (agentRefs.length > 1) fail('send_target_required', { param: 'agentId', allowedValues: agentRefs })
    const only = agentRefs[0] === undefined ? null : await findAgent(db, agentRefs[0])
    return only ?? fail('participant_not_found', { message: 'No agent is in this conversation.' })
  }
  const agent = await lookUpAgent(db, caller, body.agentId)
  const isIn = agent !== null && agentRefs.includes(agent.id)
  return isIn ? agent : fail('participant_not_found', { param: 'agentId' })
}

interface Begin {
  input: Send
  conversation: ConversationRow
  target: AgentRow
  body: string
  deps: Dependencies
}

async function beginIn(tx: Tx, { input, conversation: { id }, target, body, deps }: Begin): Promise<Turn> {
  const { caller, world } = input
  const key = input.idempotencyKey ?? null
  // Turns of one conversation begin one after another.
  const conversation = (await claimConversation(tx, id)) ?? fail('conversation_not_found', { param: 'id' })
  const author = { type: 'user' as const, id: caller.personRef }
  const sent = key === null ? null : await findSentMessage(tx, { conversationId: id, authorRef: author.id, key })
  if (sent !== null) {
    if (sent.turnRun === null || sent.body !== body) fail('idempotency_key_reused', { param: 'Idempotency-Key' })
    return { conversation, message: sent, runId: sent.turnRun, place: 'start', isReplay: true }
  }
  const ofAgent = await listLiveOfConversation(tx, { conversationId: id, agentRef: target.id })
  const { leaseMs } = deps.wakeContext.offers
  const [live] = await listHolding(tx, ofAgent, { now: world.now(), leaseMs })
  if (live !== undefined) {
    const message = `${target.name} is still at work in this conversation. Send it again later, or post a message (\`svc conversation message post\`), which becomes its next run.`
    return refuseTurn(message, { reason: 'agent_busy', runId: live.id }, { 'Retry-After': '5' })
  }
  const posted = { conversation, author, body, caller, world, sendKey: key, exceptAgentRef: target.id }
  const message = await postMessage(tx, posted)
  const ofTask = conversation.taskId === null ? null : await findTaskById(tx, conversation.taskId)
  const task = ofTask?.assigneeAgentRef === target.id ? ofTask : null
  const prompt = await promptFor(tx, { conversation, message, agentRef: target.id, task, askedBy: caller.personUuid })
  const wake = {
    ...asked('channel_message', { author: caller.personUuid }, task === null ? [] : authorsOf(task)),
    agent: target,
    requestedByRef: author.id,
    prompt,
    parent: null,
    task,
  }
  const started = await startRun(tx, { ...wake, conversationId: id, ...runtimeOf(conversation) }, deps.wakeContext)
  if (!('runId' in started)) return refuseTurn(started.message, { reason: started.reason })
  await replaceTurnRun(tx, message.id, started.runId)
  return { conversation, message, runId: started.runId, place: 'start' }
}

/**
 * Rolls the transaction back, so that nothing is posted. `rate_limited` is the only code for a turn that cannot begin.
 * `Retry-After` is sent only if waiting helps: a paused agent stays paused until somebody resumes it.
 */
function refuseTurn(message: string, details: Record<string, unknown>, headers: Record<string, string> = {}): never {
  return fail('rate_limited', { message, details, headers })
}
