import type { ActorRef, ConversationId, MessageId, PersonUuid, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { authorTypes, conversationKinds } from '../../../shared/api/conversation-fields.ts'
import { harnessNames } from '../../../shared/runs/harnesses.ts'
import { reasoningEfforts, speeds } from '../../../shared/runs/spec.ts'
import { int, nullableText, nullableTime, time } from '../../db/columns.ts'
import { actorRef, conversationId, messageId, taskId, workspaceUuid } from '../../db/id-columns.ts'
import { lockRows } from '../../db/dialect.ts'
import { pageByTime, type TimePage } from '../../db/id-page.ts'
import { onlyContaining } from '../../db/list-filters.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { publish } from '../../db/transaction.ts'
import { hiddenTask } from '../projects/work-visibility.ts'

const conversations = table(
  'conversations',
  {
    id: conversationId,
    workspaceId: workspaceUuid,
    kind: z.enum(conversationKinds),
    title: nullableText,
    taskId: taskId.nullable(),
    /** The `usr_` and `agt_` ids of a dm that belongs to no task. */
    dmUser: nullableText,
    dmAgent: nullableText,
    createdByType: z.enum(authorTypes),
    createdByRef: actorRef.nullable(),
    messageSeq: int,
    messageCount: int,
    lastMessageId: messageId.nullable(),
    lastMessagePreview: nullableText,
    lastActivityAt: nullableTime,
    archivedAt: nullableTime,
    /** Settings of its runs that replace those of the agent. */
    modelId: nullableText,
    harness: z.enum(harnessNames).nullable(),
    reasoningEffort: z.enum(reasoningEfforts).nullable(),
    speed: z.enum(speeds).nullable(),
    runtimeChangedAt: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { createdByRef: 'created_by_id' } },
)
export type ConversationRow = RowOf<typeof conversations>

export type NewConversation = Pick<
  ConversationRow,
  | 'id'
  | 'workspaceId'
  | 'kind'
  | 'title'
  | 'taskId'
  | 'dmUser'
  | 'dmAgent'
  | 'createdByType'
  | 'createdByRef'
  | 'createdAt'
>

/** Returns false when the task has a conversation already, or the agent and the person have a dm. */
export async function insertConversation(db: Db, conversation: NewConversation): Promise<boolean> {
  const inserted: unknown[] = await db('conversations')
    .insert(conversations.toColumns({ ...conversation, updatedAt: conversation.createdAt }))
    .onConflict()
    .ignore()
    .returning('id')
  return inserted.length === 1
}

const byId = conversations.query('where id = ? and removed_at is null')

export async function findConversation(db: Db, id: ConversationId): Promise<ConversationRow | null> {
  return byId.first(db, [id])
}

/** Finds and locks a conversation until the transaction ends. */
export async function claimConversation(db: Db, id: ConversationId): Promise<ConversationRow | null> {
  return conversations.first(lockRows(conversations.from(db).where({ id }).whereNull('removed_at')))
}

export async function findConversationOfTask(db: Db, taskId: TaskId): Promise<ConversationRow | null> {
  return conversations.find(db, { taskId })
}

export async function findDm(
  db: Db,
  dm: { workspaceId: WorkspaceUuid; personRef: string; agentRef: string },
): Promise<ConversationRow | null> {
  return conversations.find(db, { workspaceId: dm.workspaceId, dmUser: dm.personRef, dmAgent: dm.agentRef })
}

export async function listConversationsByIds(
  db: Db,
  workspaceId: WorkspaceUuid,
  ids: readonly string[],
): Promise<ConversationRow[]> {
  if (ids.length === 0) return []
  return conversations.list(
    conversations
      .from(db)
      .where({ workspace_id: workspaceId })
      .whereIn('id', [...ids])
      .whereNull('removed_at'),
  )
}

/**
 * The viewer for whom a list is made; null sees all. A person sees channels, conversations of tasks they see, and their
 * own dms; an agent sees only those it takes part in. `id`: `usr_` or `agt_` id; `personUuid`: UUID.
 */
export type ConversationViewer =
  | { type: 'user'; id: ActorRef; personUuid: PersonUuid }
  | { type: 'agent'; id: ActorRef }
  | null

export interface ConversationFilter extends TimePage {
  workspaceId: WorkspaceUuid
  visibleTo: ConversationViewer
  /** `none`: those without a task. */
  task?: { id: TaskId } | 'none'
  /** `usr_` or `agt_` id. */
  participantRef?: ActorRef
  withArchived: boolean
  /** Text in the title, whatever its case. */
  q?: string
}

/** `activityOf` a row, as `conversations_by_activity` indexes it. */
const activity = 'coalesce(last_activity_at, created_at)'

/**
 * Lists conversations, those with the latest activity first (upwards from a cursor that pages back); returns one row more than
 * `limit`.
 */
export async function listConversations(db: Db, filter: ConversationFilter): Promise<ConversationRow[]> {
  const query = conversations.from(db).where({ workspace_id: filter.workspaceId }).whereNull('removed_at')
  if (filter.visibleTo) onlyVisible(query, filter.visibleTo)
  if (filter.task === 'none') void query.whereNull('task_id')
  else if (filter.task) void query.where({ task_id: filter.task.id })
  if (filter.participantRef !== undefined) onlyWith(query, filter.participantRef)
  if (!filter.withArchived) void query.whereNull('archived_at')
  onlyContaining(query, ['title'], filter.q)
  const { from } = filter
  // SQLite seeks an expression of an index by a comparison of that alone; it would walk from the top to each place.
  if (from) void query.whereRaw(`${activity} ${from.direction === 'before' ? '>=' : '<='} ?`, [from.at])
  return conversations.list(pageByTime(query, activity, filter))
}

function onlyVisible(query: Knex.QueryBuilder, viewer: NonNullable<ConversationViewer>): void {
  if (viewer.type === 'agent') return onlyWith(query, viewer.id)
  void query.where((any) => {
    void any.where((free) => {
      void free.whereNull('task_id').where((open) => {
        void open.where({ kind: 'channel' }).orWhereExists((own) => participation(own, viewer.id))
      })
    })
    void any.orWhere((ofTask) => {
      void ofTask
        .whereNotNull('task_id')
        .whereNotExists((hidden) => hiddenTask(hidden, { viewer, table: 'conversations' }))
    })
  })
}

/** Goes from the participant to the conversations, as there are many in which they are not. */
function onlyWith(query: Knex.QueryBuilder, subjectRef: ActorRef): void {
  void query.whereIn(
    'id',
    (own) => void own.from('conversation_participants').select('conversation_id').where({ subject_id: subjectRef }),
  )
}

function participation(query: Knex.QueryBuilder, subjectRef: ActorRef): void {
  void query
    .from('conversation_participants')
    .select('subject_id')
    .whereRaw('conversation_participants.conversation_id = conversations.id')
    .where({ subject_id: subjectRef })
}

/**
 * Writes title, archiving and runtime, not the fields that posts write meanwhile. Fails with `transient_conflict` when
 * somebody else changed these since they were read.
 */
export async function replaceConversation(db: Db, before: ConversationRow, after: ConversationRow): Promise<void> {
  await conversations.replace(db, before, after)
}

const messageCounter = z.object({ message_seq: int })

/**
 * Reserves the next message's number and returns it; null when the conversation is gone. Other posts wait until the
 * transaction ends.
 */
export async function recordPost(
  db: Db,
  post: { conversationId: ConversationId; messageId: MessageId; preview: string; at: number },
): Promise<number | null> {
  const changed: unknown[] = await db('conversations')
    .where({ id: post.conversationId })
    .whereNull('removed_at')
    .update({
      message_seq: db.raw('message_seq + 1'),
      message_count: db.raw('message_count + 1'),
      last_message_id: post.messageId,
      last_message_preview: post.preview,
      last_activity_at: post.at,
      updated_at: post.at,
    })
    .returning('message_seq')
  return changed.length === 0 ? null : messageCounter.parse(changed[0]).message_seq
}

/** Updates the preview of the last message after it was edited. */
export async function replacePreview(
  db: Db,
  last: { conversationId: ConversationId; messageId: MessageId; preview: string },
) {
  await db('conversations')
    .where({ id: last.conversationId, last_message_id: last.messageId })
    .update({ last_message_preview: last.preview })
}

/** Records the removal of a message; `last` is the newest of those left. */
export async function recordRemoval(
  db: Db,
  removal: { conversationId: ConversationId; last: { messageId: MessageId; preview: string } | null; at: number },
): Promise<void> {
  await db('conversations')
    .where({ id: removal.conversationId })
    .update({
      message_count: db.raw('message_count - 1'),
      last_message_id: removal.last?.messageId ?? null,
      last_message_preview: removal.last?.preview ?? null,
      updated_at: removal.at,
    })
}

/** The name of the job that removes what a conversation leaves behind. */
export const conversationRemovalJob = 'remove_conversation'

/**
 * Makes the conversation gone for everybody, with its waiting wakes. Its messages, participants and marks go later, since
 * there may be any number of them.
 */
export async function removeConversation(
  db: Db,
  { id, workspaceId }: Pick<ConversationRow, 'id' | 'workspaceId'>,
  at: number,
): Promise<void> {
  // Written out, as the index of those that wait has it.
  await db('wakes').where({ conversation_id: id }).whereRaw("state = 'waiting'").delete()
  await db('conversations').where({ id }).update({ removed_at: at })
  await publish(db, { topic: 'job.requested', key: id, payload: { job: conversationRemovalJob, workspaceId }, at })
}
