import { dialectOfDb } from './dialect.ts'
import type { Db } from './handle.ts'
import { command } from './statement.ts'

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

const into = 'insert into outbox (topic, key, payload, created_at)'
const insertOne = command(`${into} values (?, ?, ?, ?)`)
// Every process that listens is woken when the transaction commits.
const insertAll = command(
  `with published as (
     ${into} select topic, key, payload, at
     from unnest(?::text[], ?::text[], ?::text[], ?::bigint[]) with ordinality as entry (topic, key, payload, at, place)
     order by place returning seq
   ) select pg_notify('${channel}', '') from published limit 1`,
)

/** In this order. */
export async function writeEntries(db: Db, entries: readonly OutboxEntry[]): Promise<void> {
  const payloads = entries.map(({ payload = {} }) => JSON.stringify(payload))
  if (dialectOfDb(db) === 'sqlite') {
    for (const [place, { topic, key, at }] of entries.entries()) await insertOne(db, [topic, key, payloads[place]!, at])
    return
  }
  const [topics, keys] = [entries.map(({ topic }) => topic), entries.map(({ key }) => key)]
  await insertAll(db, [topics, keys, payloads, entries.map(({ at }) => at)])
}
