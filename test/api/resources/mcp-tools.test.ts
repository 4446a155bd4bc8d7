import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { toolListLimits } from '../../../control-plane/resources/mcp-servers/own/tool-list.ts'
import { startMcpServer, type McpCall, type McpHttpServer } from '../../kit/mcp-http-server.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'
import { secretsKey } from '../contract/stage.ts'

// The tools of MCP servers, asked from the control plane: who sends what where, and what a hostile server gets out of it.

let server: TestServer, member: Person, mcp: McpHttpServer
beforeAll(async () => {
  mcp = await startMcpServer()
  const services = [
    {
      id: 'tracker',
      label: 'Tracker',
      authKind: 'api_key',
      surfaces: ['mcp'],
      mcp: { url: mcp.url },
      fields: [{ name: 'apiKey', label: 'Key', required: true }],
    },
  ]
  const settings = { SVC_SECRETS_KEY: secretsKey, ...serviceSettings({ services }) }
  ;({ server, member } = await startWithPeople({ settings }))
})
afterAll(async () => {
  await server.stop()
  await mcp.stop()
})
afterEach(() => {
  Object.assign(mcp, { accepts: null, instead: null })
  mcp.calls.length = 0
})

const newServer = async (body: object, { token }: Person = server.owner) =>
  (await server.ok('/mcp-servers', { body: { name: `n${crypto.randomUUID()}`, url: mcp.url, ...body }, token }))
    .id as string
const tools = (id: string, { token }: Person = server.owner) => server.call(`/mcp-servers/${id}/tools`, { token })
const sent = (header: string) => new Set(mcp.calls.map(({ headers }) => headers[header]))
const secret = (name: string, value: string, more: object = {}) =>
  server.ok('/secrets', { body: { name, envVarName: name, value, ...more } })
/** Answers a method of the protocol as a test says. */
const answering = (method: string, answer: (call: McpCall) => unknown) => {
  mcp.instead = (call, response) => {
    if (call.said?.method !== method) return false
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: call.said.id, ...(answer(call) as object) }))
    return true
  }
}
const listing = (list: unknown, more: object = {}) =>
  answering('tools/list', () => ({ result: { tools: list, ...more } }))
const aTool = (more: object = {}) => ({ name: 'a', inputSchema: { type: 'object' }, ...more })

test('a server of 2025 is asked as such, by name, and its tools are listed with what it says of them', async () => {
  const { body } = await tools(await newServer({}))
  expect(body).toMatchObject({
    hasMore: false,
    data: [
      {
        object: 'mcp_tool',
        name: 'say',
        title: null,
        description: 'Says it.',
        annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
      },
    ],
  })
  expect(mcp.of('initialize')).toHaveLength(1)
  // Its session is ended, and nothing is listened for.
  expect(mcp.calls.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
  expect(mcp.calls.filter(({ method }) => method === 'GET')).toEqual([])
})

test('the key of a connection is sent, and taken out of what the server says back', async () => {
  mcp.accepts = 'Bearer key-of-tracker-5f2a'
  const connecting = { integrationId: 'tracker', ownerType: 'company', apiKeyFields: { apiKey: 'key-of-tracker-5f2a' } }
  const { connection } = await server.ok('/connections', { body: connecting })
  const id = await newServer({ connectionId: connection.id })
  listing([aTool({ description: `You sent ${mcp.accepts}.` })])
  const { body } = await tools(id, member)
  expect(body.data[0].description).toBe(`You sent Bearer [redacted:${connection.id}].`)
  await server.ok(`/connections/${connection.id}/revoke`, { method: 'POST' })
  mcp.calls.length = 0
  expect(outcomeOf(await tools(id))).toBe('409 mcp_sign_in_needed')
  expect(mcp.calls).toEqual([])
})

test('values of secrets are filled in for admins: those of the workspace for its servers, those of an agent for its own', async () => {
  const headers = { 'X-Key': '${TOOLS_KEY}', 'X-Other': '${UNSET:-otherwise}' }
  await secret('TOOLS_KEY', 'value-of-tools-key')
  const id = await newServer({ headers })
  expect(outcomeOf(await tools(id, member))).toBe('403 mcp_values_of_runs')
  expect(mcp.calls).toEqual([])
  expect((await tools(id)).status).toBe(200)
  expect([sent('x-key'), sent('x-other')]).toEqual([new Set(['value-of-tools-key']), new Set(['otherwise'])])
  // The owner of an agent sets the address of its server: an admin who asks sends nothing there that the agent is not granted.
  const agent = await server.createAgent({}, member.token)
  const own = await newServer({ headers, agentId: agent.id }, member)
  mcp.calls.length = 0
  const refused = await tools(own)
  expect([outcomeOf(refused), JSON.stringify(refused.body)]).toEqual([
    '403 mcp_values_of_runs',
    expect.stringContaining('TOOLS_KEY'),
  ])
  expect(mcp.calls).toEqual([])
  await secret('TOOLS_KEY_2', 'value-that-was-granted', { agentId: agent.id })
  const granted = await newServer({ headers: { 'X-Key': '${TOOLS_KEY_2}' }, agentId: agent.id }, member)
  expect((await tools(granted)).status).toBe(200)
  expect(sent('x-key')).toEqual(new Set(['value-that-was-granted']))
})

test('a program, the older transport, and a server in a private network are not asked', async () => {
  const program = await newServer({ transport: 'stdio', command: 'x', url: undefined })
  expect(outcomeOf(await tools(program))).toBe('409 mcp_server_not_asked')
  expect(outcomeOf(await tools(await newServer({ transport: 'sse' })))).toBe('409 mcp_server_not_asked')
  for (const url of ['http://10.0.0.1/mcp', 'http://localhost:1/mcp', 'https://169.254.169.254/latest'])
    expect([url, outcomeOf(await tools(await newServer({ url })))]).toEqual([url, '502 mcp_server_unreadable'])
})

test('a redirect to another server is not followed', async () => {
  const other = await startMcpServer()
  mcp.instead = (_, response) => {
    response.writeHead(307, { location: other.url }).end()
    return true
  }
  const reply = await tools(await newServer({ headers: { 'X-Key': 'plain' } }))
  expect([outcomeOf(reply), other.calls]).toEqual(['502 mcp_server_unreadable', []])
  await other.stop()
})

test.each<[string, () => void]>([
  ['pages without end', () => listing([aTool()], { nextCursor: 'more' })],
  ['more tools than are listed', () => listing(Array.from({ length: toolListLimits.tools + 1 }, () => aTool()))],
  ['more bytes than are read', () => listing([aTool({ description: 'x'.repeat(toolListLimits.bytes) })])],
  ['a schema that is too large', () => listing([aTool({ inputSchema: { type: 'object', x: 'x'.repeat(70_000) } })])],
  ['a schema that is too deep', () => listing([aTool({ inputSchema: { type: 'object', x: nested(100) } })])],
  ['a schema that is bottomless', () => listing([aTool({ inputSchema: { type: 'object', x: nested(5_000) } })])],
  ['no list', () => listing('none')],
  ['a tool without a name', () => listing([aTool({ name: '' })])],
  ['an error', () => answering('tools/list', () => ({ error: { code: -32603, message: 'no' } }))],
])('a server that answers %s is told as one that cannot be read', async (_, set) => {
  set()
  expect(outcomeOf(await tools(await newServer({})))).toBe('502 mcp_server_unreadable')
  expect(mcp.of('tools/list').length).toBeLessThanOrEqual(toolListLimits.pages)
})

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}
