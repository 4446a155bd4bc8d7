import { idFrom, type AgentRef } from '../../../shared/lib/ids.ts'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { specForSandbox } from '../../../control-plane/run/places/sandbox-spec.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { sealCredential } from '../../../control-plane/resources/connections/own/credential.ts'
import { blankConnection } from '../../../control-plane/resources/connections/steps/change.ts'
import { insertConnection } from '../../../control-plane/resources/connections/store.ts'
import { insertSandbox } from '../../../control-plane/resources/sandboxes/store.ts'
import { secretsForSandbox } from '../../../control-plane/resources/secrets/in-cloud.ts'
import { findPermit } from '../../../control-plane/sandbox/broker/permits.ts'
import { sharedOf, startEngineless } from '../../kit/engineless.ts'
import { startServer, testCertificate } from '../../kit/hostile-server.ts'
import { waitFor } from '../../kit/programs.ts'
import { specOf } from '../../kit/rows.ts'
import type { TestServer } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'
import { get, post, startBroker, statusOf, textOf } from '../../process/sandbox/broker-kit.ts'
import { sandboxRow } from '../../store/sandbox-rows.ts'

// What runs of the cloud have of connections: by their broker, with what is stored at each request.

const key = 'key_nobody_may_see_5f2a'
let server: TestServer
let host: Awaited<ReturnType<typeof startServer>>
/** The host of programs, over TLS. */
let place: string
const tls = testCertificate()
const seen: Record<string, string | undefined>[] = []

/** A service with an MCP server and a token endpoint that gives each token once. */
const service = {
  url: '',
  accepts: `Bearer ${key}`,
  refresh: 'refresh-1',
  renewals: 0,
  isAway: false,
  streams: new Set<ServerResponse>(),
}
const json = { 'content-type': 'application/json' }
const outside = createServer((request, response) => void answer(request, response))
async function answer(request: IncomingMessage, response: ServerResponse) {
  const said = await text(request)
  if (request.url === '/token') {
    service.renewals++
    const isGood = new URLSearchParams(said).get('refresh_token') === service.refresh
    if (!isGood) return void response.writeHead(400, json).end(JSON.stringify({ error: 'invalid_grant' }))
    service.refresh = `refresh-${service.renewals + 1}`
    service.accepts = `Bearer access-token-${service.renewals + 1}`
    const tokens = {
      access_token: `access-token-${service.renewals + 1}`,
      refresh_token: service.refresh,
      token_type: 'Bearer',
      expires_in: 3_600,
    }
    return void response.writeHead(200, json).end(JSON.stringify(tokens))
  }
  const { authorization, 'x-key': own } = request.headers
  seen.push({ path: request.url, authorization, own: own as string | undefined })
  if (authorization !== undefined && authorization !== service.accepts) return void response.writeHead(401).end()
  if (request.method !== 'GET') return void response.end('from the server.')
  service.streams.add(response)
  response.on('close', () => service.streams.delete(response))
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n')
}

beforeAll(async () => {
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve))
  service.url = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`
  host = await startServer(
    (request, response) => response.end(`by ${request.headers['x-token'] === undefined ? 'nobody' : 'somebody'}`),
    { tls },
  )
  place = `a.test:${host.port}`
  const keyed = {
    label: 'Keyed',
    authKind: 'api_key',
    surfaces: ['mcp', 'native'],
    mcp: { url: `${service.url}/mcp` },
    fields: [{ name: 'apiKey', label: 'Key', required: true, env: 'KEYED_KEY' }],
  }
  const services = [
    { ...keyed, id: 'keyed', hosts: [place] },
    { ...keyed, id: 'hostless', surfaces: ['native'], fields: [{ ...keyed.fields[0], env: 'HOSTLESS_KEY' }] },
    {
      id: 'renewing',
      label: 'Renewing',
      authKind: 'oauth',
      surfaces: ['mcp', 'native'],
      mcp: { url: `${service.url}/renewing` },
      hosts: [place],
      oauth: {
        issuer: service.url,
        authorizeUrl: `${service.url}/auth`,
        tokenUrl: `${service.url}/token`,
        clientId: 'svc',
        clientSecret: 'secret',
        env: 'RENEWING_TOKEN',
      },
    },
  ]
  server = await startEngineless({ SVC_SANDBOX_ANTHROPIC_KEY: 'sk-ant-operator', ...serviceSettings({ services }) })
})
afterAll(async () => {
  await server.stop()
  await host.close()
  outside.closeAllConnections()
  outside.close()
})
beforeEach(async () => {
  await server.database.root('mcp_servers').delete()
  await server.database.root('connections').delete()
  Object.assign(service, { accepts: `Bearer ${key}`, refresh: 'refresh-1', renewals: 0 })
  seen.length = 0
})

const keyed = () => ({ 'idempotency-key': server.world.uuid() })
async function connect(integrationId: string): Promise<string> {
  const body = { integrationId, ownerType: 'company', accountLabel: 'default', apiKeyFields: { apiKey: key } }
  return (await server.ok('/connections', { body, headers: keyed() })).connection.id
}

/** A connection as a sign-in leaves it. */
async function signIn(age = 60_000): Promise<string> {
  const { root } = server.database
  const { world, owner } = server
  const [id, now] = [world.id('conn_'), world.now()]
  const entry = sharedOf(server).services.find('renewing')!
  const of = { id, workspaceId: owner.workspaceId, accountLabel: id, createdByUuid: owner.uuid, now }
  const { issuer, tokenUrl } = entry.oauth!
  const credential = sealCredential(sharedOf(server).vault, id, {
    kind: 'oauth',
    issuer,
    tokenUrl,
    clientId: 'svc',
    accessToken: 'access-token-1',
    refreshToken: 'refresh-1',
    obtainedAt: now - age,
    expiresAt: now + 3_600_000,
  })
  const row = { ...blankConnection(entry, of), status: 'active' as const, credential, credentialVersion: 1 }
  await insertConnection(root, {
    ...row,
    connectedByUuid: owner.uuid,
    expiresAt: now + 3_600_000,
    fieldNames: ['accessToken'],
  })
  return id
}

const agentOf = async (settings: object = { harness: 'claude' }): Promise<string> =>
  (await server.createAgent({ environment: 'cloud', ...settings })).id as string
const wake = (agentId: string) => server.call(`/agents/${agentId}/runs`, { body: { prompt: 'Go' }, headers: keyed() })
const doctor = async (agentId: string): Promise<{ code: string; message: string }[]> =>
  (await server.ok(`/agents/${agentId}/audit`)).audit

/** A run of the agent, with a broker that asks for its permit as a server does. */
async function runOf(agentId: AgentRef) {
  const { root } = server.database
  const runId = (await wake(agentId)).body.runPublicId as string
  const row = sandboxRow(server.owner.workspaceId, { runId: idFrom(runId) })
  await insertSandbox(root, row)
  const none = { url: 'https://models.test', key: null }
  const models = { anthropic: none, openai: none }
  const sources = { ...sharedOf(server), root, world: server.world, log: silentLog, models, gitHost: null }
  const broker = await startBroker({
    permit: () => findPermit(sources, row.id),
    limits: { mcp: { watchMs: 100 } },
    outbound: { allowHosts: ['127.0.0.1', 'a.test'], ca: tls.cert, resolveHost: () => Promise.resolve(['127.0.0.1']) },
  })
  const spec = await specOf(server, runId)
  const inside = await secretsForSandbox(root, { run: { id: idFrom(runId), agentRef: agentId }, spec }, sources)
  const ask = (name: string) => broker.say(post(`/mcp/${name}`, '{"jsonrpc":"2.0","id":1,"method":"ping"}'))
  return { runId, spec, inside, ...broker, ask }
}

const addServer = (body: object) =>
  server.ok('/mcp-servers', { body: { transport: 'http', ...body }, headers: keyed() })
const addSecret = (agentId: string, envVarName: string, more: object = {}) =>
  server.ok('/secrets', {
    body: { name: server.world.uuid(), envVarName, value: `value-of-${envVarName}`, agentId, ...more },
    headers: keyed(),
  })

describe('a connection in the cloud', () => {
  test('is an MCP server of the broker and placeholders; nothing that is secret stands in what the sandbox gets', async () => {
    await connect('keyed')
    await connect('hostless')
    await signIn()
    const agentId = await agentOf()
    const { runId, spec, inside } = await runOf(idFrom(agentId))
    expect(Object.keys(spec.mcpServers).toSorted()).toEqual(['keyed', 'renewing'])
    const sent = specForSandbox(spec)
    expect([sent.mcpServers['keyed'], sent.connectionVariables]).toEqual([
      { type: 'http', url: 'http://127.0.0.1:4400/mcp/keyed' },
      null,
    ])
    expect(inside).toEqual({
      KEYED_KEY: expect.stringMatching(/^brokered-[0-9a-f]{40}$/),
      RENEWING_TOKEN: expect.stringMatching(/^brokered-[0-9a-f]{40}$/),
    })
    expect(inside['KEYED_KEY']).not.toBe(inside['RENEWING_TOKEN'])
    const { envKeys, envKeysLeftOut, mcpServers } = await server.ok(`/runs/${runId}/manifest`)
    expect(envKeys).toEqual(expect.arrayContaining(['KEYED_KEY', 'RENEWING_TOKEN']))
    expect(envKeysLeftOut).toEqual([{ name: 'HOSTLESS_KEY', reason: expect.stringContaining('the catalog names no') }])
    expect(mcpServers.given.toSorted()).toEqual(['keyed', 'renewing'])
    expect(await doctor(agentId)).toContainEqual(
      expect.objectContaining({ code: 'variable_left_out', message: expect.stringContaining('HOSTLESS_KEY') }),
    )
  })

  test('has its credential sent to the server, and to no other', async () => {
    await connect('keyed')
    const { ask, counted } = await runOf(idFrom(await agentOf()))
    expect(await ask('keyed')).toContain('from the server')
    expect(seen).toEqual([{ path: '/mcp', authorization: `Bearer ${key}` }])
    expect(statusOf(await ask('renewing'))).toBe(403)
    expect(await counted()).toEqual([
      { host: '127.0.0.1', decision: 'allowed', requests: 1 },
      { host: '-', decision: 'refused', requests: 1 },
    ])
  })

  test('that is withdrawn is of no use from then on, and streams that are open end', async () => {
    const id = await connect('keyed')
    const { ask, open, say, inside } = await runOf(idFrom(await agentOf()))
    expect(statusOf(await ask('keyed'))).toBe(200)
    const stream = await open()
    const ended = textOf(stream)
    stream.write(get('/mcp/keyed'))
    await waitFor(() => service.streams.size === 1, 'a stream')
    await server.ok(`/connections/${id}/revoke`, { body: {} })
    const refused = await waitFor(async () => {
      const answer = await ask('keyed')
      return statusOf(answer) === 403 ? answer : null
    }, 'a refusal')
    expect(refused).toContain(`svc connection reauthorize ${id}`)
    const count = seen.length
    expect(statusOf(await ask('keyed'))).toBe(403)
    await ended
    await waitFor(() => service.streams.size === 0, 'the end of the stream')
    const byProgram = () => say(get(`http://${place}/`, [`x-token: ${inside['KEYED_KEY']}`]))
    await waitFor(async () => statusOf(await byProgram()) === 403, 'a refusal')
    expect(seen).toHaveLength(count)
  })

  test("that is another person's is refused, and so is one whose server is elsewhere by now", async () => {
    const other = await server.addPerson('member')
    const id = await connect('keyed')
    const { ask } = await runOf(idFrom(await agentOf()))
    await server.database.root('connections').where({ id }).update({ owner_user_id: other.uuid })
    expect(await ask('keyed')).toContain('no such connection that the agent may use')
    await server.database.root('connections').where({ id }).update({ owner_user_id: null, service_id: 'renewing' })
    await waitFor(async () => (await ask('keyed')).includes('A connection to Renewing is for'), 'another refusal')
    expect(seen).toEqual([])
  })

  test('whose run is over is refused', async () => {
    await connect('keyed')
    const { ask, runId } = await runOf(idFrom(await agentOf()))
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect(statusOf(await ask('keyed'))).toBe(403)
    expect(seen).toEqual([])
  })

  test('is renewed once for two requests that are refused at the same moment', async () => {
    service.accepts = 'Bearer another'
    await signIn()
    const { ask } = await runOf(idFrom(await agentOf()))
    const statuses = (await Promise.all([ask('renewing'), ask('renewing')])).map(statusOf)
    expect(statuses).toEqual([401, 401])
    expect(service.renewals).toBe(1)
    expect(await ask('renewing')).toContain('from the server')
    expect(service.renewals).toBe(1)
  })

  test('whose renewal is refused fails with what a person does', async () => {
    Object.assign(service, { accepts: 'Bearer another', refresh: 'of somebody else' })
    const id = await signIn()
    const { ask } = await runOf(idFrom(await agentOf()))
    for (let times = 0; times < 2; times++) {
      const answer = await ask('renewing')
      expect([statusOf(answer), answer.includes(`svc connection reauthorize ${id}`)]).toEqual([403, true])
    }
    expect(service.renewals).toBe(1)
  })

  test('gives programs its value in headers towards the hosts of its service, as it is by then', async () => {
    await connect('keyed')
    const { say, inside } = await runOf(idFrom(await agentOf()))
    const by = (to: string, name: string) => say(get(`http://${to}/`, [`x-token: ${inside[name]}`]))
    expect(await by(place, 'KEYED_KEY')).toContain('by somebody')
    expect(statusOf(await by(service.url.slice('http://'.length), 'KEYED_KEY'))).toBe(403)
    expect(inside['RENEWING_TOKEN']).toBeUndefined()
  })
})

describe('an MCP server in the cloud', () => {
  const headers = { 'x-key': 'Key ${SERVER_KEY}' }

  test('is sent secrets of the agent that its headers and its path name, and the sandbox has none of them', async () => {
    const agentId = await agentOf()
    const { id: secretId } = await addSecret(agentId, 'SERVER_KEY')
    await addServer({ name: 'web', url: `${service.url}/of/\${SERVER_KEY}`, headers, agentId })
    const { ask, inside, spec, runId } = await runOf(idFrom(agentId))
    expect(JSON.stringify(specForSandbox(spec))).not.toContain('SERVER_KEY')
    expect(inside).toEqual({})
    expect((await server.ok(`/runs/${runId}/manifest`)).envKeysLeftOut).toMatchObject([{ name: 'SERVER_KEY' }])
    expect(await ask('web')).toContain('from the server')
    expect(seen).toEqual([{ path: '/of/value-of-SERVER_KEY', own: 'Key value-of-SERVER_KEY' }])
    expect((await doctor(agentId)).filter(({ code }) => code === 'credential_unbrokerable')).toEqual([])
    await server.ok(`/secrets/${secretId}/grants/${agentId}`, { method: 'DELETE' })
    const refused = await waitFor(async () => {
      const answer = await ask('web')
      return statusOf(answer) === 403 ? answer : null
    }, 'a refusal')
    expect(refused).toContain('SERVER_KEY')
  })

  test('is asked for its skills where an admin trusts it for them alone', async () => {
    const agentId = await agentOf()
    await addServer({ name: 'trusted', url: `${service.url}/trusted`, agentId, trustSkills: true })
    await addServer({ name: 'other', url: `${service.url}/other`, agentId })
    const { say } = await runOf(idFrom(agentId))
    const askFor = (name: string) => say(post(`/mcp/${name}`, '{"jsonrpc":"2.0","id":1,"method":"skills/list"}'))
    expect([statusOf(await askFor('trusted')), statusOf(await askFor('other'))]).toEqual([200, 403])
    expect(seen.map(({ path }) => path)).toEqual(['/trusted'])
  })

  test.each([
    ['whose host a variable names', 'https://${SERVER_KEY}.example.com/', {}, 'is written out, without variables'],
    [
      'at a host for which the secret is not',
      'https://mcp.example.com/',
      { brokerHosts: ['api.example.com'] },
      'is not for mcp.example.com',
    ],
  ])('%s is not asked, and the doctor says why', async (_name, url, more, words) => {
    const agentId = await agentOf()
    await addSecret(agentId, 'SERVER_KEY', { brokerHosts: ['mcp.example.com'], ...more })
    await addServer({ name: 'web', url, headers, agentId })
    const { ask } = await runOf(idFrom(agentId))
    const answer = await ask('web')
    expect([statusOf(answer), answer.includes(words), answer.includes('value-of')]).toEqual([403, true, false])
    expect(await doctor(agentId)).toContainEqual(
      expect.objectContaining({ code: 'mcp_connection_unusable', message: expect.stringContaining(words) }),
    )
  })

  test('is sent variables of connections that its headers name, where it is at a host of their service', async () => {
    await connect('keyed')
    const agentId = await agentOf()
    const own = { headers: { 'x-key': '${KEYED_KEY}' }, agentId }
    await addServer({ name: 'elsewhere', url: `${service.url}/x`, ...own })
    await addServer({ name: 'there', url: `https://${place}/x`, ...own, headers: { 'x-token': '${KEYED_KEY}' } })
    const { ask } = await runOf(idFrom(agentId))
    expect(await ask('elsewhere')).toContain('the connection that gives KEYED_KEY is not for 127.0.0.1')
    expect(await ask('there')).toContain('by somebody')
    expect(seen).toEqual([])
  })

  test('that is this server with the token of the run is asked as other requests to it', async () => {
    const agentId = await agentOf()
    const own = { url: '${SVC_API_URL}/api/v1/mcp', headers: { authorization: 'Bearer ${SVC_TOKEN}' } }
    await addServer({ name: 'own', ...own, agentId })
    const { spec, ask } = await runOf(idFrom(agentId))
    expect(specForSandbox(spec).mcpServers['own']).toEqual({ type: 'http', ...own })
    expect(statusOf(await ask('own'))).toBe(403)
  })
})
