import type { ConversationId, MessageId, PersonRef, RunId } from '../../../shared/lib/ids.ts'
import { cellOf, countOf } from '../../db/reads.ts'
import { z } from 'zod'
import { authorTypes, messageSources } from '../../../shared/api/conversation-fields.ts'
import { int, json, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { actorRef, automationId, conversationId, fileId, messageId, runId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { expectOnlyWriter, table, type RowOf } from '../../db/table.ts'

const mention = z.object({ type: z.enum(['user', 'agent']), id: actorRef })
export type Mention = z.infer<typeof mention>

const messages = table(
  'messages',
  {
    id: messageId,
    conversationId,
    /** The number of the message in its conversation, from 1 without holes. */
    seq: int,
    authorType: z.enum(authorTypes),
    /** `usr_` or `agt_` id; null for the system. */
    authorRef: actorRef.nullable(),
    body: text,
    source: z.enum(messageSources),
    externalRef: nullableText,
    automationId: automationId.nullable(),
    mentions: json(z.array(mention)),
    parentMessageId: messageId.nullable(),
    attachmentIds: json(z.array(fileId)),
    /** The run whose final text this is. */
    replyOfRun: nullableText,
    /** The run that `send` started for it. */
    turnRun: runId.nullable(),
    sendKey: nullableText,
    editedAt: nullableTime,
    deletedAt: nullableTime,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { authorRef: 'author_id' } },
)
export type MessageRow = RowOf<typeof messages>

/** Throws the database's unique violation for a second reply of a run, or a second message sent with one key. */
export async function insertMessage(db: Db, message: MessageRow): Promise<void> {
  await messages.insert(db, message)
}

export async function findMessage(db: Db, id: MessageId): Promise<MessageRow | null> {
  return messages.find(db, { id })
}

/** A thread in which each message replies to the one before may be as long as its conversation: each post would walk all of it. */
export const maxThreadSteps = 200

/**
 * The first message of the thread that this message belongs to: itself, unless it replies to another one. A reply may name any
 * message of its thread as its parent. Returns null when the start is more than `maxThreadSteps` replies away.
 */
export async function findThreadStart(db: Db, id: MessageId): Promise<MessageId | null> {
  const columns = ['messages.id', 'messages.parent_message_id']
  const thread = db.withRecursive('thread', (first) => {
    void first
      .select([...columns, db.raw('0 as steps')])
      .from('messages')
      .where({ id })
      .unionAll((next) => {
        void next
          .select([...columns, db.raw('thread.steps + 1')])
          .from('messages')
          .join('thread', 'thread.parent_message_id', 'messages.id')
          .where('thread.steps', '<', maxThreadSteps)
      })
  })
  return cellOf(thread.from('thread').whereNull('parent_message_id'), 'id', messageId)
}

/** The message with a run's final text. */
export async function findReplyOfRun(db: Db, runId: RunId): Promise<MessageRow | null> {
  return messages.find(db, { replyOfRun: runId })
}

export async function findSentMessage(
  db: Db,
  sent: { conversationId: ConversationId; authorRef: PersonRef; key: string },
): Promise<MessageRow | null> {
  return messages.find(db, { conversationId: sent.conversationId, authorRef: sent.authorRef, sendKey: sent.key })
}

export async function replaceTurnRun(db: Db, messageId: MessageId, runId: RunId): Promise<void> {
  await db('messages').where({ id: messageId }).update({ turn_run: runId })
}

export interface MessageRange {
  conversationId: ConversationId
  /** Messages after (newer) or before (older) this number; left out: from the first on. */
  place?: { direction: 'after' | 'before'; seq: number }
  withDeleted: boolean
  limit: number
}

/** Lists messages oldest first, or with a place `before` newest first; returns one row more than `limit`. */
export async function listMessages(db: Db, range: MessageRange): Promise<MessageRow[]> {
  const query = messages.from(db).where({ conversation_id: range.conversationId })
  const isBackward = range.place?.direction === 'before'
  if (range.place) void query.where('seq', isBackward ? '<' : '>', range.place.seq)
  if (!range.withDeleted) void query.whereNull('deleted_at')
  return messages.list(query.orderBy('seq', isBackward ? 'desc' : 'asc').limit(range.limit + 1))
}

/** The newest message that is not deleted. */
export async function findLastMessage(db: Db, conversationId: ConversationId): Promise<MessageRow | null> {
  return messages.first(
    messages.from(db).where({ conversation_id: conversationId }).whereNull('deleted_at').orderBy('seq', 'desc'),
  )
}

const lastAuthors = z.array(z.object({ type: z.enum(['user', 'agent']), at: time }))

/** The authors and times of the last messages, newest first, without those of the system. */
export async function listLastAuthors(
  db: Db,
  conversationId: ConversationId,
  limit: number,
): Promise<{ type: 'user' | 'agent'; at: number }[]> {
  const rows: unknown[] = await db('messages')
    .where({ conversation_id: conversationId })
    .whereNot({ author_type: 'system' })
    .orderBy('seq', 'desc')
    .limit(limit)
    .select('author_type as type', 'created_at as at')
  return lastAuthors.parse(rows)
}

/** The earlier texts of messages. */
const edits = table('message_edits', {
  messageId,
  conversationId,
  edit: int,
  body: text,
  replacedAt: time,
})

/** Writes a new text and keeps the old one. Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceBody(
  db: Db,
  before: MessageRow,
  after: { body: string; mentions: readonly Mention[]; at: number },
): Promise<void> {
  const { id, updatedAt } = before
  const changed = await messages.update(
    db,
    { id, body: before.body, updatedAt, deletedAt: null },
    { body: after.body, mentions: [...after.mentions], editedAt: after.at, updatedAt: after.at },
  )
  expectOnlyWriter(changed)
  await edits.insert(db, {
    messageId: before.id,
    conversationId: before.conversationId,
    edit: (await countOf(db('message_edits').where({ message_id: before.id }))) + 1,
    body: before.body,
    replacedAt: after.at,
  })
}

/** The last `limit` earlier texts of a message, oldest first, each with the time it was replaced. */
export async function listEdits(
  db: Db,
  messageId: MessageId,
  limit: number,
): Promise<Pick<RowOf<typeof edits>, 'body' | 'replacedAt'>[]> {
  const newest = edits.from(db).where({ message_id: messageId }).orderBy('edit', 'desc').limit(limit)
  return (await edits.list(newest)).toReversed().map(({ body, replacedAt }) => ({ body, replacedAt }))
}

/** Marks a message as deleted, which hides its text. Returns false when it was deleted before. */
export async function removeMessage(db: Db, id: MessageId, at: number): Promise<boolean> {
  const changed = await db('messages').where({ id }).whereNull('deleted_at').update({ deleted_at: at, updated_at: at })
  return changed === 1
}
