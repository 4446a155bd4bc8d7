import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CredentialAnswer } from '../../../shared/device/credential.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import type { Person, TestServer } from '../../kit/server.ts'
import { serviceSettings, startKeyService, type KeyService } from '../../kit/services.ts'
import { secretsKey } from '../contract/stage.ts'
import { newConnection } from '../facts/kit/connections.ts'
import { newServer } from '../facts/kit/mcp-servers.ts'
import { agentCalls } from './agent-calls-kit.ts'

// What runs are given of connections by themselves: servers, and variables of the environment.

let server: TestServer, admin: Person, member: Person, other: Person, device: FakeDevice, service: KeyService
beforeAll(async () => {
  service = await startKeyService()
  const openai = {
    id: 'programs-only',
    label: 'Programs only',
    authKind: 'api_key',
    surfaces: ['native'],
    fields: [{ name: 'apiKey', label: 'Key', required: true, env: 'OPENAI_API_KEY' }],
  }
  const settings = { SVC_SECRETS_KEY: secretsKey, ...serviceSettings({ services: [service.entry, openai] }) }
  ;({ server, admin, member, other } = await startWithPeople({ settings }))
  device = await FakeDevice.connect(server, { token: admin.token })
  await ofDefault(device)
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
  await service.stop()
})
beforeEach(async () => {
  await server.database.root('connection_sign_ins').delete()
  await server.database.root('mcp_servers').delete()
  await server.database.root('connections').delete()
})

const { agentCaller } = agentCalls(() => ({ server, member }))
const ofDefault = (of: FakeDevice) =>
  server.ok(`/devices/${of.identity.deviceId}`, {
    method: 'PATCH',
    body: { isWorkspaceDefault: true },
    token: admin.token,
  })
async function connect(by: Person, body: object = {}): Promise<string> {
  const key = { integrationId: 'key-service', apiKeyFields: { apiKey: service.key }, accountLabel: 'default', ...body }
  const made = await server.ok('/connections', { body: newConnection(key), token: by.token })
  return made.connection.id as string
}
const agentOf = (by: Person, more: Record<string, unknown> = { harness: 'claude', command: null }) =>
  server.createAgent(more, by.token) as Promise<{ id: string }>
const grant = async (agentId: string, name: string) =>
  server.ok('/secrets', {
    body: { name: `${name} ${agentId}`, value: 'of-the-secret', envVarName: name, agentId },
    token: admin.token,
  })
const doctor = async (agentId: string): Promise<{ code: string; message: string }[]> =>
  (await server.ok(`/agents/${agentId}/audit`, { token: admin.token })).audit

async function woken(agentId: string, by: Person = member): Promise<FakeRun> {
  const { runPublicId } = await server.ok(`/agents/${agentId}/runs`, {
    body: {},
    token: by.token,
    headers: { 'idempotency-key': crypto.randomUUID() },
  })
  for (;;) {
    const run = await device.take()
    if (run.runId === runPublicId) return run
    await run.end()
  }
}

async function ask({ runId, fence }: FakeRun, connectionId: string, of = device): Promise<CredentialAnswer> {
  const requestId = crypto.randomUUID()
  of.send({ type: 'credential.get', requestId, runId, fence, connectionId: idFrom(connectionId), isForEnv: true })
  return (await of.next('credential')).answer
}
const manifestOf = ({ runId }: FakeRun) => server.ok(`/runs/${runId}/manifest`, { token: admin.token })
const refusedFor = (words: string) => ({ ok: false, message: expect.stringContaining(words) })

describe('variables', () => {
  test('are named in the spec and the manifest, and told to the device alone', async () => {
    const connectionId = await connect(admin, { apiKeyFields: { apiKey: service.key, region: 'north-east' } })
    const run = await woken((await agentOf(member)).id)
    const names = ['KEY_SERVICE_KEY', 'KEY_SERVICE_REGION']
    expect(run.spec.connectionVariables).toEqual([{ connectionId, names }])
    expect(JSON.stringify(run.spec)).not.toContain(service.key)
    const manifest = await manifestOf(run)
    expect([manifest.envKeys, manifest.envKeysLeftOut]).toEqual([expect.arrayContaining(names), []])
    expect(await ask(run, connectionId)).toMatchObject({
      ok: true,
      headers: {},
      env: { KEY_SERVICE_KEY: service.key, KEY_SERVICE_REGION: 'north-east' },
    })
    await run.end()
    expect(await ask(run, connectionId)).toMatchObject(refusedFor('does not hold the run'))
  })

  test('come of connections that the owner of the agent or an admin signed in to, also anew', async () => {
    const connectionId = await connect(member)
    const [own, others] = [await agentOf(member), await agentOf(other)]
    const given = async (agentId: string, by: Person) => {
      const run = await woken(agentId, by)
      await run.end()
      return [run.spec.connectionVariables?.length ?? 0, Object.keys(run.spec.mcpServers)]
    }
    expect(await given(own.id, member)).toEqual([1, ['key-service']])
    expect(await given(others.id, other)).toEqual([0, []])
    expect(await doctor(others.id)).toContainEqual(expect.objectContaining({ code: 'connection_not_given' }))
    expect(await doctor(own.id)).not.toContainEqual(expect.objectContaining({ code: 'connection_not_given' }))
    const revoke = () => server.ok(`/connections/${connectionId}/revoke`, { method: 'POST', token: admin.token })
    await revoke()
    expect(await given(own.id, member)).toEqual([0, []])
    expect(await connect(admin)).toBe(connectionId)
    expect(await given(others.id, other)).toEqual([1, ['key-service']])
    await revoke()
    const body = { apiKeyFields: { apiKey: service.key } }
    await server.ok(`/connections/${connectionId}/reauthorize`, { body, token: member.token })
    expect(await given(others.id, other)).toEqual([0, []])
  })

  test('are no more told when somebody else has signed in since', async () => {
    const connectionId = await connect(admin)
    const run = await woken((await agentOf(other)).id, other)
    await server.ok(`/connections/${connectionId}/revoke`, { method: 'POST', token: admin.token })
    expect(await ask(run, connectionId)).toMatchObject(refusedFor('not given this connection any more'))
    await connect(member)
    expect(await ask(run, connectionId)).toMatchObject(refusedFor('not given this connection any more'))
    await run.end()
  })

  test('go where secrets go: to devices of the owner of the agent and of admins', async () => {
    const connectionId = await connect(admin)
    const stranger = await FakeDevice.connect(server, { token: admin.token })
    await ofDefault(stranger)
    const { id } = await agentOf(member)
    await server.ok(`/agents/${id}/runs`, {
      body: {},
      token: member.token,
      headers: { 'idempotency-key': crypto.randomUUID() },
    })
    const run = await stranger.take()
    expect((await ask(run, connectionId, stranger)).ok).toBe(true)
    const { publicId } = stranger.identity
    const become = (person: Person) =>
      server.database.root('devices').where({ public_id: publicId }).update({ user_id: person.uuid })
    await become(other)
    expect(await ask(run, connectionId, stranger)).toMatchObject(refusedFor('go to devices of'))
    await become(member)
    expect((await ask(run, connectionId, stranger)).ok).toBe(true)
    await become(admin)
    await run.end()
    await ofDefault(device)
    await stranger.disconnect()
  })

  test('give way to a secret of the agent, and are not those by which its program signs in', async () => {
    const [keyed, programs] = [await connect(admin), await connect(admin, { integrationId: 'programs-only' })]
    const agent = await agentOf(member)
    await grant(agent.id, 'KEY_SERVICE_KEY')
    const run = await woken(agent.id)
    expect(run.spec.connectionVariables).toEqual([{ connectionId: programs, names: ['OPENAI_API_KEY'] }])
    expect(await ask(run, keyed)).toMatchObject(refusedFor('was not given this connection'))
    const { envKeys, envKeysLeftOut } = await manifestOf(run)
    expect(envKeys.filter((name: string) => name === 'KEY_SERVICE_KEY')).toHaveLength(1)
    expect(envKeysLeftOut).toEqual([{ name: 'KEY_SERVICE_KEY', reason: 'the agent has a secret of this name' }])
    await run.end()
    const codex = await agentOf(member, { harness: 'codex', command: null })
    const ofCodex = await woken(codex.id)
    expect(ofCodex.spec.connectionVariables).toEqual([{ connectionId: keyed, names: ['KEY_SERVICE_KEY'] }])
    await ofCodex.end()
    const said = (await doctor(codex.id)).filter(({ code }) => code === 'variable_left_out')
    expect(said).toMatchObject([{ message: expect.stringContaining('OPENAI_API_KEY') }])
  })

  test('are taken out of what an agent writes', async () => {
    await connect(admin)
    const { token } = await agentCaller()
    const asked = await server.call('/questions', { body: { question: `Is ${service.key} right?` }, token })
    expect(JSON.stringify(asked.body)).not.toContain(service.key)
    expect(JSON.stringify(await server.database.root('questions').select())).not.toContain(service.key)
  })
})

describe('servers', () => {
  const specOfNext = async (agentId: string) => {
    const run = await woken(agentId)
    await run.end()
    return run.spec.mcpServers
  }

  test('are those of the services, under their ids; further accounts have their label, too', async () => {
    const first = await connect(admin)
    const second = await connect(admin, { accountLabel: 'Second one' })
    const url = `${service.url}/mcp`
    expect(await specOfNext((await agentOf(member)).id)).toEqual({
      'key-service': { type: 'http', url, connectionId: first },
      'key-service-Second-one': { type: 'http', url, connectionId: second },
    })
  })

  test('give way to a server of the name, to one with the connection, and to a setting that switches it off', async () => {
    const connectionId = await connect(admin)
    const { id: agentId } = await agentOf(member)
    const create = (body: object) => server.ok('/mcp-servers', { body, token: admin.token })
    const own = await create(newServer({ name: 'Key_Service', url: 'https://own.example', agentId }))
    expect(Object.keys(await specOfNext(agentId))).toEqual(['Key_Service'])
    await server.ok(`/mcp-servers/${own.id}`, { method: 'DELETE', token: admin.token })
    await create(newServer({ name: 'mine', url: `${service.url}/mcp`, headers: undefined, connectionId }))
    expect(Object.keys(await specOfNext(agentId))).toEqual(['mine'])
    await server.database.root('mcp_servers').delete()
    const path = `/workspaces/${admin.workspaceId}`
    const set = (mcpServers: object) => server.ok(path, { method: 'PATCH', body: { mcpServers }, token: admin.token })
    await set({ 'key-service': { enabled: false } })
    expect(await specOfNext(agentId)).toEqual({})
    await set({})
    expect(Object.keys(await specOfNext(agentId))).toEqual(['key-service'])
  })
})
