import { expect, test } from 'vitest'
import type { DeviceMessage } from '../../shared/device/protocol.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { ClaimReports } from './claim-state.ts'

const claimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
const of = (bytes: number) => ({ runId: 'run_1', fence: 1, lastSeq: 2, ackedSeq: 1, rows: 1, bytes, ended: false })

function reports(runs: () => ReturnType<typeof of>[]) {
  const sent: DeviceMessage[] = []
  const send = (message: DeviceMessage) => sent.push(message) > 0
  const spool = { runs } as unknown as ConstructorParameters<typeof ClaimReports>[0]['spool']
  return { sent, reports: new ClaimReports({ world: realWorld, spool, claimState: () => claimState, send }) }
}

test('a heartbeat says what the spool holds, whether or not anything changed', () => {
  const { sent, reports: claims } = reports(() => [of(10), of(5)])
  expect([claims.beat(), claims.beat()]).toEqual([true, true])
  const beat = { type: 'heartbeat', claimState, spoolBytes: 15 }
  expect(sent).toEqual([beat, beat])
})

test('a spool that cannot be read keeps the device from no heartbeat', () => {
  const { sent, reports: claims } = reports(() => {
    throw new Error('disk I/O error')
  })
  claims.beat()
  expect(sent).toEqual([{ type: 'heartbeat', claimState }])
})
