import { expect, test } from 'vitest'
import { createBus } from '../../control-plane/db/bus.ts'
import { openDatabase, silentMsOf, type Database } from '../../control-plane/db/open.ts'
import type { WrittenEntry } from '../../control-plane/db/outbox.ts'
import { inTransaction, publish, writeStateOf } from '../../control-plane/db/transaction.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { hasPostgres, openPostgres, openSqlite, type PostgresDatabase } from '../kit/database.ts'

// Tests what replicas of the control plane tell each other beside the outbox.

/** A bus of a replica, and what it warned of. */
function busOn({ root, url }: Pick<PostgresDatabase, 'root' | 'url'>) {
  const warnings: string[] = []
  const bus = createBus({
    root,
    dialect: 'postgres',
    databaseUrl: url,
    silentMs: silentMsOf({}),
    // What is heard of in time is heard of without a look of its own.
    tickMs: 3_600_000,
    world: realWorld,
    log: { warn: (_, message) => void warnings.push(message) },
  })
  return { root, bus, warnings }
}

test.skipIf(!hasPostgres())('signals of one replica reach the other one, by one query at a time', async () => {
  const warnings: string[] = []
  const onWarning = ({ message }: Error) => void warnings.push(message)
  process.on('warning', onWarning)
  const database = await openPostgres()
  const buses = [busOn(database), busOn(database)] as const
  const [{ bus: here }, { bus: there }] = buses
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
    await expect.poll(() => heard.size).toBe(keys.length)
    expect([...warnings, ...buses.flatMap((each) => each.warnings)]).toEqual([])
  } finally {
    await here.stop()
    await there.stop()
    await database.close()
    process.off('warning', onWarning)
  }
})

test.skipIf(!hasPostgres())('a bus that is stopped while it connects leaves no connection behind', async () => {
  const database = await openPostgres()
  const { root, bus } = busOn(database)
  try {
    const starting = bus.start()
    await bus.stop()
    await starting
    const connections = async () => {
      const { rows } = (await root.raw(
        "select 1 from pg_stat_activity where application_name = 'svc-server-bus' and datname = current_database()",
      )) as { rows: unknown[] }
      return rows.length
    }
    await expect.poll(connections).toBe(0)
    await bus.stop()
  } finally {
    await database.close()
  }
})

test.skipIf(!hasPostgres())(
  'what a process published is given out there once it is committed, elsewhere soon, and everywhere once',
  async () => {
    const database = await openPostgres()
    const other = openDatabase({ url: database.url, poolSize: 2 })
    const make = ({ root }: Pick<PostgresDatabase, 'root'>) => {
      const made = busOn({ root, url: database.url })
      const heard: string[] = []
      made.bus.on('run.queued', ({ key, payload }) => heard.push(`${key} ${JSON.stringify(payload)}`))
      return { ...made, heard }
    }
    const [here, there] = [make(database), make(other)]
    const told: (readonly WrittenEntry[])[] = []
    writeStateOf(database.root).onPublished.add((written) => void told.push(written))
    const row = (key: string) => ({ topic: 'run.queued', key, payload: { n: key.length }, at: 1 }) as const
    try {
      await here.bus.start()
      await there.bus.start()
      const all: string[] = []
      for (let at = 0; at < 20; at++) {
        const { root, heard } = at % 2 === 0 ? here : there
        const keys = [`a${at}`, `bb${at}`]
        await inTransaction(root, async (tx) => {
          for (const key of keys) await publish(tx, row(key))
          expect(heard).not.toContain(`a${at} {"n":${keys[0]!.length}}`)
        })
        const said = keys.map((key) => `${key} {"n":${key.length}}`)
        expect(heard.slice(-2)).toEqual(said)
        all.push(...said)
      }
      await expect
        .poll(() => [here, there].map(({ heard }) => heard.toSorted()))
        .toEqual([all.toSorted(), all.toSorted()])
      // A transaction of knex's own tells nobody in this process of its commit.
      await here.root.transaction((tx) => publish(tx, row('foreign')))
      all.push('foreign {"n":7}')
      for (const { heard } of [here, there]) await expect.poll(() => heard.at(-1)).toBe('foreign {"n":7}')
      // Whoever reads the outbox again, or is told late of what was read meanwhile, hears nothing twice.
      await publish(there.root, row('last'))
      await expect.poll(() => here.heard.at(-1)).toBe('last {"n":4}')
      for (const written of told.slice()) for (const tell of writeStateOf(database.root).onPublished) tell(written)
      await publish(there.root, row('end'))
      await expect.poll(() => here.heard.at(-1)).toBe('end {"n":3}')
      for (const { heard } of [here, there])
        expect(heard.toSorted()).toEqual([...all, 'last {"n":4}', 'end {"n":3}'].toSorted())
      expect([...here.warnings, ...there.warnings]).toEqual([])
    } finally {
      await here.bus.stop()
      await there.bus.stop()
      await other.root.destroy()
      await database.close()
    }
  },
)

test.skipIf(!hasPostgres())('who fails at an entry keeps nobody else from the next, and not its commit', async () => {
  const database = await openPostgres()
  const { root, bus, warnings } = busOn(database)
  const heard: string[] = []
  bus.on('run.queued', ({ key }) => {
    if (key === 'bad') throw new Error('cannot')
    heard.push(key)
  })
  try {
    await bus.start()
    await inTransaction(root, async (tx) => {
      for (const key of ['bad', 'good']) await publish(tx, { topic: 'run.queued', key, at: 1 })
    })
    expect(heard).toEqual(['good'])
    expect(warnings).toEqual(['an entry of the outbox was not acted on'])
  } finally {
    await bus.stop()
    await database.close()
  }
})

test.skipIf(!hasPostgres())(
  'a process without a bus wakes those that have one, and so does one whose bus was stopped',
  async () => {
    const database = await openPostgres()
    const other = openDatabase({ url: database.url, poolSize: 2 })
    const [here, there] = [busOn(database), busOn({ root: other.root, url: database.url })]
    const heard: string[] = []
    here.bus.on('run.queued', ({ key }) => heard.push(key))
    const row = (key: string) => ({ topic: 'run.queued', key, at: 1 }) as const
    try {
      await here.bus.start()
      await inTransaction(other.root, async (tx) => publish(tx, row('in a transaction')))
      await expect.poll(() => heard).toEqual(['in a transaction'])
      await there.bus.start()
      await publish(other.root, row('before the stop'))
      await there.bus.stop()
      await expect.poll(() => heard.at(-1)).toBe('before the stop')
      await publish(other.root, row('after the stop'))
      await expect.poll(() => heard.at(-1)).toBe('after the stop')
      expect([...here.warnings, ...there.warnings]).toEqual([])
    } finally {
      await here.bus.stop()
      await other.root.destroy()
      await database.close()
    }
  },
)

async function readsPastFailures({ root, dialect }: Database, databaseUrl: string): Promise<void> {
  const logged: { message: string; key: unknown; attempts: unknown }[] = []
  const bus = createBus({
    root,
    dialect,
    databaseUrl,
    silentMs: silentMsOf({}),
    tickMs: 20,
    world: realWorld,
    log: {
      warn: (fields, message) => {
        const { key, attempts } = fields as Record<string, unknown>
        logged.push({ message, key, attempts })
      },
    },
  })
  const failures = new Map([
    ['twice', 2],
    ['always', Infinity],
  ])
  const heard: string[] = []
  bus.on('run.queued', ({ key }) => {
    const left = failures.get(key) ?? 0
    failures.set(key, left - 1)
    if (left > 0) throw new Error('cannot')
    heard.push(key)
  })
  const beside: string[] = []
  bus.on('run.queued', ({ key }) => void beside.push(key))
  const removed: string[] = []
  const off = bus.on('run.queued', ({ key }) => {
    removed.push(key)
    off()
    throw new Error('gone')
  })
  try {
    await bus.start()
    // A transaction of knex's own is found by reading the outbox.
    await root.transaction(async (tx) => {
      for (const key of ['twice', 'always', 'good']) await publish(tx, { topic: 'run.queued', key, at: 1 })
    })
    await expect.poll(() => logged.at(-1)?.message).toBe('an entry of the outbox is given up')
    expect(heard).toEqual(['good', 'twice'])
    expect(beside).toEqual(['twice', 'always', 'good'])
    expect(removed).toEqual(['twice'])
    expect(logged.filter(({ key }) => key === 'always').map(({ attempts }) => attempts)).toEqual([1, 2, 3, 4, 5])
    expect(logged.map(({ message }) => message)).not.toContain('the outbox could not be read')
  } finally {
    await bus.stop()
  }
}

const past = 'who fails at an entry that is read keeps nobody from it or from the next, and gets it again'
test(`${past} (sqlite)`, async () => {
  const database = openSqlite()
  try {
    await readsPastFailures(database, ':memory:')
  } finally {
    await database.close()
  }
})
test.skipIf(!hasPostgres())(`${past} (postgres)`, async () => {
  const database = await openPostgres()
  try {
    await readsPastFailures(database, database.url)
  } finally {
    await database.close()
  }
})

test('a bus that cannot read the outbox lags, and what nobody can act on is told of until it is given up', async () => {
  const database = openSqlite()
  const { root } = database
  let now = 0
  const ticks: (() => void)[] = []
  const after = (_: number, tick: () => void) => {
    ticks.push(tick)
    return () => undefined
  }
  const ends: string[] = []
  const bus = createBus({
    root,
    dialect: 'sqlite',
    databaseUrl: ':memory:',
    silentMs: 1,
    world: { ...realWorld, monotonic: () => now, after },
    log: { warn: () => undefined },
    onFailed: (end) => void ends.push(end),
  })
  await bus.start()
  now = 1_000
  expect(bus.lagMs()).toBe(1_000)
  bus.poke()
  await expect.poll(() => bus.lagMs()).toBe(0)
  await root.schema.renameTable('outbox', 'elsewhere')
  now = 60_000
  bus.poke()
  await root.schema.renameTable('elsewhere', 'outbox')
  expect(bus.lagMs()).toBe(59_000)
  bus.poke()
  await expect.poll(() => bus.lagMs()).toBe(0)

  bus.on('run.queued', () => {
    throw new Error('no')
  })
  await publish(root, { topic: 'run.queued', key: 'run_1', at: 1 })
  await expect.poll(() => ends).toEqual(['again'])
  for (let tick = 0; tick < 6; tick++) ticks.shift()!()
  expect(ends).toEqual(['again', 'again', 'again', 'again', 'given_up'])
  await bus.stop()
  await database.close()
})
