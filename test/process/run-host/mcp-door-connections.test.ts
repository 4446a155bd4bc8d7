import { idFrom, type ConnectionId } from '../../../shared/lib/ids.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Connections } from '../../../device-manager/run-host/mcp-proxy/connections.ts'
import { openMcpProxies } from '../../../device-manager/run-host/mcp-proxy/mcp-proxies.ts'
import type { HostReply } from '../../../device-manager/run-host/wire/protocol.ts'
import type { CredentialAnswer } from '../../../shared/device/credential.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import type { McpServer } from '../../../shared/runs/mcp-servers.ts'
import { startMcpServer, type McpHttpServer } from '../../kit/mcp-http-server.ts'
import { woundWorld, type WoundWorld } from '../../kit/wound-world.ts'

// Doors whose credential is a connection's: when it is asked for, and what a harness hears when there is none.

type Asked = Extract<HostReply, { type: 'credential.get' }>
const connectionId = 'conn_0123456789abcdef'
let server: McpHttpServer
let world: WoundWorld
let asked: Asked[]
let answers: CredentialAnswer[]
const closing: { close(): void }[] = []

beforeEach(async () => {
  server = await startMcpServer()
  world = woundWorld()
  asked = []
  answers = []
})
afterEach(async () => {
  for (const one of closing.splice(0)) one.close()
  await server.stop()
})

const token = (version: number, expiresInMs: number | null = null): CredentialAnswer => ({
  ok: true,
  headers: { authorization: `Bearer token-${version}-of-many` },
  values: [`token-${version}-of-many`],
  version,
  expiresInMs,
})

async function opened(...said: CredentialAnswer[]) {
  answers = said
  const connections: Connections = new Connections({
    world,
    ask(request) {
      asked.push(request)
      const answer = answers.shift()
      if (answer !== undefined) queueMicrotask(() => connections.answered(request.requestId, answer))
    },
  })
  const web: McpServer = {
    type: 'http',
    url: server.url,
    headers: { 'X-Own': '1', Authorization: 'mine' },
    connectionId: idFrom<ConnectionId>(connectionId),
  }
  const doors = await openMcpProxies({ web }, { log: () => {}, connections })
  closing.push(doors)
  const led = doors.lead({ web }, { spec: { web }, secrets: {}, env: {} }).servers['web']
  const address = (led as { url: string }).url
  expect(JSON.stringify(led)).not.toContain('conn_')
  const call = async (method: string, params: object = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    return (await fetch(address, { method: 'POST', headers, body })).json()
  }
  return { connections, call, say: () => call('tools/call', { name: 'say', arguments: { text: 'hey' } }) }
}
const sent = () => server.calls.map(({ headers }) => headers.authorization)
const failing = (words: string) => ({ error: { message: expect.stringContaining(words) } })
const said = { result: { content: [{ text: 'said hey' }] } }

test('it is asked for once by all requests, and kept', async () => {
  const { call, say } = await opened(token(1))
  await Promise.all([call('ping'), call('ping'), say()])
  expect(await say()).toMatchObject(said)
  expect(asked).toMatchObject([{ type: 'credential.get', connectionId }])
  expect(new Set(sent())).toEqual(new Set(['Bearer token-1-of-many']))
  expect(server.calls[0]!.headers).toMatchObject({ 'x-own': '1' })
})

test('it is asked for anew before it ends', async () => {
  const { say } = await opened(token(1, 60_000), token(2, 60_000))
  await say()
  world.advance(44_000)
  await say()
  world.advance(2_000)
  await say()
  expect(sent()).toEqual(['Bearer token-1-of-many', 'Bearer token-1-of-many', 'Bearer token-2-of-many'])
})

test('one that is refused is asked for anew, and a call of a tool is not sent twice', async () => {
  const { call, say } = await opened(token(1), token(2))
  server.accepts = 'Bearer token-2-of-many'
  expect(await say()).toMatchObject(failing('svc has a new one now: call again'))
  expect(asked.map(({ refusedVersion }) => refusedVersion)).toEqual([undefined, 1])
  expect(server.of('tools/call')).toHaveLength(1)
  expect(await say()).toMatchObject(said)
  server.accepts = 'Bearer token-3-of-many'
  answers.push(token(3))
  world.advance(6_000)
  expect(await call('ping')).toMatchObject({ result: {} })
})

test('many that are refused at the same moment lead to one new credential', async () => {
  const { call } = await opened(token(1), token(2))
  await call('ping')
  server.accepts = 'Bearer token-2-of-many'
  for (const answer of await Promise.all(Array.from({ length: 20 }, () => call('ping'))))
    expect(answer).toMatchObject({ result: {} })
  expect(asked).toHaveLength(2)
})

test('without another one the call fails with what a person does', async () => {
  const { say } = await opened(token(1), token(1))
  server.accepts = 'Bearer another'
  expect(await say()).toMatchObject(failing(`svc connection reauthorize ${connectionId}`))
})

test('a call that needs more than was signed in for says so, and is not made again', async () => {
  const { call, say } = await opened(token(1))
  server.instead = ({ said: message }, response) => {
    if (message?.method !== 'tools/call') return false
    response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="notes:write"' }).end()
    return true
  }
  expect(await say()).toMatchObject(failing('insufficient_scope'))
  expect([server.of('tools/call').length, asked.length]).toEqual([1, 1])
  expect(await call('ping')).toMatchObject({ result: {} })
})

test('what svc says is told, and not asked again at once', async () => {
  const no = { ok: false as const, message: 'The connection to Tracker is expired.' }
  const { say } = await opened(no, token(1))
  for (let time = 0; time < 3; time++)
    expect(await say()).toMatchObject(failing(`the connection ${connectionId}: The connection to Tracker is expired.`))
  expect(asked).toHaveLength(1)
  world.advance(3_000)
  expect(await say()).toMatchObject(said)
})

test('a daemon that was away is asked again, with the same request, and in the end the call fails', async () => {
  const { connections, say } = await opened()
  const saying = say()
  await expect.poll(() => asked.length).toBe(1)
  world.advance(5_000)
  expect(new Set(asked.map(({ requestId }) => requestId)).size).toBe(1)
  expect(asked).toHaveLength(2)
  connections.answered('another', token(9))
  connections.answered(asked[0]!.requestId, token(1))
  expect(await saying).toMatchObject(said)
})

test('nobody who answers makes the call fail in the end', async () => {
  const { say } = await opened()
  const saying = say()
  await expect.poll(() => asked.length).toBe(1)
  for (let time = 0; time < 14; time++) world.advance(5_000)
  expect(await saying).toMatchObject(failing('svc did not answer'))
})

test('the values are known to whoever reads the output of the run, also to streams that were open before', async () => {
  const { connections, say } = await opened(token(1), token(2))
  const output = new Redactor([])
  const stream = output.another()
  connections.teach(output)
  await say()
  const redacted = Buffer.from(stream.push(Buffer.from('it is token-1-of-many.'))).toString()
  expect(redacted + Buffer.from(stream.flush()).toString()).toBe(`it is [redacted:${connectionId}].`)
  expect(output.redactText('token-1-of-many')).toBe(`[redacted:${connectionId}]`)
})
