import type { Conversation, ConversationDetail } from '../../../shared/api/conversation-shapes.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import type { Db } from '../../db/open.ts'
import { actorOf, type Caller } from '../../http/callers.ts'
import { presentMessages } from './present-message.ts'
import { listMessages } from './message-store.ts'
import { isTaskVisible } from '../tasks/lookup.ts'
import { presentTaskSummary } from '../tasks/present.ts'
import { findTaskById } from '../tasks/store.ts'
import { ownWorkspace } from '../workspaces/lookup.ts'
import { loadNames } from './names.ts'
import { countUnread, listParticipants, listReads, type Participant, type ReadMark } from './participant-store.ts'
import { capabilitiesOf, triggerModeOf } from './own/rules.ts'
import type { ConversationRow } from './store.ts'

/** Conversations as one caller reads them. The rows that a page of them needs are loaded at once. */
export async function presentConversations(
  db: Db,
  caller: Caller,
  conversations: readonly ConversationRow[],
): Promise<Conversation[]> {
  if (conversations.length === 0) return []
  const ids = conversations.map((conversation) => conversation.id)
  const { publicId, companyId } = await ownWorkspace(db, caller)
  const participants = await listParticipants(db, ids)
  const own = caller.kind === 'person' ? caller.personRef : null
  const reads = own === null ? new Map<string, ReadMark>() : await listReads(db, own, ids)
  const unread = own === null ? new Map<string, number>() : await countUnread(db, own, ids)
  return conversations.map((conversation) => ({
    ...presentRow(conversation, { caller, participants: participants.get(conversation.id) ?? [] }),
    workspaceId: publicId,
    companyId,
    lastReadAt: toTimestamp(reads.get(conversation.id)?.at ?? null),
    unreadCount: unread.get(conversation.id) ?? 0,
  }))
}

export async function presentConversation(
  db: Db,
  caller: Caller,
  conversation: ConversationRow,
): Promise<Conversation> {
  return (await presentConversations(db, caller, [conversation]))[0]!
}

function presentRow(
  conversation: ConversationRow,
  { caller, participants }: { caller: Caller; participants: readonly Participant[] },
): Omit<Conversation, 'workspaceId' | 'companyId' | 'lastReadAt' | 'unreadCount'> {
  const self = actorOf(caller)
  const isIn = participants.some(({ id }) => id === self.id)
  return {
    object: 'conversation',
    id: conversation.id,
    title: conversation.title,
    taskId: conversation.taskId,
    kind: conversation.kind,
    triggerMode: triggerModeOf(conversation),
    capabilities: capabilitiesOf(conversation, { caller, isIn }),
    participants: [...participants],
    agentParticipantCount: participants.filter(({ type }) => type === 'agent').length,
    lastMessageId: conversation.lastMessageId,
    lastMessagePreview: conversation.lastMessagePreview,
    lastActivityAt: toTimestamp(conversation.lastActivityAt),
    messageCount: conversation.messageCount,
    createdBy: { type: conversation.createdByType, id: conversation.createdByRef },
    archivedAt: toTimestamp(conversation.archivedAt),
    createdAt: toTimestamp(conversation.createdAt),
    updatedAt: toTimestamp(conversation.updatedAt),
  }
}

export type ConversationInclude = 'messages' | 'task' | 'participantsExpanded' | 'runtime'
const includedMessages = 25

export async function presentDetail(
  db: Db,
  caller: Caller,
  { conversation, include }: { conversation: ConversationRow; include: readonly ConversationInclude[] },
): Promise<ConversationDetail> {
  const detail: ConversationDetail = await presentConversation(db, caller, conversation)
  if (include.includes('messages')) {
    const range = { place: { direction: 'before' as const, seq: Number.MAX_SAFE_INTEGER }, withDeleted: false }
    const rows = await listMessages(db, { conversationId: conversation.id, limit: includedMessages, ...range })
    const messages = rows.slice(0, includedMessages).toReversed()
    detail.messages = await presentMessages(db, caller, { conversation, messages })
  }
  if (include.includes('task')) detail.task = await taskOf(db, caller, conversation)
  if (include.includes('participantsExpanded')) {
    const nameOf = await loadNames(db, conversation.workspaceId, detail.participants)
    detail.participantsExpanded = detail.participants.map((each) => ({ ...each, ...nameOf(each) }))
  }
  if (include.includes('runtime')) {
    const { modelId, harness, reasoningEffort, speed } = conversation
    const changedAt = toTimestamp(conversation.runtimeChangedAt)
    detail.runtime = { modelId, harness, reasoningEffort, speed, changedAt }
  }
  return detail
}

async function taskOf(db: Db, caller: Caller, { taskId }: ConversationRow): Promise<ConversationDetail['task']> {
  const task = taskId === null ? null : await findTaskById(db, taskId)
  return task !== null && (await isTaskVisible(db, caller, task)) ? presentTaskSummary(task) : null
}
