import { z } from 'zod'
import { authorTypes, messageSources } from '../../../shared/api/conversation-fields.ts'
import { int, json, nullableText, nullableTime, text, time, toJson } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

const mention = z.object({ type: z.enum(['user', 'agent']), id: z.string() })
export type Mention = z.infer<typeof mention>

const row = z
  .object({
    id: text,
    conversation_id: text,
    seq: int,
    author_type: z.enum(authorTypes),
    author_id: nullableText,
    body: text,
    source: z.enum(messageSources),
    external_ref: nullableText,
    automation_id: nullableText,
    mentions: json(z.array(mention)),
    parent_message_id: nullableText,
    attachment_ids: json(z.array(z.string())),
    reply_of_run: nullableText,
    turn_run: nullableText,
    send_key: nullableText,
    edited_at: nullableTime,
    deleted_at: nullableTime,
    created_at: time,
    updated_at: time,
  })
  .transform((r) => ({
    id: r.id,
    conversationId: r.conversation_id,
    /** Its place in the conversation; begins at 1 and has no holes. */
    seq: r.seq,
    authorType: r.author_type,
    /** `usr_` or `agt_` id; null for the system. */
    authorId: r.author_id,
    body: r.body,
    source: r.source,
    externalRef: r.external_ref,
    automationId: r.automation_id,
    mentions: r.mentions,
    parentMessageId: r.parent_message_id,
    attachmentIds: r.attachment_ids,
    /** The run whose final text this is. */
    replyOfRun: r.reply_of_run,
    /** The run that `send` started for it. */
    turnRun: r.turn_run,
    sendKey: r.send_key,
    editedAt: r.edited_at,
    deletedAt: r.deleted_at,
    createdAt: r.created_at,
    updatedAt: r.updated_at,
  }))
export type MessageRow = z.infer<typeof row>
const parseMaybe = (value: unknown): MessageRow | null => (value === undefined ? null : row.parse(value))

/** Throws the database's unique violation for a second reply of a run, or a second message sent with one key. */
export async function insertMessage(db: Db, message: MessageRow): Promise<void> {
  await db('messages').insert({
    id: message.id,
    conversation_id: message.conversationId,
    seq: message.seq,
    author_type: message.authorType,
    author_id: message.authorId,
    body: message.body,
    source: message.source,
    external_ref: message.externalRef,
    automation_id: message.automationId,
    mentions: toJson(message.mentions),
    parent_message_id: message.parentMessageId,
    attachment_ids: toJson(message.attachmentIds),
    reply_of_run: message.replyOfRun,
    turn_run: message.turnRun,
    send_key: message.sendKey,
    edited_at: message.editedAt,
    deleted_at: message.deletedAt,
    created_at: message.createdAt,
    updated_at: message.updatedAt,
  })
}

export async function findMessage(db: Db, id: string): Promise<MessageRow | null> {
  return parseMaybe(await db('messages').where({ id }).first())
}

/** The message with a run's final text. */
export async function findReplyOfRun(db: Db, runId: string): Promise<MessageRow | null> {
  return parseMaybe(await db('messages').where({ reply_of_run: runId }).first())
}

export async function findSentMessage(
  db: Db,
  sent: { conversationId: string; authorId: string; key: string },
): Promise<MessageRow | null> {
  const where = { conversation_id: sent.conversationId, author_id: sent.authorId, send_key: sent.key }
  return parseMaybe(await db('messages').where(where).first())
}

export async function replaceTurnRun(db: Db, messageId: string, runId: string): Promise<void> {
  await db('messages').where({ id: messageId }).update({ turn_run: runId })
}

export interface MessageRange {
  conversationId: string
  /** Messages after (newer) or before (older) this number; left out: from the first on. */
  place?: { direction: 'after' | 'before'; seq: number }
  withDeleted: boolean
  limit: number
}

/** Oldest first, or with a place `before` newest first; one row more than `limit`. */
export async function listMessages(db: Db, range: MessageRange): Promise<MessageRow[]> {
  const query = db('messages').where({ conversation_id: range.conversationId })
  const isBackward = range.place?.direction === 'before'
  if (range.place) void query.where('seq', isBackward ? '<' : '>', range.place.seq)
  if (!range.withDeleted) void query.whereNull('deleted_at')
  const rows: unknown[] = await query.orderBy('seq', isBackward ? 'desc' : 'asc').limit(range.limit + 1)
  return rows.map((value) => row.parse(value))
}

/** The newest of those not deleted. */
export async function findLastMessage(db: Db, conversationId: string): Promise<MessageRow | null> {
  const where = { conversation_id: conversationId }
  return parseMaybe(await db('messages').where(where).whereNull('deleted_at').orderBy('seq', 'desc').first())
}

/** Who wrote the last messages and when, newest first; what the system said is left out. */
export async function listLastAuthors(
  db: Db,
  conversationId: string,
  limit: number,
): Promise<{ type: 'user' | 'agent'; at: number }[]> {
  const rows: unknown[] = await db('messages')
    .where({ conversation_id: conversationId })
    .whereNot({ author_type: 'system' })
    .orderBy('seq', 'desc')
    .limit(limit)
    .select('author_type', 'created_at')
  return z
    .array(z.object({ author_type: z.enum(['user', 'agent']), created_at: time }))
    .parse(rows)
    .map((each) => ({ type: each.author_type, at: each.created_at }))
}

/** Writes a new text and keeps the old one; false when somebody else changed or deleted it since it was read. */
export async function replaceBody(
  db: Db,
  before: MessageRow,
  after: { body: string; mentions: readonly Mention[]; at: number },
): Promise<boolean> {
  const changed = await db('messages')
    .where({ id: before.id, body: before.body, updated_at: before.updatedAt })
    .whereNull('deleted_at')
    .update({ body: after.body, mentions: toJson(after.mentions), edited_at: after.at, updated_at: after.at })
  if (changed !== 1) return false
  const counted: unknown = await db('message_edits').where({ message_id: before.id }).count({ n: '*' }).first()
  await db('message_edits').insert({
    message_id: before.id,
    conversation_id: before.conversationId,
    edit: z.object({ n: int }).parse(counted).n + 1,
    body: before.body,
    replaced_at: after.at,
  })
  return true
}

/** What a message said before, oldest first, with the time each text was replaced: the last `limit` of them. */
export async function listEdits(
  db: Db,
  messageId: string,
  limit: number,
): Promise<{ body: string; replacedAt: number }[]> {
  const rows: unknown[] = await db('message_edits')
    .where({ message_id: messageId })
    .orderBy('edit', 'desc')
    .limit(limit)
  return z
    .array(z.object({ body: text, replaced_at: time }))
    .parse(rows.toReversed())
    .map((each) => ({ body: each.body, replacedAt: each.replaced_at }))
}

/** Marks it deleted; its text is not shown any more. False when it was. */
export async function removeMessage(db: Db, id: string, at: number): Promise<boolean> {
  const changed = await db('messages').where({ id }).whereNull('deleted_at').update({ deleted_at: at, updated_at: at })
  return changed === 1
}
