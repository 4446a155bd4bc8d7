import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { fail } from '../../../shared/api/errors.ts'
import { defineRoute } from '../../../shared/api/route.ts'
import { answer, implement } from '../../../control-plane/http/implement.ts'
import { createVault } from '../../../control-plane/vault/vault.ts'
import { hasPostgres, openPostgres } from '../../kit/database.ts'
import { call, codeOf, startServer, type TestServer } from './server.ts'

const made = z.object({ n: z.number() })
const body = z.object({ name: z.string().optional(), mode: z.string().optional() })
const routes = {
  make: defineRoute({
    id: 'keyed.make',
    endpoint: 'POST /make',
    summary: 'Make',
    body,
    reply: made,
    status: 201,
    otherReplies: { 202: made },
    errors: ['run.not_retriable'],
  }),
  must: defineRoute({
    id: 'keyed.must',
    endpoint: 'POST /must',
    summary: 'Make, with a key',
    body,
    idempotency: 'required',
    reply: made,
  }),
  free: defineRoute({
    id: 'keyed.free',
    endpoint: 'POST /free',
    summary: 'Make, without keys',
    idempotency: 'none',
    reply: made,
  }),
  whisper: defineRoute({
    id: 'keyed.whisper',
    endpoint: 'POST /whisper',
    summary: 'Make a secret',
    isSecret: true,
    reply: z.object({ word: z.string() }),
  }),
  gone: defineRoute({ id: 'keyed.gone', endpoint: 'DELETE /gone', summary: 'Remove' }),
  read: defineRoute({ id: 'keyed.read', endpoint: 'GET /make', summary: 'Read', reply: made }),
}

/** Each handler leaves a row, by which a test sees whether the work was done once. */
const table = 'kernel_test_rows'
interface Gate {
  entered: () => void
  hold: Promise<void>
}
function handlers(gate: Gate | null) {
  let n = 0
  return implement(routes, {
    make: async ({ body, db }) => {
      n++
      await db(table).insert({ name: body.name ?? '' })
      if (body.mode === 'forbid') return fail('http_exception')
      if (body.mode === 'unavailable') return fail('run.not_retriable', { status: 503 })
      if (body.mode === 'internal') return fail('internal_error')
      if (body.mode?.startsWith('code '))
        throw Object.assign(new Error('of the database'), { code: body.mode.slice(5) })
      if (body.mode === 'crash') throw new Error('something broke')
      if (body.mode === 'accept') return answer(202, { n }, { 'X-Made': 'later' })
      return { n }
    },
    must: async () => {
      gate?.entered()
      await gate?.hold
      return { n: ++n }
    },
    free: () => Promise.resolve({ n: ++n }),
    whisper: () => Promise.resolve({ word: `open sesame ${++n}` }),
    gone: async ({ db }) => void (await db(table).insert({ name: 'gone' })),
    read: () => Promise.resolve({ n }),
  })
}

let server: TestServer
beforeAll(async () => {
  server = await startServer({ routes: handlers(null) })
  await server.database.root.schema.createTable(table, (t) => void t.text('name'))
})
afterAll(() => server.close())

let keys = 0
const newKey = () => `key-${++keys}`
const make = (key: string, sent: z.input<typeof body> = {}, token?: string) =>
  call(server, '/make', { body: sent, headers: { 'idempotency-key': key }, ...(token === undefined ? {} : { token }) })
const rowsNamed = async (name: string) => (await server.database.root(table).where({ name })).length

test('a repeated request gets the first answer, and the work is done once', async () => {
  const key = newKey()
  const first = await make(key, { name: 'once', mode: 'plain' })
  const second = await call(server, '/make', {
    raw: '{ "mode": "plain", "name": "once" }',
    headers: { 'idempotency-key': key },
  })
  expect(second.body).toEqual(first.body)
  expect([first.status, second.status]).toEqual([201, 201])
  expect([first.headers.get('idempotency-replayed'), second.headers.get('idempotency-replayed')]).toEqual([
    null,
    'true',
  ])
  expect(second.headers.get('request-id')).not.toBe(first.headers.get('request-id'))
  expect(await rowsNamed('once')).toBe(1)
})

test('status and headers of the first answer come again; so does an empty one', async () => {
  const key = newKey()
  const first = await make(key, { mode: 'accept' })
  const second = await make(key, { mode: 'accept' })
  expect([second.status, second.body, second.headers.get('x-made')]).toEqual([202, first.body, 'later'])
  const remove = () => call(server, '/gone', { method: 'DELETE', headers: { 'idempotency-key': key } })
  expect((await remove()).status).toBe(204)
  const again = await remove()
  expect([again.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([204, null, 'true'])
  expect(await rowsNamed('gone')).toBe(1)
})

test('a secret answer comes again too, is kept encrypted, and is unknown to a server with another key', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-keys-'))
  const url = join(folder, 'svc.db')
  const one = await startServer({ routes: handlers(null), url })
  const vault = createVault({ kind: 'memory' }, one.world)
  const other = await startServer({ routes: handlers(null), database: { url, seed: one.seed }, vault, instance: 'two' })
  try {
    const whisper = (to: TestServer) => call(to, '/whisper', { method: 'POST', headers: { 'idempotency-key': 'w' } })
    const first = await whisper(one)
    expect(first.body).toEqual({ word: 'open sesame 1' })
    expect((await whisper(one)).body).toEqual(first.body)
    expect(JSON.stringify(await one.database.root('idempotency'))).not.toContain('sesame')
    expect(codeOf(await whisper(other))).toBe('idempotency_effect_unknown')
  } finally {
    await other.close()
    await one.close()
    rmSync(folder, { recursive: true })
  }
})

test('of a body nothing is kept by which it could be guessed', async () => {
  const kept = async () => {
    const rows: { request_hash: string }[] = await server.database.root('idempotency').select('request_hash')
    return rows.map((row) => row.request_hash)
  }
  const before = await kept()
  for (let n = 0; n < 2; n++) await make(newKey(), { name: 'hunter2' })
  const fresh = (await kept()).filter((hash) => !before.includes(hash))
  expect(new Set(fresh).size).toBe(2)
})

test('a key with another body or query is refused; another path, method or caller has keys of its own', async () => {
  const key = newKey()
  await make(key, { name: 'one' })
  const other = await make(key, { name: 'two' })
  expect([other.status, codeOf(other), other.body.error.type]).toEqual([
    409,
    'idempotency_key_reused',
    'idempotency_error',
  ])
  const must = await call(server, '/must', { body: {}, headers: { 'idempotency-key': key } })
  expect(must.status).toBe(200)
  const byAnother = await make(key, { name: 'three' }, server.seed.memberToken)
  expect([byAnother.status, byAnother.headers.get('idempotency-replayed')]).toEqual([201, null])
  const byAgent = await make(key, { name: 'four' }, server.seed.agentToken)
  expect([byAgent.status, byAgent.headers.get('idempotency-replayed')]).toEqual([201, null])
})

test('a key that is missing where needed, empty, too long, or has spaces is invalid', async () => {
  const must = (headers: Record<string, string>) => call(server, '/must', { body: {}, headers })
  const bad = ['', 'a b', 'x'.repeat(256), 'k\u00a0']
  for (const headers of [{}, ...bad.map((key) => ({ 'idempotency-key': key }))]) {
    const reply = await must(headers)
    expect([reply.status, codeOf(reply), reply.body.error.param]).toEqual([
      400,
      'idempotency_invalid_key',
      'Idempotency-Key',
    ])
  }
  expect((await make('a b')).status).toBe(400)
  expect((await must({ 'idempotency-key': 'x'.repeat(255) })).status).toBe(200)
})

test('where keys are not used they are ignored', async () => {
  const headers = { 'idempotency-key': 'not used' }
  const [one, two] = [
    await call(server, '/free', { body: {}, headers }),
    await call(server, '/free', { body: {}, headers }),
  ]
  expect(two.body.n).toBe(one.body.n + 1)
  expect((await call(server, '/make', { headers })).status).toBe(200)
})

test('after a refusal the key is free and nothing was done', async () => {
  const key = newKey()
  expect((await make(key, { name: 'refused', mode: 'forbid' })).status).toBe(403)
  expect(await rowsNamed('refused')).toBe(0)
  const again = await make(key, { name: 'refused-then-made' })
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, null])
  const unavailable = newKey()
  expect((await make(unavailable, { mode: 'unavailable' })).status).toBe(503)
  expect((await make(unavailable, {})).status).toBe(201)
})

test.each([
  ['it was cancelled', 'code 57014'],
  ['another row was in its way', 'code 23505'],
  ['another process was at work', 'code SQLITE_BUSY'],
])('after the database has undone a write since %s the key is free', async (_why, mode) => {
  const key = newKey()
  expect((await make(key, { name: mode, mode })).status).toBeGreaterThanOrEqual(409)
  const again = await make(key, { name: mode })
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, null])
  expect(await rowsNamed(mode)).toBe(1)
})

test('after a failure that the server did not expect, yet names itself, the effect is unknown', async () => {
  const key = newKey()
  expect((await make(key, { mode: 'internal' })).status).toBe(500)
  expect(codeOf(await make(key, { mode: 'internal' }))).toBe('idempotency_effect_unknown')
})

test('after an unexpected failure the effect is unknown', async () => {
  const key = newKey()
  const broken = await make(key, { name: 'broken', mode: 'crash' })
  expect([broken.status, codeOf(broken)]).toEqual([500, 'internal_error'])
  const again = await make(key, { name: 'broken', mode: 'crash' })
  expect([again.status, codeOf(again)]).toEqual([409, 'idempotency_effect_unknown'])
  const other = await make(key, { name: 'fixed' })
  expect(codeOf(other)).toBe('idempotency_key_reused')
})

test('a key is kept for 24 hours', async () => {
  const key = newKey()
  await make(key, { name: 'daily' })
  server.clock.offsetMs = 24 * 3_600_000 - 60_000
  expect((await make(key, { name: 'daily' })).headers.get('idempotency-replayed')).toBe('true')
  server.clock.offsetMs = 24 * 3_600_000 + 1000
  expect((await make(key, { name: 'daily' })).headers.get('idempotency-replayed')).toBeNull()
  server.clock.offsetMs = 0
  expect(await rowsNamed('daily')).toBe(2)
})

test('twenty requests at once with one key work once', async () => {
  const key = newKey()
  const replies = await Promise.all(Array.from({ length: 20 }, () => make(key, { name: 'burst' })))
  const bodies = replies.filter(({ status }) => status === 201).map((reply) => reply.body.n)
  expect(new Set(bodies).size).toBe(1)
  const refused = replies.filter(({ status }) => status !== 201).map(codeOf)
  expect(refused.every((code) => code === 'idempotency_request_in_progress')).toBe(true)
  expect(await rowsNamed('burst')).toBe(1)
})

test.skipIf(!hasPostgres())('a key at work elsewhere is in progress; of a process that is gone, unknown', async () => {
  const database = await openPostgres()
  const { url } = database
  let release = () => {}
  let entered = () => {}
  const isEntered = new Promise<void>((resolve) => (entered = resolve))
  const hold = new Promise<void>((resolve) => (release = resolve))
  const one = await startServer({ routes: handlers({ entered, hold }), url, instance: 'one' })
  const beside = { url, seed: one.seed }
  const replica = await startServer({ routes: handlers(null), database: beside, instance: 'two', isSole: false })
  const successor = await startServer({ routes: handlers(null), database: beside, instance: 'three', isSole: true })
  const headers = { 'idempotency-key': 'shared' }
  try {
    const first = call(one, '/must', { body: {}, headers })
    await isEntered
    expect(codeOf(await call(replica, '/must', { body: {}, headers }))).toBe('idempotency_request_in_progress')
    replica.clock.offsetMs = 11 * 60_000
    expect(codeOf(await call(replica, '/must', { body: {}, headers }))).toBe('idempotency_effect_unknown')
    expect(codeOf(await call(successor, '/must', { body: {}, headers }))).toBe('idempotency_effect_unknown')
    release()
    expect((await first).status).toBe(200)
    replica.clock.offsetMs = 0
    const replayed = await call(replica, '/must', { body: {}, headers })
    expect([replayed.status, replayed.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
  } finally {
    release()
    await Promise.all([one.close(), replica.close(), successor.close()])
    await database.close()
  }
})
