import type { Knex } from 'knex'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineRoute } from '../../../shared/api/route.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'
import { implement } from '../../../control-plane/http/implement.ts'
import { writeStateOf } from '../../../control-plane/db/transaction.ts'
import { hasPostgres, openPostgres } from '../../kit/database.ts'
import { call, codeOf, startServer, type ServerOptions, type TestServer } from './server.ts'

// All connections are in use when a write with a key begins, which did nothing, so that its key may be used again.

const routes = {
  make: defineRoute({
    id: 'full_pool.make',
    endpoint: 'POST /make',
    summary: 'Make',
    body: z.object({ name: z.string() }),
    reply: z.object({ done: z.literal(true) }),
  }),
}
const acquireMs = 500
const table = 'kernel_test_rows'

interface Pool {
  max: number
  on(event: 'acquireFail', heard: () => void): void
}
interface PooledClient {
  pool: Pool
  acquireConnection(): Promise<unknown>
  releaseConnection(connection: unknown): Promise<void>
}

/** Says what the next requests meet, each one thing: it is done when the key is held, or within the work. */
interface Scene {
  server: TestServer
  before: (() => Promise<void>)[]
  within: ((db: Knex) => Promise<void>)[]
  make(key: string): Promise<[status: number, code: string | null]>
  rows(): Promise<number>
}

async function onScene(options: Partial<ServerOptions>, act: (scene: Scene) => Promise<void>): Promise<void> {
  const scene: Pick<Scene, 'before' | 'within'> = { before: [], within: [] }
  const implemented = implement(routes, {
    make: {
      before: async () => scene.before.shift()?.(),
      handle: async ({ db, body }) => {
        await db(table).insert({ name: body.name })
        await scene.within.shift()?.(db as Knex)
        return { done: true as const }
      },
    },
  })
  const server = await startServer({ routes: implemented, acquireMs, ...options })
  const { root } = server.database
  await root.schema.createTable(table, (t) => void t.text('name'))
  const make: Scene['make'] = async (key) => {
    const reply = await call(server, '/make', { body: { name: key }, headers: { 'idempotency-key': key } })
    return [reply.status, reply.status < 400 ? null : codeOf(reply)]
  }
  try {
    await act({ ...scene, server, make, rows: async () => (await root(table)).length })
  } finally {
    await server.close()
  }
}

/** Holds every connection until so many have waited for one in vain. */
async function fill({ server }: Scene, failures: number): Promise<void> {
  const client = server.database.root.client as PooledClient
  const held = await Promise.all(Array.from({ length: client.pool.max }, () => client.acquireConnection()))
  let failed = 0
  client.pool.on('acquireFail', () => {
    if (++failed === failures) for (const connection of held) void client.releaseConnection(connection)
  })
}

async function onPostgres(options: Partial<ServerOptions>, act: (scene: Scene) => Promise<void>): Promise<void> {
  const database = await openPostgres()
  try {
    await onScene({ url: database.url, ...options }, act)
  } finally {
    await database.close()
  }
}

function onBoth(name: string, act: (scene: Scene) => Promise<void>, options: Partial<ServerOptions> = {}): void {
  test(`${name} (sqlite)`, () => onScene(options, act))
  test.skipIf(!hasPostgres())(`${name} (postgres)`, () => onPostgres(options, act))
}

onBoth('a write that gets no connection leaves its key free', async (scene) => {
  scene.before.push(() => fill(scene, 1))
  expect(await scene.make('one')).toEqual([503, 'database_unavailable'])
  expect(await scene.rows()).toBe(0)
  expect(await scene.make('one')).toEqual([200, null])
  expect(await scene.rows()).toBe(1)
})

const timers: (() => void)[] = []
const after: World['after'] = (_ms, run) => {
  timers.push(run)
  return () => undefined
}

onBoth(
  'a key that cannot be freed for want of a connection is freed later',
  async (scene) => {
    timers.splice(0)
    scene.before.push(() => fill(scene, 2))
    expect(await scene.make('two')).toEqual([503, 'database_unavailable'])
    expect(await scene.make('two')).toEqual([409, 'idempotency_request_in_progress'])
    for (const run of timers.splice(0)) run()
    await expect.poll(() => scene.make('two')).toEqual([200, null])
    expect(await scene.rows()).toBe(1)
  },
  { world: { ...realWorld, after } },
)

test.skipIf(!hasPostgres())('a write that waits for its turn in vain leaves its key free', () =>
  onPostgres({}, async (scene) => {
    const { server } = scene
    const state = writeStateOf(server.database.root)
    state.writeMs = 100
    const leave = await state.localLocks.acquire([server.seed.workspaceId], 1_000)
    expect(await scene.make('three')).toEqual([504, 'query_timeout'])
    leave()
    state.writeMs = 20_000
    expect(await scene.make('three')).toEqual([200, null])
    expect(await scene.rows()).toBe(1)
  }),
)

test.skipIf(!hasPostgres())('a connection that is lost after the beginning leaves the effect unknown', () =>
  onPostgres({}, async (scene) => {
    scene.within.push(async (db) => void (await db.raw('select pg_terminate_backend(pg_backend_pid())')))
    expect(await scene.make('four')).toEqual([503, 'database_unavailable'])
    expect(await scene.make('four')).toEqual([409, 'idempotency_effect_unknown'])
  }),
)

test('a connection that the work waits for in vain leaves the effect unknown (sqlite)', () =>
  onScene({}, async (scene) => {
    // The one there is has the transaction.
    scene.within.push(async () => void (await scene.server.database.root(table)))
    expect(await scene.make('five')).toEqual([503, 'database_unavailable'])
    expect(await scene.make('five')).toEqual([409, 'idempotency_effect_unknown'])
  }))
