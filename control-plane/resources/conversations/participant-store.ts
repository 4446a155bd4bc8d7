import type { ActorRef, ConversationId, PersonRef } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int, text, time } from '../../db/columns.ts'
import { actorRef, conversationId, personRef } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { table } from '../../db/table.ts'

/** The participants of a conversation, and how far people have read. Ids are `usr_` and `agt_` ids. */
export interface Participant {
  type: 'user' | 'agent'
  id: ActorRef
}

const participants = table(
  'conversation_participants',
  { conversationId, type: z.enum(['user', 'agent']), id: actorRef, createdAt: time },
  { columns: { id: 'subject_id' } },
)

/** Adds participants; those who are in it already stay unchanged. */
export async function insertParticipants(
  db: Db,
  conversationId: ConversationId,
  joining: { participants: readonly Participant[]; at: number },
): Promise<void> {
  if (joining.participants.length === 0) return
  await db('conversation_participants')
    .insert(
      joining.participants.map(({ type, id }) =>
        participants.toColumns({ conversationId, type, id, createdAt: joining.at }),
      ),
    )
    .onConflict(['conversation_id', 'type', 'subject_id'])
    .ignore()
}

/** Returns false when they were not in it. */
export async function removeParticipant(
  db: Db,
  conversationId: ConversationId,
  participant: Participant,
): Promise<boolean> {
  const { type, id } = participant
  const where = { conversation_id: conversationId, type, subject_id: id }
  return (await db('conversation_participants').where(where).delete()) === 1
}

/** Lists participants by conversation, first joined first. */
export async function listParticipants(
  db: Db,
  conversationIds: readonly ConversationId[],
): Promise<Map<string, Participant[]>> {
  const by = new Map<string, Participant[]>(conversationIds.map((id) => [id, []]))
  if (conversationIds.length === 0) return by
  const all = participants
    .from(db)
    .whereIn('conversation_id', [...conversationIds])
    .orderBy([{ column: 'created_at' }, { column: 'type', order: 'desc' }, { column: 'subject_id' }])
  for (const { conversationId, type, id } of await participants.list(all)) by.get(conversationId)?.push({ type, id })
  return by
}

export async function isParticipant(
  db: Db,
  conversationId: ConversationId,
  { type, id }: Participant,
): Promise<boolean> {
  const where = { conversation_id: conversationId, type, subject_id: id }
  return (await db('conversation_participants').where(where).first('subject_id')) !== undefined
}

export interface ReadMark {
  /** Number of the last message when they read. */
  seq: number
  at: number
}

const reads = table(
  'conversation_reads',
  { conversationId, personRef, seq: int, at: time },
  { columns: { personRef: 'user_id', seq: 'read_seq', at: 'read_at' } },
)

/** Records how far a person has read; a mark never goes back. */
export async function recordRead(
  db: Db,
  read: { conversationId: ConversationId; personRef: PersonRef; seq: number; at: number },
): Promise<void> {
  await db('conversation_reads')
    .insert(reads.toColumns(read))
    .onConflict(['conversation_id', 'user_id'])
    .merge()
    .where('conversation_reads.read_seq', '<=', read.seq)
}

export async function listReads(
  db: Db,
  personRef: PersonRef,
  conversationIds: readonly ConversationId[],
): Promise<Map<ConversationId, ReadMark>> {
  if (conversationIds.length === 0) return new Map()
  const marks = reads
    .from(db)
    .where({ user_id: personRef })
    .whereIn('conversation_id', [...conversationIds])
  return new Map((await reads.list(marks)).map(({ conversationId, seq, at }) => [conversationId, { seq, at }]))
}

/** A conversation that nobody reads may have any number of messages, and each list of conversations counts them. */
export const mostUnread = 1_000

const unread = query(
  `select id as value, (
     select count(*) from (
       select 1 from messages
       where messages.conversation_id = conversations.id and messages.deleted_at is null
         and messages.seq > coalesce((
           select read_seq from conversation_reads
           where conversation_reads.conversation_id = conversations.id and conversation_reads.user_id = ?
         ), 0)
         and coalesce(messages.author_id, '') <> ?
       limit ${mostUnread}
     ) as counted
   ) as n
   from conversations where id in ?`,
  z.object({ value: text, n: int }),
)

/**
 * Counts messages of others after the person's mark that are not deleted, by conversation, up to `mostUnread`; conversations
 * without any have no entry.
 */
export async function countUnread(
  db: Db,
  personRef: PersonRef,
  conversationIds: readonly ConversationId[],
): Promise<Map<string, number>> {
  if (conversationIds.length === 0) return new Map()
  const counted = await unread.list(db, [personRef, personRef, conversationIds])
  return new Map(counted.filter(({ n }) => n > 0).map(({ value, n }) => [value, n]))
}
