import type { Message } from '../../../shared/api/messages.ts'
import type { Comment } from '../../../shared/api/task-comments.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { fileViewerOf } from '../files/rules.ts'
import { loadAttachments, type AttachmentsOf } from './attachments.ts'
import { loadNames } from './names.ts'
import type { ConversationRow } from './store.ts'
import type { TaskRow } from '../tasks/store.ts'
import type { MessageRow } from './message-store.ts'

/** Shows a deleted message without its text. */
export function presentMessage(
  message: MessageRow,
  conversation: Pick<ConversationRow, 'taskId'>,
  attachmentsOf: AttachmentsOf,
): Message {
  const isDeleted = message.deletedAt !== null
  return {
    object: 'message',
    id: message.id,
    conversationId: message.conversationId,
    taskId: conversation.taskId,
    author: { type: message.authorType, id: message.authorRef },
    body: isDeleted ? '' : message.body,
    source: message.source,
    externalRef: message.externalRef,
    automationId: message.automationId,
    mentions: isDeleted ? [] : message.mentions,
    parentMessageId: message.parentMessageId,
    attachments: attachmentsOf(message),
    editedAt: toTimestamp(message.editedAt),
    deletedAt: toTimestamp(message.deletedAt),
    createdAt: toTimestamp(message.createdAt),
    updatedAt: toTimestamp(message.updatedAt),
  }
}

/** Shows messages with those of their files that the caller sees. */
export async function presentMessages(
  db: Db,
  caller: Caller,
  { conversation, messages }: { conversation: Pick<ConversationRow, 'taskId'>; messages: readonly MessageRow[] },
): Promise<Message[]> {
  const viewing = { workspaceId: caller.workspaceId, viewer: fileViewerOf(caller) }
  const attachmentsOf = await loadAttachments(db, viewing, messages)
  return messages.map((message) => presentMessage(message, conversation, attachmentsOf))
}

/** Messages of a task's conversation as its comments. */
export async function presentComments(
  db: Db,
  caller: Caller,
  { task, messages }: { task: Pick<TaskRow, 'key' | 'workspaceId'>; messages: readonly MessageRow[] },
): Promise<Comment[]> {
  const viewing = { workspaceId: task.workspaceId, viewer: fileViewerOf(caller) }
  const attachmentsOf = await loadAttachments(db, viewing, messages)
  const authors = messages.map((message) => ({ type: message.authorType, id: message.authorRef }))
  const nameOf = await loadNames(db, task.workspaceId, authors)
  return messages.map((message, at) => ({
    id: message.id,
    body: message.deletedAt === null ? message.body : '',
    author: { type: message.authorType, ...nameOf(authors[at]!) },
    taskId: task.key,
    parentMessageId: message.parentMessageId,
    attachments: attachmentsOf(message),
    createdAt: toTimestamp(message.createdAt),
    updatedAt: toTimestamp(message.updatedAt),
  }))
}
