import { expect, test } from 'vitest'
import { DatabaseClock } from '../../../control-plane/db/database-clock.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { movableWorld, TestServer } from '../../kit/server.ts'
import { begin, outcome, poll } from '../sign-in/device-client.ts'

// Replicas on machines whose clocks differ by ten minutes.

const minutes = 60_000

test.skipIf(!hasPostgres()).each([10 * minutes, -10 * minutes])(
  'a replica whose machine is %i ms ahead knows what is linked to the other one, and goes on with sign-ins that began there',
  async (aheadMs) => {
    const first = await TestServer.start({ database: 'postgres' })
    const own = movableWorld()
    own.advance(aheadMs)
    const clock = new DatabaseClock({ root: first.database.root, world: own, log: silentLog })
    await clock.start()
    const world = { ...clock.world, advance: (ms: number) => own.advance(ms) }
    const second = await TestServer.start({ beside: first, world })
    const device = await FakeDevice.connect(first)
    try {
      for (const server of [first, second]) {
        const { devices } = await server.ok('/devices')
        expect(devices).toMatchObject([{ liveness: { status: 'connected' } }])
      }
      for (const [here, there] of [
        [first, second],
        [second, first],
      ] as const) {
        const { body } = await begin(here)
        expect(outcome(await poll(there, body.device_code))).toBe('400 authorization_pending')
      }
    } finally {
      await device.disconnect()
      await second.stop()
      clock.stop()
      await first.stop()
    }
  },
)
