import { z } from 'zod'
import { dialectOfDb } from './dialect.ts'
import type { Db } from './handle.ts'
import { command, sending } from './statement.ts'

/**
 * Happenings that other parts, on this replica or another, must act on. Written in the transaction of the change; the bus
 * reads them once it is committed.
 */
export type Topic =
  | 'wake.requested'
  | 'run.queued'
  | 'run.ended'
  | 'run.cancel'
  | 'device.changed'
  | 'device.request'
  | 'device.reply'
  | 'link.challenge'
  | 'workflow.changed'

export const channel = 'svc_outbox'

export interface OutboxEntry {
  topic: Topic
  key: string
  payload?: Record<string, unknown>
  at: number
}

/** One as it stands in the outbox of PostgreSQL. */
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

export interface SendOptions {
  /** The transaction itself wakes the other processes: nobody in this one tells them after the commit. */
  notifies: boolean
}

/** In this order. Returns them as they were written, on PostgreSQL; there a reader finds out by them what it was given. */
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
