import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { specOf } from '../../kit/rows.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { makeServer, newServer } from '../facts/kit/mcp-servers.ts'
import { agentCalls } from './agent-calls-kit.ts'

let server: TestServer, member: Person, other: Person
beforeAll(async () => {
  ;({ server, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller } = agentCalls(() => ({ server, member }))
const call = (path: string, method = 'GET', body?: unknown, token?: string) =>
  server.call(path, { method, ...(token !== undefined && { token }), ...(body !== undefined && { body }) })
const namesOf = (reply: { data: { name: string }[] }) => reply.data.map(({ name }) => name)

test('a server is kept as it was sent, changed in parts, and deleted', async () => {
  const made = await makeServer({ server }, { name: 'tracker' })
  const shown = {
    object: 'mcp_server',
    id: expect.stringMatching(/^mcp_/),
    agentId: null,
    pluginId: null,
    name: 'tracker',
    transport: 'http',
    url: 'https://mcp.example.com/mcp',
    headers: { Authorization: 'Bearer ${TRACKER_TOKEN}' },
    connectionId: null,
    trustSkills: false,
    command: null,
    args: [],
    env: {},
    createdBy: { type: 'user', id: expect.stringMatching(/^usr_/) },
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
  }
  expect(made).toEqual(shown)
  const path = `/mcp-servers/${made.id}`
  expect(await server.ok(path)).toEqual(shown)
  const changed = await call(path, 'PATCH', { url: '${TRACKER}/mcp', headers: {} })
  expect(changed.body).toEqual({ ...shown, url: '${TRACKER}/mcp', headers: {}, updatedAt: expect.any(String) })
  expect((await call(path, 'PATCH', { name: 'issues' })).body.name).toBe('issues')
  expect((await call(path, 'DELETE')).status).toBe(204)
  expect(outcomeOf(await call(path))).toBe('404 mcp_server_not_found')
})

test('a field that the transport does not have, or an address that is none, is refused by its name', async () => {
  const cases: [Record<string, unknown>, string][] = [
    [{ url: undefined }, 'url'],
    [{ url: 'ftp://x' }, 'url'],
    [{ command: 'x' }, 'command'],
    [{ transport: 'stdio', url: null, headers: {} }, 'command'],
    [{ transport: 'stdio', command: 'x' }, 'url'],
    [{ transport: 'stdio', command: 'x', url: null }, 'headers'],
    [{ name: 'a__b' }, 'name'],
    [{ name: 'a_' }, 'name'],
    [{ headers: { 'a b': 'c' } }, 'headers.a b'],
  ]
  for (const [change, param] of cases) {
    const reply = await call('/mcp-servers', 'POST', newServer(change))
    expect([change, outcomeOf(reply), reply.body.error.param]).toEqual([change, '400 validation_error', param])
  }
  const { id } = await makeServer({ server })
  expect(outcomeOf(await call(`/mcp-servers/${id}`, 'PATCH', { args: ['x'] }))).toBe('400 validation_error')
  expect(outcomeOf(await call(`/mcp-servers/${id}`, 'PATCH', { transport: 'stdio' }))).toBe('400 validation_error')
})

test('those of the workspace are for admins, those of an agent for its owner, too; a private agent hides its own', async () => {
  const mine = await server.createAgent({}, member.token)
  const hidden = await server.createAgent({ visibility: 'private' }, member.token)
  const ofAll = await makeServer({ server })
  const ofMine = await makeServer({ server }, { token: member.token, agentId: mine.id })
  const ofHidden = await makeServer({ server }, { token: member.token, agentId: hidden.id })
  for (const [id, token] of [
    [ofAll.id, member.token],
    [ofMine.id, other.token],
  ] as const) {
    const path = `/mcp-servers/${id}`
    expect(outcomeOf(await call(path, 'PATCH', { url: 'https://evil.example' }, token))).toBe('403 http_exception')
    expect(outcomeOf(await call(path, 'DELETE', undefined, token))).toBe('403 http_exception')
    expect((await call(path, 'GET', undefined, token)).status).toBe(200)
  }
  expect(outcomeOf(await call('/mcp-servers', 'POST', newServer(), member.token))).toBe('403 http_exception')
  const atMine = newServer({ agentId: mine.id })
  expect(outcomeOf(await call('/mcp-servers', 'POST', atMine, other.token))).toBe('403 http_exception')
  expect((await call(`/mcp-servers/${ofMine.id}`, 'PATCH', { url: 'https://b.example' })).status).toBe(200)
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    const body = method === 'PATCH' ? {} : undefined
    expect(outcomeOf(await call(`/mcp-servers/${ofHidden.id}`, method, body, other.token))).toBe(
      '404 mcp_server_not_found',
    )
  }
  expect(namesOf((await call('/mcp-servers', 'GET', undefined, other.token)).body)).not.toContain(ofHidden.name)
  expect(namesOf((await call('/mcp-servers', 'GET', undefined, member.token)).body)).toContain(ofHidden.name)
  expect(namesOf((await call(`/mcp-servers?agentId=${mine.id}`)).body)).toEqual([ofMine.name])
  await server.ok(`/agents/${mine.id}`, { method: 'DELETE', token: member.token })
  expect(outcomeOf(await call(`/mcp-servers/${ofMine.id}`))).toBe('404 mcp_server_not_found')
})

test('an agent asks for one, and gets it when somebody approves who may give it', async () => {
  const {
    agent: { id: agentId },
    token,
  } = await agentCaller()
  const asked = newServer({ agentId: 'me' })
  const reply = await call('/mcp-servers', 'POST', asked, token)
  expect([reply.status, reply.body.object]).toEqual([202, 'platform_change'])
  const approve = (approvalId: string, by: Person) =>
    server.call(`/approvals/${approvalId}/approve`, {
      body: {},
      token: by.token,
      headers: { 'idempotency-key': crypto.randomUUID() },
    })
  expect(namesOf((await call(`/mcp-servers?agentId=${agentId}`)).body)).toEqual([])
  expect((await approve(reply.body.approvalId, member)).status).toBe(200)
  expect(namesOf((await call(`/mcp-servers?agentId=${agentId}`)).body)).toEqual([asked.name])
  // One of the workspace is beyond what the member could do.
  const wide = await call('/mcp-servers', 'POST', newServer({ name: 'wide' }), token)
  await approve(wide.body.approvalId, member)
  expect(namesOf((await call('/mcp-servers')).body)).not.toContain('wide')
  const trusted = await call(
    '/mcp-servers',
    'POST',
    newServer({ name: 'trusted', agentId: 'me', trustSkills: true }),
    token,
  )
  await approve(trusted.body.approvalId, member)
  expect(namesOf((await call('/mcp-servers')).body)).not.toContain('trusted')
  expect(outcomeOf(await call('/mcp-servers', 'POST', { name: 'x' }, token))).toBe('400 validation_error')
})

test('the next run of an agent has its own and those of the workspace, and the doctor and the manifest say what it has not', async () => {
  const agent = await server.createAgent({ harness: 'claude', command: null }, member.token)
  const setting = {
    Shared: { url: 'https://setting.example' },
    kept: { url: 'https://setting.example' },
    off: { url: 'https://x', disabled: true },
  }
  const { workspaceId } = member
  await server.ok(`/workspaces/${workspaceId}`, { method: 'PATCH', body: { mcpServers: setting } })
  await makeServer({ server }, { name: 'shared', url: 'https://workspace.example' })
  await makeServer({ server }, { name: 'SHARED', url: 'https://own.example', agentId: agent.id, headers: undefined })
  const { runPublicId } = await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: member.token })
  const { mcpServers } = await specOf(server, runPublicId)
  expect(mcpServers).toMatchObject({
    SHARED: { type: 'http', url: 'https://own.example' },
    kept: { type: 'http', url: 'https://setting.example' },
  })
  expect(mcpServers).not.toHaveProperty('shared')
  const manifest = await server.ok(`/runs/${runPublicId}/manifest`)
  expect(manifest.mcpServers.given).toContain('SHARED')
  expect(manifest.mcpServers.leftOut).toContainEqual({ name: 'off', reason: 'disabled' })
  expect(JSON.stringify(await server.ok(`/agents/${agent.id}/audit`))).toContain('mcp_server_ignored')
  await server.ok(`/workspaces/${workspaceId}`, { method: 'PATCH', body: { mcpServers: null } })
})

test('admins alone trust a server for its skills, and at the address that they saw', async () => {
  const agent = await server.createAgent({ harness: 'claude', command: null }, member.token)
  const body = newServer({ agentId: agent.id, trustSkills: true })
  expect(outcomeOf(await call('/mcp-servers', 'POST', body, member.token))).toBe('403 http_exception')
  const made = await makeServer({ server }, { agentId: agent.id, token: member.token })
  const path = `/mcp-servers/${made.id}`
  const change = (sent: object, token?: string) => call(path, 'PATCH', sent, token)
  expect(outcomeOf(await change({ trustSkills: true }, member.token))).toBe('403 http_exception')
  expect((await change({ trustSkills: true })).body.trustSkills).toBe(true)
  // The owner of the agent keeps it, and may do without it.
  expect((await change({ name: 'renamed' }, member.token)).body.trustSkills).toBe(true)
  expect((await change({ url: 'https://else.example' }, member.token)).body).toMatchObject({ trustSkills: false })
  expect((await change({ trustSkills: true })).body.trustSkills).toBe(true)
  const moved = { url: 'https://third.example', trustSkills: true }
  expect(outcomeOf(await change(moved, member.token))).toBe('403 http_exception')
  expect((await change({ url: 'https://third.example' })).body.trustSkills).toBe(true)
  expect((await change({ trustSkills: false }, member.token)).body.trustSkills).toBe(false)
  const program = {
    ...newServer({ transport: 'stdio', command: 'x', trustSkills: true }),
    url: undefined,
    headers: undefined,
  }
  expect(outcomeOf(await call('/mcp-servers', 'POST', program))).toBe('400 validation_error')
})
