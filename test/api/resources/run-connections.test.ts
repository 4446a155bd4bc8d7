import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CredentialAnswer } from '../../../shared/device/credential.ts'
import { credentialLimits } from '../../../control-plane/link/credentials.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { specOf } from '../../kit/rows.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { serviceSettings, startKeyService, type KeyService } from '../../kit/services.ts'
import { secretsKey } from '../contract/stage.ts'
import { makeConnection } from '../facts/kit/connections.ts'
import { newServer } from '../facts/kit/mcp-servers.ts'
import { agentCalls } from './agent-calls-kit.ts'

// Connections of MCP servers: who may name which, and what a device is told of them for which run.

let server: TestServer, admin: Person, member: Person, other: Person, device: FakeDevice, service: KeyService
beforeAll(async () => {
  service = await startKeyService()
  const settings = { SVC_SECRETS_KEY: secretsKey, ...serviceSettings({ services: [service.entry] }) }
  ;({ server, admin, member, other } = await startWithPeople({ settings }))
  device = await FakeDevice.connect(server, { token: admin.token })
  await server.ok(`/devices/${device.identity.deviceId}`, {
    method: 'PATCH',
    body: { isWorkspaceDefault: true },
    token: admin.token,
  })
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
  await service.stop()
})

const { agentCaller } = agentCalls(() => ({ server, member }))
/** A connection of the workspace, or of one person. */
async function connect(owner: Person | null = null): Promise<string> {
  const id = await makeConnection({ server }, { integrationId: 'key-service', apiKeyFields: { apiKey: service.key } })
  if (owner !== null) await server.database.root('connections').where({ id }).update({ owner_user_id: owner.uuid })
  return id
}
const newOne = (connectionId: string, more: object = {}) =>
  newServer({ url: `${service.url}/mcp`, headers: undefined, connectionId, ...more })
const create = (body: object, { token }: Person = admin) =>
  server.call('/mcp-servers', { body, token, headers: { 'idempotency-key': crypto.randomUUID() } })
const claude = (by: Person = member) =>
  server.createAgent({ harness: 'claude', command: null }, by.token) as Promise<{ id: string }>
const wake = (agentId: string, { token }: Person = member) =>
  server.ok(`/agents/${agentId}/runs`, { body: {}, token, headers: { 'idempotency-key': crypto.randomUUID() } })

/** The run of that agent; others that were offered before it are over. */
async function woken(agentId: string, by: Person = member): Promise<FakeRun> {
  const { runPublicId } = await wake(agentId, by)
  for (;;) {
    const run = await device.take()
    if (run.runId === runPublicId) return run
    await run.end()
  }
}

async function runOf(connectionId: string, by: Person = member) {
  const agent = await claude(by)
  const made = await create(newOne(connectionId, { agentId: agent.id }), by)
  expect([made.status, made.body.connectionId]).toEqual([201, connectionId])
  return { agent, run: await woken(agent.id, by), mcpServerId: made.body.id as string, name: made.body.name as string }
}

async function ask(
  { runId, fence }: Pick<FakeRun, 'runId' | 'fence'>,
  connectionId: string,
  { of = device, refusedVersion }: { of?: FakeDevice; refusedVersion?: number } = {},
): Promise<CredentialAnswer> {
  const requestId = crypto.randomUUID()
  const refused = refusedVersion === undefined ? {} : { refusedVersion }
  of.send({ type: 'credential.get', requestId, runId, fence, connectionId: idFrom(connectionId), ...refused })
  const reply = await of.next('credential')
  expect(reply).toMatchObject({ requestId, runId, fence })
  return reply.answer
}
const refusedFor = (words: string) => ({ ok: false, message: expect.stringContaining(words) })

describe('a server with a connection', () => {
  test('has one that the caller sees, at the address of its service', async () => {
    const [own, shared] = [await connect(member), await connect()]
    const { id: agentId } = await claude()
    for (const [body, by, outcome, param] of [
      [newOne(own), admin, '404 connection_not_found'],
      [newOne(own, { agentId }), admin, '404 connection_not_found'],
      [newOne(shared, { agentId, url: 'https://evil.example/mcp' }), member, '400 validation_error', 'url'],
      [newOne(shared, { agentId, url: `${service.url}/other` }), member, '400 validation_error', 'url'],
      [newOne(shared, { agentId, url: `${service.url}/mcp/../other` }), member, '400 validation_error', 'url'],
      [newOne(shared, { agentId, url: `${service.url}/mcp2` }), member, '400 validation_error', 'url'],
      [newOne(shared, { agentId, url: `${service.url}/mcp/\${PATH}` }), member, '400 validation_error', 'url'],
      [newOne(shared, { agentId, url: '${SERVER}' }), member, '400 validation_error', 'url'],
      [
        newOne(shared, { agentId, url: service.url.replace('//', '//a:b@') + '/mcp' }),
        member,
        '400 validation_error',
        'url',
      ],
      [newOne(shared, { agentId, headers: { HOST: 'evil.example' } }), member, '400 validation_error', 'headers'],
      [newOne(shared, { agentId, transport: 'sse' }), member, '400 validation_error', 'connectionId'],
      [
        { ...newOne(shared, { agentId, transport: 'stdio', command: 'x' }), url: undefined },
        member,
        '400 validation_error',
        'connectionId',
      ],
    ] as const) {
      const reply = await create(body, by)
      expect([body, outcomeOf(reply), param && reply.body.error.param]).toEqual([body, outcome, param])
    }
    const made = await create(newOne(own, { agentId, url: `${service.url}/mcp/deeper?x=1` }), member)
    expect([made.status, made.body.connectionId]).toEqual([201, own])
    const change = (body: object, { token }: Person) =>
      server.call(`/mcp-servers/${made.body.id}`, { method: 'PATCH', body, token })
    // Who does not see the connection keeps it, but gives it to nobody else.
    expect((await change({ name: 'renamed' }, admin)).body.connectionId).toBe(own)
    expect(outcomeOf(await change({ url: 'https://evil.example' }, admin))).toBe('400 validation_error')
    expect(outcomeOf(await change({ connectionId: own }, other))).toBe('403 http_exception')
    expect((await change({ connectionId: null, url: 'https://any.example' }, member)).body.connectionId).toBeNull()
    expect(outcomeOf(await change({ connectionId: own }, member))).toBe('400 validation_error')
  })

  test('is not made by an agent that does not see the connection, nor by the setting of a workspace', async () => {
    const [own, shared] = [await connect(member), await connect()]
    const { agent, token } = await agentCaller({ harness: 'claude', command: null })
    const askFor = (connectionId: string) => create(newOne(connectionId, { agentId: 'me' }), { token } as Person)
    expect(outcomeOf(await askFor(own))).toBe('404 connection_not_found')
    const asked = await askFor(shared)
    expect([asked.status, asked.body.object]).toEqual([202, 'platform_change'])
    const mcpServers = { set: { url: `${service.url}/mcp`, connectionId: shared } }
    const path = `/workspaces/${admin.workspaceId}`
    await server.ok(path, { method: 'PATCH', body: { mcpServers }, token: admin.token })
    const { runPublicId } = await wake(agent.id)
    await server.ok(path, { method: 'PATCH', body: { mcpServers: {} }, token: admin.token })
    const spec = await specOf(server, runPublicId)
    expect(spec.mcpServers).toMatchObject({ set: { type: 'http', url: `${service.url}/mcp` } })
    expect(JSON.stringify(spec.mcpServers['set'])).not.toContain('conn_')
    await server.ok(`/runs/${runPublicId}/cancel`, { body: {}, token: admin.token })
  })
})

describe('a device', () => {
  test('is told the credential of a connection of the spec, which has its id alone', async () => {
    const connectionId = await connect()
    const { run, name } = await runOf(connectionId)
    expect(run.spec.mcpServers[name]).toEqual({ type: 'http', url: `${service.url}/mcp`, connectionId })
    expect(await ask(run, connectionId)).toEqual({
      ok: true,
      headers: { authorization: `Bearer ${service.key}` },
      values: [service.key],
      version: 1,
      expiresInMs: null,
    })
    // A key has no successor.
    expect(await ask(run, connectionId, { refusedVersion: 1 })).toMatchObject({ ok: true, version: 1 })
    await run.end()
  })

  test('is told nothing for a run of another device, of an old lease, or that has ended', async () => {
    const connectionId = await connect()
    const { run } = await runOf(connectionId)
    const stranger = await FakeDevice.connect(server, { token: member.token })
    expect(await ask(run, connectionId, { of: stranger })).toMatchObject(refusedFor('does not hold the run'))
    await stranger.disconnect()
    const { runId, fence } = run
    for (const old of [fence - 1, fence + 1].filter((one) => one > 0))
      expect(await ask({ runId, fence: old }, connectionId)).toMatchObject(refusedFor('does not hold the run'))
    expect(await ask({ runId: idFrom('run_0000000000000000'), fence }, connectionId)).toMatchObject(
      refusedFor('does not hold'),
    )
    await run.end()
    expect(await ask(run, connectionId)).toMatchObject(refusedFor('does not hold the run'))
  })

  test('is told nothing of a connection that is not in the spec, or that the owner of the agent may not use', async () => {
    const inSpec = await connect()
    const { run } = await runOf(inSpec)
    const outside = await connect()
    expect(await ask(run, outside)).toMatchObject(refusedFor('was not given this connection'))
    await run.end()
    // An admin gives the connection of their own to another's agent.
    const agent = await claude(other)
    const own = await connect(admin)
    expect((await create(newOne(own, { agentId: agent.id }))).status).toBe(201)
    const { audit } = await server.ok(`/agents/${agent.id}/audit`, { token: admin.token })
    expect(audit).toContainEqual(
      expect.objectContaining({
        code: 'mcp_connection_unusable',
        message: expect.stringContaining("is a person's own, who does not own the agent"),
      }),
    )
    const ofOther = await woken(agent.id, other)
    expect(await ask(ofOther, own)).toMatchObject(refusedFor('no such connection that the agent may use'))
    await ofOther.end()
  })

  test('is told what a person does about a connection that is revoked while the run lasts', async () => {
    const connectionId = await connect()
    const { run, agent } = await runOf(connectionId)
    await server.ok(`/connections/${connectionId}/revoke`, { method: 'POST', token: admin.token })
    const { audit } = await server.ok(`/agents/${agent.id}/audit`, { token: admin.token })
    expect(audit).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining('the connection to Key service is revoked') }),
    )
    const said = await ask(run, connectionId)
    expect(said).toMatchObject(refusedFor('The connection to Key service is revoked.'))
    expect(said).toMatchObject(refusedFor(`svc connection reauthorize ${connectionId}`))
    await run.end()
  })

  test('is not answered more often than a run needs', async () => {
    const connectionId = await connect()
    const { run } = await runOf(connectionId)
    for (let time = 0; time < credentialLimits.ofRun; time++) expect((await ask(run, connectionId)).ok).toBe(true)
    expect(await ask(run, connectionId)).toMatchObject(refusedFor('too often'))
    await run.end()
  })
})
