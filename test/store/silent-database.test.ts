import { expect, test } from 'vitest'
import { createBus } from '../../control-plane/db/bus.ts'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import { migrate } from '../../control-plane/db/migrate.ts'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { inTransaction, publish } from '../../control-plane/db/transaction.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { hasPostgres, openPostgres } from '../kit/database.ts'
import { startProxy, type TestProxy } from '../kit/proxy.ts'

// The machine of the database is gone without a word, as after a failover: what is sent to it is lost, and nothing is closed.

const silentMs = 400

async function withProxy(work: (of: { database: Database; proxy: TestProxy; url: string }) => Promise<void>) {
  const postgres = await openPostgres()
  const { pathname, searchParams } = new URL(postgres.url)
  const [folder, port] = [searchParams.get('host')!, searchParams.get('port') ?? '5432']
  const proxy = await startProxy(() => ({ path: `${folder}/.s.PGSQL.${port}` }))
  const url = `postgres://${searchParams.get('user')!}@${new URL(proxy.url).host}${pathname}`
  const database = openDatabase({ url, silentMs, acquireMs: 2_000 })
  try {
    await work({ database, proxy, url })
  } finally {
    await database.close()
    await proxy.close()
    await postgres.close()
  }
}

const troubleIn = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error: unknown) => databaseTroubleOf(error),
  )

test.skipIf(!hasPostgres())('statements and connections are given up, and the next ones go to who is there then', () =>
  withProxy(async ({ database: { root }, proxy }) => {
    await root.raw('select 1')
    // A rest that is longer than the limit switches nothing off.
    await realWorld.sleep(2 * silentMs)
    proxy.halfOpen()
    const lost = [root.raw('select 1'), inTransaction(root, (tx) => tx.raw('select 2'), { locks: ['wks_1'] })]
    expect(await Promise.all(lost.map(troubleIn))).toEqual(['database_unavailable', 'none'])
    expect(await troubleIn(root.raw('select 3'))).toBe('none')
  }),
)

test.skipIf(!hasPostgres())('a connection that the database ended under a statement is not given out again', () =>
  withProxy(async ({ database: { root }, url }) => {
    const other = openDatabase({ url })
    try {
      for (let round = 0; round < 10; round++) {
        const { rows } = await root.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid')
        const asked = troubleIn(root.raw('select pg_sleep(10)'))
        await other.root.raw('select pg_terminate_backend(?)', [rows[0]!.pid])
        expect([await asked, await troubleIn(root.raw('select 1'))]).toEqual(['database_unavailable', 'none'])
      }
    } finally {
      await other.close()
    }
  }),
)

test.skipIf(!hasPostgres())('a connection that rests, and a migration that takes long, are left alone', () =>
  withProxy(async ({ database: { root } }) => {
    const backend = async () =>
      (await root.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid')).rows[0]!.pid
    const before = await backend()
    await realWorld.sleep(3 * silentMs)
    expect(await backend()).toBe(before)
    const slow = {
      version: 9_001,
      name: 'slow',
      up: async (db: typeof root) => void (await db.raw(`select pg_sleep(${(3 * silentMs) / 1_000})`)),
    }
    expect(await migrate(root, 1, [slow])).toBe(1)
    await root('schema_migrations').where({ version: 9_001 }).delete()
  }),
)

test.skipIf(!hasPostgres())('replicas hear of each other again', () =>
  withProxy(async ({ database: { root }, proxy, url }) => {
    const log = { warn: () => undefined }
    const bus = createBus({ root, dialect: 'postgres', databaseUrl: url, world: realWorld, log, tickMs: 50, silentMs })
    const heard: string[] = []
    bus.on('run.cancel', ({ key }) => heard.push(key))
    await bus.start()
    try {
      await expect.poll(() => listeners(root)).toBe(1)
      proxy.halfOpen()
      bus.signal('run:run_1')
      // What was lost is not closed on its side.
      await expect.poll(() => listeners(root)).toBe(2)
      await inTransaction(root, (tx) => publish(tx, { topic: 'run.cancel', key: 'run_1', payload: {}, at: 1 }))
      await expect.poll(() => heard).toEqual(['run_1'])
    } finally {
      await bus.stop()
    }
  }),
)

test.skipIf(!hasPostgres())('a replica that stops waits only a moment until the others know what it had to tell', () =>
  withProxy(async ({ database: { root }, proxy, url }) => {
    const warnings: string[] = []
    const log = { warn: (_: object, message: string) => void warnings.push(message) }
    const bus = createBus({ root, dialect: 'postgres', databaseUrl: url, world: realWorld, log, silentMs: 3_600_000 })
    await bus.start()
    proxy.halfOpen()
    bus.signal('run:run_1')
    await bus.stop()
    expect(warnings).toContain('other replicas were not told of news')
  }),
)

async function listeners(root: Database['root']): Promise<number> {
  const { rows } = (await root.raw(
    "select pid from pg_stat_activity where application_name = 'svc-server-bus' and datname = current_database()",
  )) as { rows: unknown[] }
  return rows.length
}
