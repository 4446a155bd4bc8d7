import { expect, test } from 'vitest'
import { createBus, type Bus } from '../../control-plane/db/bus.ts'
import { silentMsOf } from '../../control-plane/db/open.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { hasPostgres, openPostgres } from '../kit/database.ts'

/** Tests what replicas of the control plane tell each other beside the outbox. */

test.skipIf(!hasPostgres())('signals of one replica reach the other one, by one query at a time', async () => {
  const warnings: string[] = []
  const onWarning = ({ message }: Error) => void warnings.push(message)
  process.on('warning', onWarning)
  const database = await openPostgres()
  const make = (): Bus =>
    createBus({
      root: database.root,
      dialect: 'postgres',
      databaseUrl: database.url,
      silentMs: silentMsOf({}),
      world: realWorld,
      log: { warn: (fields, message) => void warnings.push(message) },
    })
  const [here, there] = [make(), make()]
  try {
    await here.start()
    await there.start()
    const keys = Array.from({ length: 40 }, (_, at) => `run:run_${at}`)
    const heard = new Set<string>()
    for (const key of keys) there.onSignal(key, () => void heard.add(key))
    for (const [at, key] of keys.entries()) {
      here.signal(key)
      // Some while others are on their way.
      if (at % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await expect.poll(() => heard.size, { timeout: 5_000 }).toBe(keys.length)
    expect(warnings).toEqual([])
  } finally {
    await here.stop()
    await there.stop()
    await database.close()
    process.off('warning', onWarning)
  }
})

test.skipIf(!hasPostgres())('a bus that is stopped while it connects leaves no connection behind', async () => {
  const database = await openPostgres()
  const log = { warn: () => undefined }
  try {
    const { root, url } = database
    const bus = createBus({
      root,
      dialect: 'postgres',
      databaseUrl: url,
      silentMs: silentMsOf({}),
      world: realWorld,
      log,
    })
    const starting = bus.start()
    await bus.stop()
    await starting
    const connections = async () => {
      const { rows } = (await root.raw(
        "select 1 from pg_stat_activity where application_name = 'svc-server-bus' and datname = current_database()",
      )) as { rows: unknown[] }
      return rows.length
    }
    await expect.poll(connections, { timeout: 5_000 }).toBe(0)
    await bus.stop()
  } finally {
    await database.close()
  }
})
