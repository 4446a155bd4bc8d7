import { fail } from '../../../shared/api/errors.ts'
import type { ParticipantInput } from '../../../shared/api/conversation-shapes.ts'
import type { Db } from '../../db/open.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import { lookUpAgent } from '../agents/lookup.ts'
import { findMemberByReference } from '../members/store.ts'
import { isTaskVisible } from '../tasks/lookup.ts'
import { findTaskById } from '../tasks/store.ts'
import { isParticipant, type Participant } from './participant-store.ts'
import { subjectOf } from './rules.ts'
import { claimConversation, findConversation, type ConversationRow, type ConversationViewer } from './store.ts'

/**
 * Who sees a conversation (silence conv.whoReads): channels every person of the workspace, that of a task who sees the
 * task, a dm its person and workspace admins; an agent those it is in.
 */
export async function isConversationVisible(db: Db, caller: Caller, conversation: ConversationRow): Promise<boolean> {
  if (conversation.workspaceId !== caller.workspaceId) return false
  const isIn = () => isParticipant(db, conversation.id, subjectOf(caller))
  if (caller.kind === 'agent') return isIn()
  if (hasRole(caller, 'admin')) return true
  if (conversation.taskId === null) return conversation.kind === 'channel' || isIn()
  const task = await findTaskById(db, conversation.taskId)
  return task === null || isTaskVisible(db, caller, task)
}

/** The same for lists; null sees all. */
export function viewerOf(caller: Caller): ConversationViewer {
  if (caller.kind === 'agent') return { type: 'agent', id: caller.agentId }
  return hasRole(caller, 'admin') ? null : { type: 'user', id: caller.userPublicId, userId: caller.userId }
}

/** Fails with `conversation_not_found`. */
export async function readableConversation(db: Db, caller: Caller, id: string): Promise<ConversationRow> {
  const conversation = await findConversation(db, id)
  if (conversation !== null && (await isConversationVisible(db, caller, conversation))) return conversation
  return fail('conversation_not_found', { param: 'id' })
}

/**
 * The conversation as it is now, neither changed nor deleted by others until the transaction ends; for what was found to be
 * readable. It is locked before its messages and marks. Fails with `conversation_not_found` when it was deleted meanwhile.
 */
export async function heldConversation(db: Db, id: string): Promise<ConversationRow> {
  return (await claimConversation(db, id)) ?? fail('conversation_not_found', { param: 'id' })
}

/** A conversation that only workspace admins change; agents do not get here. */
export async function administeredConversation(db: Db, caller: Caller, id: string): Promise<ConversationRow> {
  if (!hasRole(caller, 'admin')) fail('not_authorized', { message: 'Only a workspace admin may do this.' })
  return readableConversation(db, caller, id)
}

/** The caller posts only where they are. */
export async function participantOnly(db: Db, caller: Caller, conversation: ConversationRow): Promise<void> {
  if (!(await isParticipant(db, conversation.id, subjectOf(caller)))) fail('not_a_participant')
}

/** Whom a reference names: a person by `usr_` id or UUID, a live agent by any reference. null: nobody the caller sees. */
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

/** The same; fails with `participant_not_found`. */
export async function knownParticipant(db: Db, caller: Caller, input: ParticipantInput): Promise<Participant> {
  const found = await lookUpParticipant(db, caller, input)
  return found ?? fail('participant_not_found', { details: { participant: input } })
}
