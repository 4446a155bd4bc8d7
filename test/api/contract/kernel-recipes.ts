import { idFrom } from '../../../shared/lib/ids.ts'
import assert from 'node:assert/strict'
import type { Knex } from 'knex'
import { expect } from 'vitest'
import { TestServer, type Reply } from '../../kit/server.ts'
import { undoneEachTime } from '../facts/kit/agents.ts'
import { on, patch, post } from '../facts/kit/recipe.ts'
import type { CodeRecipe } from '../facts/kit/resource-facts.ts'
import type { Stage } from './stage.ts'

// Codes of no resource: they come from the server's own state: its database, its limits, keys that were sent before.

const withKey = (key: string) => ({ headers: { 'idempotency-key': key } })

/** Breaks a row, and shows what that does to whoever reads it. */
async function breakAgent(stage: Stage): Promise<string> {
  const agentId = await stage.agent()
  await stage.server.database.root('agents').where({ id: agentId }).update({ visibility: 'broken' })
  return agentId
}

export const kernelRecipes: readonly CodeRecipe[] = [
  on('agents.get', '500 internal_error', async (stage) => stage.server.call(`/agents/${await breakAgent(stage)}`)),
  on('agents.get', '400 unsupported_api_version', ({ server }) =>
    server.call('/agents/me', { headers: { 'Svc-Version': '2025-01' } }),
  ),
  on('agents.get', '400 invalid_id_format', ({ server }) => server.call('/runs/nothing-like-an-id')),
  on('agents.get', '404 route_not_found', ({ server }) => server.call('/nothing')),
  on('agents.get', '403 not_permitted', ({ server }) =>
    server.call('/agents', { headers: { 'Svc-Workspace-Id': crypto.randomUUID() } }),
  ),
  on('agents.list', '429 rate_limit_exceeded', async () => {
    const server = await TestServer.start({ settings: { SVC_RATE_LIMIT_PER_MINUTE: '1' } })
    try {
      await server.call('/agents')
      const reply = await server.call('/agents')
      assert.equal(Number(reply.headers.get('retry-after')), reply.body.error.details.retryAfter)
      return reply
    } finally {
      await server.stop()
    }
  }),
  on('folders.create', '409 duplicate_resource', async (stage) => {
    const { server } = stage
    const taken = await stage.folder()
    const { deviceId } = await stage.enrolled()
    const { world } = server
    const before = { ...world }
    // Chance gives one id twice.
    world.id = (prefix) => (prefix === 'fs_' ? idFrom(taken) : before.id(prefix))
    const reply = await server.call('/folders', post({ displayName: 'x', rootPath: '/x', deviceId }))
    Object.assign(world, before)
    return reply
  }),
  on('agents.create', '409 idempotency_key_reused', async ({ server }) => {
    const key = crypto.randomUUID()
    await server.ok('/agents', { ...post({ name: 'One' }), ...withKey(key) })
    return server.call('/agents', { ...post({ name: 'Two' }), ...withKey(key) })
  }),
  on('agents.create', '400 idempotency_invalid_key', ({ server }) =>
    server.call('/agents', { ...post({ name: 'One' }), ...withKey('with a space') }),
  ),
  on('agents.update', '409 idempotency_effect_unknown', async (stage) => {
    const path = `/agents/${await breakAgent(stage)}`
    const request = { ...patch({ description: 'x' }), ...withKey(crypto.randomUUID()) }
    assert.equal((await stage.server.call(path, request)).status, 500)
    return stage.server.call(path, request)
  }),
]

/** A request that waits for a row which a transaction of the test holds. */
async function whileHeld(
  stage: Stage,
  { request, act }: { request: (agentId: string) => Promise<Reply>; act: (held: Held) => Promise<Reply | null> },
): Promise<Reply> {
  const { root } = stage.server.database
  const agentId = await stage.agent()
  const transaction = await root.transaction()
  try {
    await transaction('agents').where({ id: agentId }).forUpdate()
    const reply = request(agentId)
    const waiting = () =>
      root('pg_stat_activity').whereRaw("datname = current_database() and wait_event_type = 'Lock'").select('pid')
    await expect.poll(async () => (await waiting()).length).toBe(1)
    const [{ pid }] = (await waiting()) as [{ pid: number }]
    const early = await act({ agentId, pid, transaction })
    if (!transaction.isCompleted()) await transaction.rollback()
    const late = await reply
    return early ?? late
  } finally {
    if (!transaction.isCompleted()) await transaction.rollback()
  }
}
interface Held {
  agentId: string
  pid: number
  transaction: Knex.Transaction
}

const describeAgent = (stage: Stage, key?: string) => (agentId: string) =>
  stage.server.call(`/agents/${agentId}`, {
    ...patch({ description: 'x' }),
    ...(key === undefined ? {} : withKey(key)),
  })

const renameAgent = (stage: Stage, agentId: string) => (name: string) =>
  stage.server.call(`/agents/${agentId}`, patch({ name }))

/** These need two transactions at once, which SQLite never has. */
export const postgresRecipes: readonly CodeRecipe[] = [
  on('agents.update', '503 transient_conflict', async (stage) =>
    undoneEachTime(stage, { code: '40001', send: renameAgent(stage, await stage.agent()) }),
  ),
  ...[
    ['504 query_timeout', 'select pg_cancel_backend(?)'],
    ['503 database_unavailable', 'select pg_terminate_backend(?)'],
  ].map(([outcome, statement]) =>
    on('agents.update', outcome!, (stage) =>
      whileHeld(stage, {
        request: describeAgent(stage),
        act: async ({ pid }) => {
          await stage.server.database.root.raw(statement!, [pid])
          return null
        },
      }),
    ),
  ),
  on('agents.update', '409 idempotency_request_in_progress', (stage) => {
    const request = describeAgent(stage, crypto.randomUUID())
    return whileHeld(stage, { request, act: ({ agentId }) => request(agentId) })
  }),
  on('agents.list', '503 rate_limiter_unavailable', async (stage) => {
    const { database } = stage.server
    // Somebody who has no points in hand.
    const person = await stage.server.addPerson('member')
    await database.root.raw('alter table rate_limits rename to rate_limits_away')
    const reply = await stage.server.call('/agents', { token: person.token })
    await database.root.raw('alter table rate_limits_away rename to rate_limits')
    return reply
  }),
]
