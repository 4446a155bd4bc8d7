import { z } from 'zod'
import type { DeviceRef, RunId, WebhookId, WorkflowRunId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { deleteInBatches, dialectOfDb, oldestOpen, oldestOpenTransaction } from './dialect.ts'
import type { Db } from './handle.ts'
import { query, command, sending } from './statement.ts'

/**
 * Happenings that other parts, on this replica or another, must act on. An entry is written in the transaction of the change; the bus reads
 * them once it is committed.
 */
export type Topic = keyof Keys

/** The type of the key of each topic's entries. */
interface Keys {
  'wake.requested': string
  'run.queued': RunId
  'run.ended': RunId
  'run.cancel': RunId
  'device.changed': DeviceRef
  'device.request': DeviceRef
  'device.reply': string
  'link.challenge': DeviceRef
  'workflow.changed': WorkflowRunId
  'job.requested': string
  'webhook.due': WebhookId
}

export const channel = 'svc_outbox'

export interface OutboxEntry {
  topic: Topic
  key: string
  payload?: Record<string, unknown>
  at: number
}

/** An entry as it stands in the outbox of PostgreSQL. */
export interface WrittenEntry extends OutboxEntry {
  seq: number
  /** The transaction that wrote it. */
  xid: number
}

const into = 'insert into outbox (topic, key, payload, created_at)'
const insertOne = command(`${into} values (?, ?, ?, ?)`)
const inserting = (returned: string) =>
  sending(
    `with published as (
       ${into} select topic, key, payload, at
       from unnest(?::text[], ?::text[], ?::text[], ?::bigint[]) with ordinality as entry (topic, key, payload, at, place)
       order by place returning seq, xid
     ) select ${returned} from published order by seq`,
    z.object({ seq: z.coerce.number(), xid: z.coerce.number() }),
  )
const insertAll = inserting('seq, xid')
/** Wakes every process that listens when the transaction commits. PostgreSQL commits only one such transaction at a time. */
const insertAllAndNotify = inserting(`seq, xid, pg_notify('${channel}', '')`)

interface SendOptions {
  /** The transaction itself wakes the other processes: nobody in this one tells them after the commit. */
  notifies: boolean
}

/**
 * Writes the entries in this order. Returns them as they were written, on PostgreSQL; there a reader finds out by them what it was given.
 */
export async function writeEntries(
  db: Db,
  entries: readonly OutboxEntry[],
  options: SendOptions,
): Promise<WrittenEntry[]> {
  return (await sendEntries(db, entries, options)).written
}

/** Resolves once they are sent, which is before PostgreSQL has written them. */
export async function sendEntries(
  db: Db,
  entries: readonly OutboxEntry[],
  { notifies }: SendOptions,
): Promise<{ written: Promise<WrittenEntry[]> }> {
  const payloads = entries.map(({ payload = {} }) => JSON.stringify(payload))
  if (dialectOfDb(db) === 'sqlite') {
    for (const [place, { topic, key, at }] of entries.entries()) await insertOne(db, [topic, key, payloads[place]!, at])
    return { written: Promise.resolve([]) }
  }
  const [topics, keys] = [entries.map(({ topic }) => topic), entries.map(({ key }) => key)]
  const insert = notifies ? insertAllAndNotify : insertAll
  const { answer } = await insert(db, [topics, keys, payloads, entries.map(({ at }) => at)])
  return { written: answer.then((rows) => rows.map((place, at) => ({ ...entries[at]!, ...place }))) }
}

export interface OutboxRow {
  seq: number
  /** A `Topic`, or one of a later release that runs beside this one. */
  topic: string
  /** Id of the run or device concerned. */
  key: string
  payload: Record<string, unknown>
}

/** An entry of the outbox as the handlers of its topic get it. */
export type TopicRow<Of extends Topic> = Omit<OutboxRow, 'key' | 'payload'> & { key: Keys[Of]; payload: Payload }
interface Payload extends Readonly<Record<string, unknown>> {
  workspaceId?: WorkspaceUuid
}

const rowSchema = z.object({
  seq: z.coerce.number(),
  topic: z.string(),
  key: z.string(),
  payload: z.string(),
  xid: z.coerce.number(),
  horizon: z.coerce.number(),
})

/**
 * The position of a reader. Numbers of rows are given out before their transactions end, so a reader that went by them alone would
 * pass a row that is committed late. On PostgreSQL it goes by transactions: all below `from` had ended when they were
 * read, and the reader has every row of theirs. The reader waits for no transaction: one of another database of the same
 * server may stay open for hours, which holds back `from`, but no row. SQLite has one writer, so there `seq` is enough.
 */
export interface OutboxCursor {
  from: number
  /** Rows of later transactions that the reader has: the number of each, with its transaction. */
  given: ReadonlyMap<number, number>
  seq: number
}

const fields = 'select seq, topic, key, payload'
// SQLite has one writer, so no row comes late: -1 is below every horizon, and the reader remembers no row.
const after = query(`${fields}, -1 as xid, 0 as horizon from outbox where seq > ? order by seq limit ?`, rowSchema)
const notGiven = query(
  `${fields}, xid, ${oldestOpen} as horizon from outbox where xid >= ? and not (seq in ?) order by seq limit ?`,
  rowSchema,
  // A reader asks for the last few of very many rows.
  { isPrepared: false },
)

/**
 * Rows that are committed and that this reader has not got yet. Each comes with its transaction (`xid`) and with the oldest
 * transaction that is still open (`horizon`). A row may be committed after one with a higher number, so the query excludes
 * each row that the reader has, and not all below a number.
 */
function newRows(db: Db, { from, given, seq }: OutboxCursor, limit: number): Promise<z.output<typeof rowSchema>[]> {
  return dialectOfDb(db) === 'sqlite'
    ? after.list(db, [seq, limit])
    : notGiven.list(db, [from, [...given.keys()], limit])
}

/** Rows that the reader has not got yet, in the order of their numbers. A later call may return lower numbers. */
export async function listOutbox(
  db: Db,
  cursor: OutboxCursor,
  limit: number,
): Promise<{ rows: OutboxRow[]; next: OutboxCursor; hasMore: boolean }> {
  const parsed = await newRows(db, cursor, limit)
  const rows = parsed.map(({ seq, topic, key, payload }) => ({
    seq,
    topic,
    key,
    payload: JSON.parse(payload) as Record<string, unknown>,
  }))
  const last = parsed.at(-1)
  if (last === undefined) return { rows, next: cursor, hasMore: false }
  const hasMore = rows.length === limit
  // A page that is full may have left out rows of transactions below its horizon.
  const from = hasMore ? cursor.from : last.horizon
  const given = [...cursor.given, ...parsed.map(({ seq, xid }) => [seq, xid] as const)].filter(([, xid]) => xid >= from)
  return { rows, next: { from, given: new Map(given), seq: last.seq }, hasMore }
}

/** The position of a reader that starts now and needs nothing that came before. */
export async function outboxEnd(db: Db): Promise<OutboxCursor> {
  const last: unknown = await db('outbox').max({ seq: 'seq' }).first()
  const seq = Number((last as { seq: unknown } | undefined)?.seq ?? 0)
  const start = { from: await oldestOpenTransaction(db), given: new Map<number, number>(), seq }
  const there = await newRows(db, start, Number.MAX_SAFE_INTEGER)
  return { ...start, given: new Map(there.map((row) => [row.seq, row.xid])) }
}

export async function pruneOutbox(db: Db, before: number): Promise<number> {
  return deleteInBatches(db, 'outbox', db('outbox').where('created_at', '<', before))
}
