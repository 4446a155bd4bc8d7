import { inspect } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Log } from '../../../control-plane/process/log.ts'
import { connectionLimits } from '../../../shared/api/connection-fields.ts'
import { startKeyService, serviceSettings, type KeyService } from '../../kit/services.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'

// Connections: the states by requests, credentials that nobody sees, who sees which.

let service: KeyService
let server: TestServer
let admin: Person
let member: Person
const secretsKey = 'cd'.repeat(32)
const oauth = {
  id: 'sign-in',
  label: 'Sign-in service',
  authKind: 'oauth',
  adminOnly: true,
  surfaces: ['mcp'],
  scopes: ['read', 'write'],
  oauth: {
    issuer: 'https://id.example.com',
    authorizeUrl: 'https://id.example.com/auth',
    tokenUrl: 'https://id.example.com/token',
  },
}

beforeAll(async () => {
  service = await startKeyService()
  const clients = [{ service: 'sign-in', clientId: 'svc', clientSecret: 'client-secret' }]
  server = await TestServer.start({
    settings: { SVC_SECRETS_KEY: secretsKey, ...serviceSettings({ services: [service.entry, oauth], clients }) },
  })
  admin = await server.addPerson('admin')
  member = await server.addPerson('member')
})
afterAll(async () => {
  await server.stop()
  await service.stop()
})

const create = (body: Record<string, unknown>, more: { token?: string; headers?: Record<string, string> } = {}) =>
  server.call('/connections', { body: { ownerType: 'user', integrationId: 'key-service', ...body }, ...more })
const newLabel = () => `account ${crypto.randomUUID()}`
const keyed = (fields: Record<string, string> = { apiKey: service.key }) => ({ apiKeyFields: fields })
const get = async (id: string) => server.ok(`/connections/${id}`)

/** All rows of all tables and the whole database as it is stored. */
async function everythingStored(): Promise<string> {
  const { root } = server.database
  const tables = ['connections', 'connection_sign_ins', 'idempotency', 'outbox']
  const rows = await Promise.all(tables.map(async (table) => (await root(table)) as unknown[]))
  return JSON.stringify(rows, (_, value: unknown) =>
    value instanceof Uint8Array || (value as { type?: string })?.type === 'Buffer'
      ? Buffer.from((value as { data?: number[] }).data ?? (value as Uint8Array)).toString('latin1')
      : value,
  )
}

test('the catalog lists at least twelve services of all four kinds, and those of the operator, without a secret', async () => {
  const { data } = await server.ok('/connections/catalog', { token: member.token })
  expect(data.length).toBeGreaterThan(14)
  expect(new Set(data.map((each: { authKind: string }) => each.authKind))).toEqual(
    new Set(['none', 'api_key', 'oauth', 'mcp_oauth']),
  )
  expect(data).toContainEqual(expect.objectContaining({ id: 'key-service', label: 'Key service', adminOnly: false }))
  expect(data).toContainEqual(expect.objectContaining({ id: 'sign-in', adminOnly: true, isReady: true }))
  expect(data).toContainEqual(expect.objectContaining({ id: 'gitlab', isReady: false }))
  expect(data).toContainEqual(expect.objectContaining({ id: 'linear', isReady: true }))
  expect(JSON.stringify(data)).not.toContain('client-secret')
})

test('a key that the service takes makes an active connection, whose value is nowhere to be seen', async () => {
  const accountLabel = newLabel()
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const first = await create({ accountLabel, ...keyed({ apiKey: ` ${service.key}\n`, region: 'eu' }) }, { headers })
  expect([first.status, first.body]).toEqual([
    200,
    {
      object: 'connection_setup_result',
      status: 'connected',
      nextStep: { kind: 'none' },
      connection: expect.objectContaining({ status: 'active', accountLabel }),
    },
  ])
  expect(service.asked.at(-1)!.authorization).toBe(`Bearer ${service.key}`)
  const { id } = first.body.connection
  expect(await get(id)).toEqual({
    object: 'connection',
    id,
    integration: { id: 'key-service', label: 'Key service', authKind: 'api_key' },
    owner: { type: 'company', id: 'main', label: expect.any(String) },
    accountLabel,
    status: 'active',
    statusReason: null,
    grantedScopes: [],
    lastUsedAt: null,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    auth: { kind: 'api_key', expiresAt: null, fieldNames: ['apiKey', 'region'] },
    availableSurfaces: ['mcp', 'native'],
    runtimeDelivery: { local: 'device_injection', cloud: 'network_broker' },
  })
  const again = await create({ accountLabel, ...keyed({ apiKey: ` ${service.key}\n`, region: 'eu' }) }, { headers })
  expect([again.headers.get('idempotency-replayed'), again.body]).toEqual(['true', first.body])
  expect(await everythingStored()).not.toContain(service.key)
})

test('the fields of a key are asked for, checked by their form, and tried at the service', async () => {
  const accountLabel = newLabel()
  const asked = await create({ accountLabel })
  expect(asked.body).toEqual({
    object: 'connection_setup_result',
    status: 'human_required',
    nextStep: {
      kind: 'api_key_fields',
      fields: [
        { name: 'apiKey', label: 'Key', required: true },
        { name: 'region', label: 'Region', required: false },
      ],
    },
  })
  const tried = service.asked.length
  for (const fields of [
    {},
    { apiKey: '' },
    { apiKey: 'bad key' },
    { apiKey: 'key_a', other: 'x' },
    { apiKey: 'key_\u0007a' },
  ]) {
    const reply = await create({ accountLabel, ...keyed(fields) })
    expect(outcomeOf(reply)).toBe('400 api_key_invalid')
    expect(Object.keys(reply.body.error)).toEqual(['code', 'message', 'details'])
  }
  expect(service.asked).toHaveLength(tried)
  const refused = await create({ accountLabel, ...keyed({ apiKey: 'key_wrong' }) })
  expect(outcomeOf(refused)).toBe('400 unsupported_auth_kind')
  expect(JSON.stringify(refused.body)).not.toContain('key_wrong')
  expect((await server.ok(`/connections?q=${encodeURIComponent(accountLabel)}`)).data).toEqual([])
})

test('errors of before the route have the standard envelope', async () => {
  expect(outcomeOf(await create({ ownerType: 'nobody' }))).toBe('400 validation_error')
  expect(outcomeOf(await server.call('/connections', { body: { integrationId: 'deepwiki' } }))).toBe(
    '400 validation_error',
  )
  expect(outcomeOf(await server.call('/connections?sort=nothing'))).toBe('400 validation_error')
  expect((await server.call('/connections', { token: null })).body.error.type).toBe('authentication_error')
})

test('what is active is answered as it is; revoked, it is made active again by create and by reauthorize', async () => {
  const accountLabel = newLabel()
  const { connection } = (await create({ accountLabel, ...keyed() })).body
  const same = await create({ accountLabel, ...keyed({ apiKey: 'nothing of a key' }) })
  expect(same.body).toMatchObject({ status: 'connected', connection: { id: connection.id, status: 'active' } })
  const path = `/connections/${connection.id}`
  expect(outcomeOf(await server.call(`${path}/reauthorize`, { body: {} }))).toBe('409 connection_not_reauthorizable')
  for (let times = 0; times < 2; times++)
    expect((await server.call(`${path}/revoke`, { method: 'POST' })).status).toBe(204)
  expect(await get(connection.id)).toMatchObject({ status: 'revoked', auth: { fieldNames: [] } })
  const asked = await server.ok(`${path}/reauthorize`, { method: 'POST' })
  expect(asked).toMatchObject({
    nextStep: { kind: 'api_key_fields' },
    connection: { id: connection.id, status: 'revoked' },
  })
  const active = await server.ok(`${path}/reauthorize`, { body: keyed() })
  expect(active).toMatchObject({
    status: 'connected',
    connection: { id: connection.id, status: 'active', statusReason: null },
  })
  await server.ok(`${path}/revoke`, { method: 'POST' })
  expect((await create({ accountLabel, ...keyed() })).body.connection).toMatchObject({
    id: connection.id,
    status: 'active',
  })
})

test('two that connect to the same at once get one connection', async () => {
  const accountLabel = newLabel()
  const replies = await Promise.all(
    Array.from({ length: 6 }, () => create({ integration: 'deepwiki', integrationId: undefined, accountLabel })),
  )
  expect(replies.map(outcomeOf)).toEqual(replies.map(() => '200'))
  expect(new Set(replies.map(({ body }) => body.connection.id)).size).toBe(1)
})

test('a sign-in begins with an address, begins anew with another one, is expired after ten minutes, and deleted by revoking', async () => {
  const accountLabel = newLabel()
  const begin = { integrationId: 'sign-in', accountLabel }
  expect(outcomeOf(await create(begin, { token: member.token }))).toBe('403 connection_owner_mismatch')
  const first = (await create(begin, { token: admin.token })).body
  expect(first).toMatchObject({ status: 'human_required', connection: { status: 'pending' } })
  const url = new URL(first.nextStep.authorizeUrl)
  expect(url.origin + url.pathname).toBe('https://id.example.com/auth')
  expect(Object.fromEntries(url.searchParams)).toEqual({
    client_id: 'svc',
    response_type: 'code',
    redirect_uri: `${server.url}/integrations/connections/callback`,
    scope: 'read write',
    state: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
  })
  expect(await everythingStored()).not.toContain(url.searchParams.get('state'))
  const second = (await create(begin)).body
  expect(second.connection.id).toBe(first.connection.id)
  expect(second.nextStep.authorizeUrl).not.toBe(first.nextStep.authorizeUrl)
  const path = `/connections/${first.connection.id}`
  expect(outcomeOf(await server.call(`${path}/reauthorize`, { body: {} }))).toBe('409 connection_not_reauthorizable')

  server.world.advance(connectionLimits.signInMs)
  const { data } = await server.ok(`/connections?status=expired&q=${encodeURIComponent(accountLabel)}`)
  expect(data).toMatchObject([
    { id: first.connection.id, status: 'expired', statusReason: expect.stringContaining('ten minutes') },
  ])
  expect((await server.ok(`/connections?status=pending&q=${encodeURIComponent(accountLabel)}`)).data).toEqual([])
  await server.plane.sweeper.runAll()
  expect(await get(first.connection.id)).toMatchObject({
    status: 'expired',
    statusReason: expect.stringContaining('ten minutes'),
  })
  expect(outcomeOf(await server.call(`${path}/reauthorize`, { body: {}, token: member.token }))).toBe(
    '403 connection_owner_mismatch',
  )
  expect(await server.ok(`${path}/reauthorize`, { body: {} })).toMatchObject({ connection: { status: 'pending' } })
  expect((await server.call(`${path}/revoke`, { method: 'POST' })).status).toBe(204)
  expect(outcomeOf(await server.call(path))).toBe('404 connection_not_found')
})

test('lists are ordered, filtered and counted, page by page', async () => {
  const stranger = await server.addPerson('owner', `list-${crypto.randomUUID().slice(0, 8)}`)
  const by = { token: stranger.token }
  const ids: string[] = []
  for (const accountLabel of ['b', 'a', 'c'])
    ids.push((await create({ integrationId: 'deepwiki', accountLabel }, by)).body.connection.id)
  const [b, a, c] = ids as [string, string, string]
  const { root } = server.database
  await root('connections').where({ id: a }).update({ last_used_at: 5 })
  const idsBy = async (query: string) =>
    (await server.ok(`/connections?${query}`, by)).data.map((each: { id: string }) => each.id)
  expect(await idsBy('')).toEqual([c, a, b])
  expect(await idsBy('sort=created_asc')).toEqual([b, a, c])
  expect(await idsBy('sort=label_asc')).toEqual([a, b, c])
  expect((await idsBy('sort=last_used_desc'))[0]).toBe(a)
  expect((await idsBy('sort=last_used_asc'))[2]).toBe(a)
  for (const sort of ['created_desc', 'label_asc', 'last_used_desc', 'last_used_asc', 'created_asc']) {
    const seen: string[] = []
    let next: string | null = null
    do {
      const after: string = next === null ? '' : `&cursor=${next}`
      const page = await server.ok(`/connections?sort=${sort}&limit=1${after}`, by)
      expect(page).toMatchObject({ returnedCount: 1, totalCount: 3 })
      seen.push(page.data[0].id)
      next = page.nextCursor
      if (next !== null)
        expect(
          (
            await server.call(
              `/connections?sort=${sort === 'label_asc' ? 'created_asc' : 'label_asc'}&cursor=${next}`,
              by,
            )
          ).status,
        ).toBe(400)
    } while (next !== null)
    expect(seen).toEqual(await idsBy(`sort=${sort}`))
  }
  expect(await idsBy('integration=tavily')).toEqual([])
  expect(await server.ok('/connections?integration=deepwiki&limit=2', by)).toMatchObject({
    returnedCount: 2,
    totalCount: 3,
  })
  expect(outcomeOf(await server.call(`/connections/${a}`))).toBe('404 connection_not_found')
  expect(outcomeOf(await server.call('/connections/anything'))).toBe('404 connection_not_found')
})

test("a person's own connection is seen by that person alone, and goes when they leave", async () => {
  const person = await server.addPerson('member')
  const { connection } = (await create({ integrationId: 'deepwiki', accountLabel: newLabel() })).body
  await server.database.root('connections').where({ id: connection.id }).update({ owner_user_id: person.uuid })
  const path = `/connections/${connection.id}`
  const { token: agent } = await server.agentCaller({}, { token: person.token })
  for (const token of [server.owner.token, admin.token, agent]) {
    expect(outcomeOf(await server.call(path, { token }))).toBe('404 connection_not_found')
    expect(outcomeOf(await server.call(`${path}/revoke`, { method: 'POST', token }))).toBe('404 connection_not_found')
    const { data } = await server.ok('/connections?limit=100', { token })
    expect(data.map((each: { id: string }) => each.id)).not.toContain(connection.id)
  }
  expect(await server.ok(path, { token: person.token })).toMatchObject({ owner: { type: 'user', id: person.userId } })
  await server.ok(`/workspaces/${person.workspaceId}/leave`, { method: 'POST', token: person.token })
  expect(await server.database.root('connections').where({ id: connection.id })).toEqual([])
})

test('an agent lists, reads and revokes, and neither creates nor reauthorizes', async () => {
  const { token } = await server.agentCaller()
  const { connection } = (await create({ accountLabel: newLabel(), ...keyed() })).body
  expect(await server.ok(`/connections/${connection.id}`, { token })).toMatchObject({ id: connection.id })
  expect(outcomeOf(await create({}, { token }))).toBe('403 connection_owner_mismatch')
  expect((await server.call(`/connections/${connection.id}/revoke`, { method: 'POST', token })).status).toBe(204)
  expect(outcomeOf(await server.call(`/connections/${connection.id}/reauthorize`, { body: {}, token }))).toBe(
    '403 connection_owner_mismatch',
  )
})

test('an export names connections, and nothing of their credentials', async () => {
  const accountLabel = newLabel()
  await create({ accountLabel, ...keyed() })
  const { manifest } = await server.ok(`/workspaces/${server.owner.workspaceId}/export`, { method: 'POST' })
  expect(manifest).toContain(accountLabel)
  expect(manifest).not.toContain(service.key)
})

test('what stands in the log is nothing of a key', async () => {
  const lines: string[] = []
  const keep = (fields: object, message: string) => void lines.push(`${message} ${inspect(fields, { depth: 9 })}`)
  const log: Log = { debug: keep, info: keep, warn: keep, error: keep, child: () => log }
  const told = await TestServer.start({
    log,
    settings: { SVC_SECRETS_KEY: secretsKey, ...serviceSettings({ services: [service.entry] }) },
  })
  for (const apiKey of [service.key, 'key_wrong', 'no key'])
    await told.call('/connections', {
      body: {
        integrationId: 'key-service',
        ownerType: 'user',
        accountLabel: apiKey.slice(0, 5),
        apiKeyFields: { apiKey },
      },
    })
  await told.stop()
  expect(lines.join('')).toContain('connection set up')
  for (const apiKey of [service.key, 'key_wrong', 'no key']) expect(lines.join('')).not.toContain(apiKey)
})
