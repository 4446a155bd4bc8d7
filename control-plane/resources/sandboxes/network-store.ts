import type { RunId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { networkDecisions, networkLimits, otherHosts } from '../../../shared/runs/network.ts'
import { int, text, time } from '../../db/columns.ts'
import { runId } from '../../db/id-columns.ts'
import type { Db, Tx } from '../../db/open.ts'
import { command } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

const network = table('run_network', {
  runId,
  host: text,
  decision: z.enum(networkDecisions),
  requests: int,
  /** The numbers of bytes that the sandboxes sent and received. */
  bytesSent: int,
  bytesReceived: int,
  firstAt: time,
  lastAt: time,
})
export type NetworkRow = RowOf<typeof network>

const ofRun = network.query('where run_id = ? order by first_at, host, decision')
/** Lists what the sandboxes of a run asked for, first asked first. */
export const listNetwork = (db: Db, runId: RunId): Promise<NetworkRow[]> => ofRun.list(db, [runId])

const add = command(`insert into run_network
  (run_id, host, decision, requests, bytes_sent, bytes_received, first_at, last_at) values (?, ?, ?, ?, ?, ?, ?, ?)
  on conflict (run_id, host, decision) do update set
    requests = run_network.requests + excluded.requests,
    bytes_sent = run_network.bytes_sent + excluded.bytes_sent,
    bytes_received = run_network.bytes_received + excluded.bytes_received,
    last_at = case when excluded.last_at > run_network.last_at then excluded.last_at else run_network.last_at end`)

/** Adds to what is told of a run. The number of its rows stays bounded, whatever names a sandbox makes up. */
export async function addNetwork(tx: Tx, runId: RunId, counted: readonly Omit<NetworkRow, 'runId'>[]): Promise<void> {
  const known = new Set((await listNetwork(tx, runId)).map(keyOf))
  // Rows are written in one order, so that two replicas do not wait for each other.
  for (const row of counted.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    const isRoom = known.has(keyOf(row)) || known.size < networkLimits.hosts
    const host = isRoom ? row.host : otherHosts.further
    known.add(keyOf({ ...row, host }))
    const { decision, requests, bytesSent, bytesReceived, firstAt, lastAt } = row
    await add(tx, [runId, host, decision, requests, bytesSent, bytesReceived, firstAt, lastAt])
  }
}

const keyOf = ({ host, decision }: Pick<NetworkRow, 'host' | 'decision'>) => `${host} ${decision}`
