import { idFrom, type ConversationId } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { ParticipantInput } from '../../../shared/api/conversation-shapes.ts'
import type { Db } from '../../db/open.ts'
import { actorOf, type Caller, hasRole } from '../../http/callers.ts'
import { lookUpAgent } from '../agents/lookup.ts'
import { findMemberByReference } from '../members/store.ts'
import { isTaskVisible } from '../tasks/lookup.ts'
import { findTaskById } from '../tasks/store.ts'
import { isParticipant, type Participant } from './participant-store.ts'
import { claimConversation, findConversation, type ConversationRow, type ConversationViewer } from './store.ts'

/**
 * Returns whether the caller sees a conversation. Every person of the workspace sees channels. A task's conversation is visible to those
 * who see the task, and a dm to its person and workspace admins. An agent sees those it takes part in.
 */
export async function isConversationVisible(db: Db, caller: Caller, conversation: ConversationRow): Promise<boolean> {
  if (conversation.workspaceId !== caller.workspaceId) return false
  const isIn = () => isParticipant(db, conversation.id, actorOf(caller))
  if (caller.kind === 'agent') return isIn()
  if (hasRole(caller, 'admin')) return true
  if (conversation.taskId === null) return conversation.kind === 'channel' || isIn()
  const task = await findTaskById(db, conversation.taskId)
  return task === null || isTaskVisible(db, caller, task)
}

/** The viewer for lists; null sees all. */
export function viewerOfConversations(caller: Caller): ConversationViewer {
  if (caller.kind === 'agent') return { type: 'agent', id: caller.agentRef }
  return hasRole(caller, 'admin') ? null : { type: 'user', id: caller.personRef, personUuid: caller.personUuid }
}

/** The conversation, if the caller sees it; null otherwise. */
export async function lookUpConversation(db: Db, caller: Caller, id: string): Promise<ConversationRow | null> {
  const conversation = await findConversation(db, idFrom(id))
  return conversation !== null && (await isConversationVisible(db, caller, conversation)) ? conversation : null
}

/** The conversation that a path names. Fails with `conversation_not_found`. */
export async function readableConversation(db: Db, caller: Caller, id: ConversationId): Promise<ConversationRow> {
  return (await lookUpConversation(db, caller, id)) ?? fail('conversation_not_found', { param: 'id' })
}

/**
 * The present conversation, which others cannot change or delete until the transaction ends. The caller must have
 * checked that it is readable. It is locked before its messages and marks. Fails with `conversation_not_found` when it
 * was deleted meanwhile.
 */
export async function heldConversation(db: Db, id: ConversationId): Promise<ConversationRow> {
  return (await claimConversation(db, id)) ?? fail('conversation_not_found', { param: 'id' })
}

/** A conversation for a change by workspace admins; agents are refused earlier. */
export async function administeredConversation(db: Db, caller: Caller, id: ConversationId): Promise<ConversationRow> {
  if (!hasRole(caller, 'admin')) fail('not_authorized', { message: 'Only a workspace admin may do this.' })
  return readableConversation(db, caller, id)
}

/** Callers may post only where they take part. */
export async function participantOnly(db: Db, caller: Caller, conversation: ConversationRow): Promise<void> {
  if (!(await isParticipant(db, conversation.id, actorOf(caller)))) fail('not_a_participant')
}

/**
 * The person (`usr_` id or UUID) or live agent (any reference) that a reference names; null when the caller sees nobody
 * by it.
 */
export async function lookUpParticipant(db: Db, caller: Caller, input: ParticipantInput): Promise<Participant | null> {
  const { type, id } = typeof input === 'string' ? { type: null, id: input } : input
  if (type !== 'agent') {
    const person = await findMemberByReference(db, caller.workspaceId, id)
    if (person !== null) return { type: 'user', id: person.publicId }
  }
  if (type === 'user') return null
  const agent = await lookUpAgent(db, caller, id)
  return agent === null || agent.deletedAt !== null ? null : { type: 'agent', id: agent.id }
}

/** Like `lookUpParticipant`, but fails with `participant_not_found`. */
export async function knownParticipant(db: Db, caller: Caller, input: ParticipantInput): Promise<Participant> {
  const found = await lookUpParticipant(db, caller, input)
  return found ?? fail('participant_not_found', { details: { participant: input } })
}
