import { idFrom, type ActorRef } from '../../../../shared/lib/ids.ts'
import type { conversationRoutes } from '../../../../shared/api/conversations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { listLiveOfConversation } from '../../runs/live-store.ts'
import { administeredConversation, heldConversation, knownParticipant, lookUpParticipant } from '../lookup.ts'
import { insertParticipants, removeParticipant } from '../participant-store.ts'
import { presentConversation } from '../present.ts'
import { deletionRefusal } from '../own/rules.ts'
import { removeConversation } from '../store.ts'
import { storeConversation } from '../own/store-conversation.ts'

// Actions on conversations that only workspace admins may take.

type Routes = typeof conversationRoutes

export async function archiveConversation({ db, caller, params, world }: HandlerInput<Routes['archive']>) {
  const before = await administeredConversation(db, caller, params.id)
  if (before.kind === 'dm') fail('conversation_dm_not_archivable')
  if (before.archivedAt !== null) return presentConversation(db, caller, before)
  const after = await storeConversation(db, world, { before, changes: { archivedAt: world.now() } })
  return presentConversation(db, caller, after)
}

export async function unarchiveConversation({ db, caller, params, world }: HandlerInput<Routes['unarchive']>) {
  const before = await administeredConversation(db, caller, params.id)
  if (before.archivedAt === null) return presentConversation(db, caller, before)
  const after = await storeConversation(db, world, { before, changes: { archivedAt: null } })
  return presentConversation(db, caller, after)
}

export async function deleteConversation({ db, caller, params, world }: HandlerInput<Routes['delete']>): Promise<void> {
  const { id, workspaceId } = await administeredConversation(db, caller, params.id)
  // Transactions that post to it, wake somebody by it or mark it read wait here, and then find it gone.
  const { kind, taskId } = await heldConversation(db, id)
  const live = await listLiveOfConversation(db, { conversationId: id })
  const refusal = deletionRefusal({ kind, taskId }, live.length > 0)
  if (refusal !== null) fail(refusal, live.length > 0 ? { details: { runId: live[0]?.id } } : {})
  await removeConversation(db, { id, workspaceId }, world.now())
}

export async function addParticipant({ db, caller, params, body, world }: HandlerInput<Routes['addParticipant']>) {
  const conversation = await administeredConversation(db, caller, params.id)
  if (conversation.kind === 'dm') fail('dm_cannot_add_participant')
  const { id, type } = body
  const asked = body.participant ?? (type === undefined ? (id ?? '') : { type, id: id ?? '' })
  const participants = [await knownParticipant(db, caller, asked)]
  await heldConversation(db, conversation.id)
  await insertParticipants(db, conversation.id, { participants, at: world.now() })
  return presentConversation(db, caller, conversation)
}

export async function takeParticipantOut({ db, caller, params }: HandlerInput<Routes['removeParticipant']>) {
  const conversation = await administeredConversation(db, caller, params.id)
  // People who left the workspace and deleted agents can still be removed by id.
  const named = await lookUpParticipant(db, caller, params.ref)
  const type = params.ref.startsWith('usr_') ? ('user' as const) : ('agent' as const)
  const participant = named ?? { type, id: idFrom<ActorRef>(params.ref) }
  // A dm without one of its two participants would not be a dm any more.
  if (conversation.kind === 'dm' && conversation.taskId === null)
    fail('http_exception', { status: 409, message: 'Nobody is taken out of a dm.' })
  if (!(await removeParticipant(db, conversation.id, participant))) fail('participant_not_found', { param: 'ref' })
  return presentConversation(db, caller, conversation)
}
