import type { Knex } from 'knex'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { realWorld } from '../../../shared/lib/world.ts'
import { defineRoute } from '../../../shared/api/route.ts'
import { implement } from '../../../control-plane/http/implement.ts'
import { createLimiter, type Limiter } from '../../../control-plane/http/limits.ts'
import { call, codeOf, startServer, type TestServer } from './server.ts'

const routes = {
  count: defineRoute({ id: 'limited.get', endpoint: 'GET /count', summary: 'Count', reply: z.object({}) }),
  sign: defineRoute({
    id: 'limited.sign',
    endpoint: 'GET /sign-in',
    summary: 'Sign in',
    callers: 'none',
    rate: 'sign_in',
    reply: z.object({}),
  }),
  free: defineRoute({
    id: 'limited.free',
    endpoint: 'GET /free',
    summary: 'Free',
    rate: 'none',
    reply: z.object({}),
  }),
}
const handlers = implement(routes, {
  count: () => Promise.resolve({}),
  sign: () => Promise.resolve({}),
  free: () => Promise.resolve({}),
})

test('who is over the limit gets 429 and is told when to come back; others go on', async () => {
  const server = await startServer({ routes: handlers, rules: { general: { points: 3, windowS: 60 } } })
  try {
    const replies = []
    for (let n = 0; n < 4; n++) replies.push(await call(server, '/count'))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(replies[0]!.headers.get('ratelimit-policy')).toBe('"general";q=3;w=60')
    expect(replies.map(({ headers }) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])).toEqual([
      '2',
      '1',
      '0',
      '0',
    ])
    const refused = replies[3]!
    expect(codeOf(refused)).toBe('rate_limit_exceeded')
    expect(refused.body.error.type).toBe('rate_limit_error')
    const seconds = refused.body.error.details.retryAfter
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThanOrEqual(60)
    expect(refused.headers.get('retry-after')).toBe(String(seconds))
    expect((await call(server, '/count', { token: server.seed.memberToken })).status).toBe(200)
    expect((await call(server, '/count', { token: server.seed.agentToken })).status).toBe(200)
    expect((await call(server, '/free')).status).toBe(200)
  } finally {
    await server.close()
  }
})

test('behind a proxy the address is the one it saw, whatever the client says of itself', async () => {
  const rules = { sign_in: { points: 1, windowS: 60 } }
  const statusOf = async (server: TestServer, forwarded: string) =>
    (await call(server, '/sign-in', { token: null, headers: { 'x-forwarded-for': forwarded } })).status
  const behind = await startServer({ routes: handlers, rules, trustedProxies: 1 })
  const behindTwo = await startServer({ routes: handlers, rules, trustedProxies: 2 })
  const direct = await startServer({ routes: handlers, rules })
  try {
    expect(await statusOf(behind, '10.0.0.1, 203.0.113.7')).toBe(200)
    expect(await statusOf(behind, '10.0.0.2, 203.0.113.7')).toBe(429)
    expect(await statusOf(behind, '10.0.0.1, 203.0.113.8')).toBe(200)
    expect(await statusOf(behindTwo, '10.0.0.1, 203.0.113.7, 192.0.2.1')).toBe(200)
    expect(await statusOf(behindTwo, '10.0.0.2, 203.0.113.7, 192.0.2.2')).toBe(429)
    expect(await statusOf(behindTwo, '203.0.113.8, 192.0.2.1')).toBe(200)
    expect(await statusOf(direct, '203.0.113.7')).toBe(200)
    expect(await statusOf(direct, '203.0.113.8')).toBe(429)
  } finally {
    await behind.close()
    await behindTwo.close()
    await direct.close()
  }
})

test('routes for signing in count by address', async () => {
  const server = await startServer({ routes: handlers, rules: { sign_in: { points: 2, windowS: 60 } } })
  try {
    const statuses = []
    for (const token of [null, server.seed.ownerToken, server.seed.memberToken]) {
      statuses.push((await call(server, '/sign-in', { token })).status)
    }
    expect(statuses).toEqual([200, 200, 429])
  } finally {
    await server.close()
  }
})

/** A PostgreSQL of which only the wire to it can be cut: the counter's store asks it for connections. */
function cuttableStore() {
  const rows = new Map<string, { points: number; expire: number }>()
  const state = { isCut: false, queries: 0 }
  const query = ({ values }: { values?: (string | number)[] }) => {
    if (values === undefined || values.length < 3) return Promise.resolve({ rows: [] })
    state.queries++
    const [key, points, expire] = values as [string, number, number]
    const row = rows.get(key) ?? { points: 0, expire }
    rows.set(key, { ...row, points: row.points + points })
    return Promise.resolve({ rows: [rows.get(key)] })
  }
  const client = {
    acquireConnection: () =>
      state.isCut ? Promise.reject(new Error('connection refused')) : Promise.resolve({ query }),
    releaseConnection: () => Promise.resolve(),
  }
  return { state, shared: { client } as unknown as Knex }
}

test('a limiter that cannot count lets nobody through', async () => {
  const { state, shared } = cuttableStore()
  const limiter = await createLimiter({
    rules: {
      general: { points: 10, windowS: 60 },
      sign_in: null,
      sign_in_any: null,
      webhook: null,
      share_preview: null,
      connection_callback: null,
      mail: null,
    },
    world: realWorld,
    shared,
  })
  const server = await startServer({ routes: handlers, limiter })
  try {
    expect((await call(server, '/count')).status).toBe(200)
    state.isCut = true
    const refused = await call(server, '/count')
    expect([refused.status, codeOf(refused)]).toEqual([503, 'rate_limiter_unavailable'])
    expect(JSON.stringify(refused.body)).not.toContain('connection refused')
    state.isCut = false
    expect((await call(server, '/count')).status).toBe(200)
  } finally {
    await server.close()
  }
})

test('a shared count is asked for in portions, and still ends', async () => {
  const { state, shared } = cuttableStore()
  const limiter = await createLimiter({
    rules: {
      general: { points: 1000, windowS: 60 },
      sign_in: null,
      sign_in_any: null,
      webhook: null,
      share_preview: null,
      connection_callback: null,
      mail: null,
    },
    world: realWorld,
    shared,
  })
  let taken = 0
  let refused = 0
  for (let n = 0; n < 1100; n++)
    await take(limiter).then(
      () => taken++,
      () => refused++,
    )
  expect([taken, refused]).toEqual([1000, 100])
  expect(state.queries).toBeLessThan(350)
})

const take = async (limiter: Limiter) => limiter.take('general', 'person:a')

test('one process gives out every point once, whether it is asked in turn or at once', async () => {
  for (const points of [1, 7, 199, 200, 211, 1000, 1200, 1201]) {
    const rules = {
      general: { points, windowS: 60 },
      sign_in: null,
      sign_in_any: null,
      webhook: null,
      share_preview: null,
      connection_callback: null,
      mail: null,
    }
    const limiter = await createLimiter({ rules, world: realWorld, shared: null })
    for (let n = 0; n < 3; n++) await take(limiter).catch(() => undefined)
    const asked = await Promise.allSettled(Array.from({ length: points + 50 }, () => take(limiter)))
    const taken = asked.filter(({ status }) => status === 'fulfilled').length
    expect([points, taken + Math.min(3, points)]).toEqual([points, points])
  }
})
