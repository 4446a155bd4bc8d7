import type { DeviceRef, RunId } from '../../shared/lib/ids.ts'
import type { DeviceMessage, ServerMessage } from '../../shared/device/protocol.ts'
import type { RunRow } from '../resources/runs/store.ts'

type KnownRun = (DeviceMessage & { type: 'hello' })['runs'][number]
type Verdict = (ServerMessage & { type: 'welcome' })['runs'][number]

/**
 * Decides what happens to each run when a device connects, by comparing the device's runs with the database (pure).
 * `rows` are the runs of hello by id; `held` are the live runs the database gives to this device.
 *
 *       device knows     database says               then
 *       any              ended                       closed (device: ended) or give up
 *       any              other fence or device       give up
 *       accepted, live   offered to it               claim; start it if it only accepted
 *       accepted         claimed by it               start it (again: the device starts a run once)
 *       live, ended      claimed by it               go on from what is stored
 *       nothing          offered to it               offer it again
 *       nothing          claimed by it               the device lost it: runner_lost
 */
export interface Reconciliation {
  verdicts: Verdict[]
  claim: RunRow[]
  start: RunRow[]
  cancel: RunRow[]
  lost: RunRow[]
  withdraw: RunRow[]
}

export function reconcile(input: {
  device: DeviceRef
  known: readonly KnownRun[]
  rows: ReadonlyMap<RunId, RunRow>
  held: readonly RunRow[]
}): Reconciliation {
  const result: Reconciliation = { verdicts: [], claim: [], start: [], cancel: [], lost: [], withdraw: [] }
  const mentioned = new Set<string>()
  for (const known of input.known) {
    const row = input.rows.get(known.runId)
    const ours = row && row.endedAt === null && row.fence === known.fence && row.device === input.device
    if (ours) mentioned.add(known.runId)
    result.verdicts.push({
      runId: known.runId,
      fence: known.fence,
      verdict: ours ? 'go_on' : row?.endedAt && known.state === 'ended' ? 'closed' : 'give_up',
      ackSeq: ours ? row.eventSeq : 0,
    })
    if (!ours) continue
    if (row.leaseState === 'offered') result.claim.push(row)
    if (known.state === 'accepted') result.start.push(row)
    if (known.state !== 'ended' && row.cancelRequestedAt !== null) result.cancel.push(row)
  }
  for (const run of input.held) {
    if (mentioned.has(run.id)) continue
    if (run.leaseState === 'offered') result.withdraw.push(run)
    else result.lost.push(run)
  }
  return result
}
