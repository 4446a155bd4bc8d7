import { once } from 'node:events'
import { request, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { filledServers } from '../../../shared/runs/filled-servers.ts'
import { Connections } from '../../../device-manager/run-host/mcp-proxy/connections.ts'
import { openMcpProxies, type McpProxies } from '../../../device-manager/run-host/mcp-proxy/mcp-proxies.ts'
import { McpProxy, proxyLimits } from '../../../device-manager/run-host/mcp-proxy/mcp-proxy.ts'
import { upstreamBy } from '../../../device-manager/run-host/mcp-proxy/upstream.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import type { McpServer } from '../../../shared/runs/mcp-servers.ts'
import { startMcpServer, type McpHttpServer } from '../../kit/mcp-http-server.ts'

// Doors to real servers on loopback, asked over real sockets as a harness would, and as others would.

const secret = 'a-"secret"-nobody-may-see'
let server: McpHttpServer
const noConnections = () => ({ log: () => {}, connections: new Connections({ world: realWorld, ask: () => {} }) })
const closing: { close(): void }[] = []

beforeEach(async () => {
  server = await startMcpServer(`Bearer ${secret}`)
})
afterEach(async () => {
  for (const one of closing.splice(0)) one.close()
  await server.stop()
})

interface Opened {
  doors: McpProxies
  address: string
}
async function opened(
  change: Partial<McpServer> = {},
  secrets: Record<string, string> = { KEY: secret },
): Promise<Opened> {
  const headers = { Authorization: 'Bearer ${KEY}' }
  const spec = { web: { type: 'http', url: server.url, headers, ...change } as McpServer }
  const doors = await openMcpProxies(spec, noConnections())
  closing.push(doors)
  const { servers } = doors.lead(filledServers(spec, secrets).servers, { spec, secrets, env: secrets })
  const led = servers['web']
  if (led === undefined || led.type === 'stdio') throw new Error('there is no door')
  expect(led.headers).toBeUndefined()
  return { doors, address: led.url }
}

interface Asked {
  method?: string
  headers?: OutgoingHttpHeaders
  body?: unknown
}
async function answerOf(address: string, { method = 'POST', headers, body }: Asked = {}): Promise<IncomingMessage> {
  const content = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const sent = request(address, { method, headers: { 'content-type': 'application/json', ...headers }, agent: false })
  sent.end(content)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}
const ask = async (address: string, asked: Asked = {}) => {
  const answer = await answerOf(address, asked)
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) }
}
const call = (name: string, params: object = {}, id: number | string = 7) => ({
  jsonrpc: '2.0',
  id,
  method: name,
  params,
})
const say = (words: string) => call('tools/call', { name: 'say', arguments: { text: words } })
const errorOf = (body: string) => JSON.parse(body) as { id: unknown; error: { code: number; message: string } }

describe('what passes', () => {
  test('the credential is added, and all else that the protocol needs goes both ways, in both versions of it', async () => {
    const { address } = await opened()
    server.instead = (_, response) => {
      response.setHeader('set-cookie', 'a=b')
      response.setHeader('mcp-other', 'x')
      return false
    }
    const headers = {
      accept: 'application/json, text/event-stream',
      authorization: 'Bearer of-the-harness',
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
      connection: 'close, x-hop',
      'x-hop': '1',
      'last-event-id': '12',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'say',
      'mcp-param-region': 'eu',
      traceparent: '00-1-2-01',
    }
    const inputRequired = {
      ...say('hey'),
      params: { ...say('hey').params, inputResponses: { a: 1 }, _meta: { traceparent: 'x' } },
    }
    const { status, body, headers: back } = await ask(address, { headers, body: inputRequired })
    expect([status, JSON.parse(body)]).toMatchObject([200, { id: 7, result: { content: [{ text: 'said hey' }] } }])
    const [got] = server.calls
    expect(got?.said).toEqual(inputRequired)
    const { authorization, cookie, ...passed } = got!.headers
    expect([authorization, cookie, passed['x-forwarded-for'], passed['x-hop']]).toEqual([
      `Bearer ${secret}`,
      undefined,
      undefined,
      undefined,
    ])
    const {
      connection: _,
      'x-hop': _hop,
      'x-forwarded-for': _for,
      authorization: _own,
      cookie: _cookie,
      ...expected
    } = headers
    expect(passed).toMatchObject(expected)
    expect([back['mcp-other'], back['set-cookie']]).toEqual(['x', undefined])

    const begun = await ask(address, { body: call('initialize', { protocolVersion: '2025-11-25' }) })
    expect(begun.headers['mcp-session-id']).toBe('session-1')
    const inSession = { 'mcp-session-id': 'session-1' }
    expect(await ask(address, { body: { jsonrpc: '2.0', method: 'notifications/initialized' } })).toMatchObject({
      status: 202,
    })
    expect(await ask(address, { method: 'DELETE', headers: inSession })).toMatchObject({ status: 202 })
    expect(server.calls.at(-1)).toMatchObject({ method: 'DELETE', headers: inSession })
    // An answer that asks for input is none of the door's business.
    const wanted = { jsonrpc: '2.0', id: 7, result: { resultType: 'input_required', inputRequests: { a: {} } } }
    server.instead = (_, response) => response.end(JSON.stringify(wanted)) !== undefined
    expect(JSON.parse((await ask(address, { body: say('hey') })).body)).toEqual(wanted)
  })

  test.each([
    ['GET', undefined],
    ['POST', call('subscriptions/listen')],
  ])(
    'the first event of a stream comes while the stream is open, and the end of the run cuts it: %s',
    async (method, body) => {
      const { doors, address } = await opened()
      const answer = await answerOf(address, { method, body, headers: { accept: 'text/event-stream' } })
      const [first] = (await once(answer, 'data')) as [Buffer]
      expect(first.toString()).toContain('notifications/message')
      expect(server.open.size).toBe(1)
      const cut = once(answer, 'error')
      doors.close()
      await cut
      await until(() => server.open.size === 0)
      await expect(ask(address)).rejects.toThrow('ECONNREFUSED')
    },
  )

  test('a harness that goes away ends its request at the server', async () => {
    const { address } = await opened()
    const answer = await answerOf(address, { method: 'GET' })
    await once(answer, 'data')
    answer.on('error', () => {}).destroy()
    await until(() => server.open.size === 0)
  })

  test('a credential that the server says back is taken out, in whatever pieces it comes', async () => {
    const { address } = await opened()
    server.instead = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const said = `data: ${JSON.stringify({ jsonrpc: '2.0', id: 7, result: { echo: `Bearer ${secret}` } })}\n\n`
      const send = (at: number) => {
        if (at >= said.length) return void response.end()
        response.write(said.slice(at, at + 5))
        setImmediate(send, at + 5)
      }
      send(0)
      return true
    }
    const { body } = await ask(address, { body: say('hey') })
    expect(JSON.parse(body.slice(6))).toEqual({ jsonrpc: '2.0', id: 7, result: { echo: 'Bearer [redacted:KEY]' } })
  })

  test('of an address that holds the secret, too; without one, a server is no business of doors', async () => {
    const url = server.url.replace('/mcp', '/${KEY}/mcp')
    const { address } = await opened({ url, headers: {} }, { KEY: 'in-the-path' })
    server.accepts = null
    await ask(address, { body: say('hey') })
    expect(server.calls[0]?.path).toBe('/in-the-path/mcp')
    const spec = { plain: { type: 'http', url: server.url, headers: { 'x-a': 'b' } } as McpServer }
    const doors = await openMcpProxies(spec, noConnections())
    expect(doors.lead(spec, { spec, secrets: {}, env: {} })).toEqual({ servers: spec, leftOut: [] })
  })
})

describe('who does not pass', () => {
  test.each<[string, (address: string) => string, Asked, number]>([
    ['without the path', (address) => new URL('/', address).href, {}, 404],
    ['with another path', (address) => `${address.slice(0, -1)}${address.endsWith('A') ? 'B' : 'A'}`, {}, 404],
    ['with more of a path', (address) => `${address}/1`, {}, 404],
    [
      'who looks for a sign-in',
      (address) => new URL('/.well-known/oauth-protected-resource', address).href,
      { method: 'GET' },
      404,
    ],
    ['by a name that leads here', (address) => address, { headers: { host: 'rebound.example' } }, 403],
    ['by localhost', (address) => address, { headers: { host: 'localhost' } }, 403],
    ['a page in a browser', (address) => address, { headers: { origin: 'null' } }, 403],
    ['by another method', (address) => address, { method: 'PUT' }, 405],
  ])('%s', async (_, at, asked, status) => {
    const { address } = await opened()
    expect(await ask(at(address), { body: say('hey'), ...asked })).toMatchObject({ status, body: '' })
    expect(server.calls).toEqual([])
  })

  test('with the path of another run, or before the run has its secrets', async () => {
    const [mine, theirs] = [await opened(), await opened()]
    const path = new URL(theirs.address).pathname
    expect(await ask(new URL(path, mine.address).href, { body: say('hey') })).toMatchObject({ status: 404 })
    expect(server.calls).toEqual([])
  })

  test('a message that is too large, and skills that a server offers', async () => {
    const { address } = await opened()
    const large = say('x'.repeat(proxyLimits.bodyBytes))
    expect(await ask(address, { body: large })).toMatchObject({ status: 413 })
    for (const body of [call('skills/list'), call('resources/read', { uri: 'skill://a/SKILL.md' })]) {
      expect(errorOf((await ask(address, { body })).body)).toMatchObject({ id: 7, error: { code: -32601 } })
    }
    expect(server.calls).toEqual([])
  })

  test.each([
    ['by a method that comes twice', '{"id":7,"method":"skills/list","method":"ping"}', {}, 200, -32601],
    ['by an address in escapes', String.raw`{"id":7,"params":{"\u0055RI":"\u0053KILL:a"}}`, {}, 200, -32601],
    ['by a header', call('ping'), { 'mcp-method': 'skills/list' }, 200, -32601],
    ['in what is no JSON', "{method:'skills/list'}", {}, 400, -32000],
    ['in what is packed', call('ping'), { 'content-encoding': 'gzip' }, 200, -32000],
    ['in another type', call('ping'), { 'content-type': 'text/plain' }, 200, -32000],
  ])('skills, asked for %s', async (_, body, headers, status, code) => {
    const { address } = await opened()
    const answer = await ask(address, { body, headers })
    expect([answer.status, errorOf(answer.body).error.code]).toEqual([status, code])
    expect(server.calls).toEqual([])
  })
})

describe('skills that a server offers', () => {
  const skill = { uri: 'skill://tides/SKILL.md', name: 'tides' }
  const page = { uri: 'file:///page', name: 'page' }
  const list = { jsonrpc: '2.0', id: 7, result: { resources: [skill, page, { uri: ' SKILL:x', name: 'x' }], next: 1 } }
  const templates = { jsonrpc: '2.0', id: 7, result: { resourceTemplates: [{ uriTemplate: 'skill://{name}' }] } }
  const kept = { jsonrpc: '2.0', id: 7, result: { resources: [page], next: 1 } }
  const saying = (type: string, ...parts: string[]) => {
    server.instead = (_, response) => {
      response.writeHead(200, { 'content-type': type })
      for (const part of parts) response.write(part)
      return response.end() !== undefined
    }
  }
  const json = 'application/json'
  const listed = (address: string, name = 'resources/list') => ask(address, { body: call(name) })

  test('are taken out of lists, however they come', async () => {
    const { address } = await opened()
    saying(json, JSON.stringify(list))
    expect(JSON.parse((await listed(address)).body)).toEqual(kept)
    saying(json, JSON.stringify(templates).replace('skill:', String.raw`\u0073kill:`))
    expect(JSON.parse((await listed(address, 'resources/templates/list')).body).result).toEqual({
      resourceTemplates: [],
    })
    // Longer than a short answer, and in several messages.
    const long = { ...list, result: { resources: [...Array.from({ length: 2_000 }, () => page), skill] } }
    saying(json, JSON.stringify([long, list]))
    const [first, second] = JSON.parse((await listed(address)).body)
    expect([first.result.resources.length, second]).toEqual([2_000, kept])
    const note = 'event: message\ndata: {"method":"notifications/message"}\n\n'
    const event = `id: 4\r\ndata: ${JSON.stringify(list)}\r\n\r\n`
    for (const method of ['POST', 'GET']) {
      saying('text/event-stream', note, event.slice(0, 30), event.slice(30, -3), `${event.slice(-3)}: ping\n\n`)
      const { body } = await ask(address, { method, ...(method === 'POST' && { body: call('resources/list') }) })
      expect(body).toBe(`${note}id: 4\ndata: ${JSON.stringify(kept)}\n\n: ping\n\n`)
    }
  })

  test('are passed on by a server that an admin trusts for them, with all else as it came', async () => {
    const { address } = await opened({ trustSkills: true })
    saying(json, JSON.stringify(list))
    expect((await listed(address)).body).toBe(JSON.stringify(list))
    for (const body of [call('skills/list'), call('resources/read', { uri: skill.uri })])
      expect((await ask(address, { body })).body).toBe(JSON.stringify(list))
    const { address: other } = await opened()
    const same = ' {"jsonrpc":"2.0",  "id":7,"result":{"resources":[]}}'
    saying(json, same)
    expect((await listed(other)).body).toBe(same)
  })

  test('in a list without end are not waited for', async () => {
    const { address } = await opened()
    const large = 'x'.repeat(5 * 1024 * 1024)
    saying(json, large)
    expect(errorOf((await listed(address)).body).error.message).toContain('its list is too large')
    saying('text/event-stream', `data: ${large}`)
    await expect(listed(address)).rejects.toThrow('aborted')
  })
})

describe('what goes wrong', () => {
  const broken = (_: unknown, response: ServerResponse) => response.socket?.destroy() !== undefined

  test('a call of a tool is sent once, and its answer says what is the matter', async () => {
    const { address } = await opened()
    // So that the connection is one that was used before.
    await ask(address, { body: call('ping') })
    server.instead = broken
    const { status, body } = await ask(address, { body: say('hey') })
    expect([status, errorOf(body)]).toMatchObject([
      200,
      {
        id: 7,
        error: { code: -32000, message: expect.stringMatching(/^The MCP server web: it could not be reached/) },
      },
    ])
    expect(server.of('tools/call')).toHaveLength(1)
    expect(await ask(address, { method: 'GET' })).toMatchObject({ status: 502 })
    await server.stop()
    const gone = errorOf((await ask(address, { body: say('hey') })).body)
    expect(gone.error.message).toBe('The MCP server web: it could not be reached (ECONNREFUSED).')
    server = await startMcpServer()
  })

  test('an idle connection that the server closes in this moment: what does nothing is sent again', async () => {
    const lazy = await lazyServer()
    const { address } = await opened({ url: lazy.url })
    for (const body of [call('ping'), call('tools/list')]) expect((await ask(address, { body })).status).toBe(200)
    expect(lazy.heard).toEqual(['ping', 'tools/list', 'tools/list'])
    await ask(address, { body: call('ping') })
    const { body } = await ask(address, { body: say('hey') })
    expect(errorOf(body).error.message).toContain('could not be reached')
    expect(lazy.heard.filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  test('a refused credential is said as such, and starts no sign-in', async () => {
    const { address } = await opened({}, { KEY: 'another' })
    const { status, headers, body } = await ask(address, { body: say('hey') })
    expect([status, errorOf(body).error.message]).toEqual([
      200,
      'The MCP server web: it refused the credential that svc sent (401).',
    ])
    expect(headers['www-authenticate']).toBeUndefined()
    expect(await ask(address, { method: 'GET' })).toMatchObject({ status: 502 })
    expect(server.of('tools/call')).toHaveLength(1)
  })

  test('an answer that breaks off looks so', async () => {
    const { address } = await opened()
    server.instead = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
      response.write('{"jsonrpc"')
      setImmediate(() => response.socket?.destroy())
      return true
    }
    const { status, body } = await ask(address, { body: say('hey') })
    expect([status, errorOf(body).error.message]).toEqual([200, 'The MCP server web: its answer broke off.'])
    server.instead = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('x'.repeat(100_000))
      setTimeout(() => response.socket?.destroy(), 20)
      return true
    }
    await expect(ask(address, { body: say('hey') })).rejects.toThrow('aborted')
    const large = JSON.stringify({ jsonrpc: '2.0', id: 7, result: [`Bearer ${secret}`, 'x'.repeat(1_000_000)] })
    server.instead = (_, response) => response.end(large) !== undefined
    expect((await ask(address, { body: say('hey') })).body).toBe(
      large.replace(JSON.stringify(secret).slice(1, -1), '[redacted:KEY]'),
    )
  })

  test('redirects are followed within the origin alone', async () => {
    const other = await startMcpServer()
    closing.push({ close: () => void other.stop() })
    const { address } = await opened()
    const to = (location: string, status: number) => {
      server.instead = ({ path }, response) =>
        path === '/mcp' && response.writeHead(status, { location }).end() !== undefined
    }
    to('/mcp/', 307)
    expect((await ask(address, { body: say('hey') })).body).toContain('said hey')
    expect(server.calls.at(-1)).toMatchObject({ path: '/mcp/', headers: { authorization: `Bearer ${secret}` } })
    const refusals: [string, number, string][] = [
      [other.url, 307, `it redirects to another address: ${new URL(other.url).origin}.`],
      ['http://[broken', 307, 'it redirects to another address: none.'],
      ['/elsewhere', 302, 'it redirects to /elsewhere: name that address.'],
      ['/mcp', 308, 'it redirects too often.'],
    ]
    for (const [location, status, why] of refusals) {
      to(location, status)
      expect(errorOf((await ask(address, { body: say('hey') })).body).error.message).toBe(`The MCP server web: ${why}`)
    }
    expect(other.calls).toEqual([])
  })
})

test('a credential that can be renewed is, once; a call of a tool is told to be made again', async () => {
  const held = { headers: { authorization: 'Bearer old' }, renewals: 0, next: `Bearer ${secret}` }
  const door = await McpProxy.listen('web', () => {})
  closing.push(door)
  const renew = () => {
    held.renewals++
    held.headers = { authorization: held.next }
    return Promise.resolve(true)
  }
  const credential = { headers: () => Promise.resolve(held.headers), renew }
  const redactor = new Redactor([])
  const target = { isSse: false, trustsSkills: false, credential, redactor, upstream: upstreamBy({}) }
  door.lead({ ...target, url: new URL(server.url) })
  expect(JSON.parse((await ask(door.address, { body: call('tools/list') })).body)).toHaveProperty('result.tools')
  expect(held.renewals).toBe(1)
  held.headers = { authorization: 'Bearer old' }
  const refused = errorOf((await ask(door.address, { body: say('hey') })).body)
  expect(refused.error.message).toContain('call again')
  expect(server.of('tools/call')).toHaveLength(1)
  expect((await ask(door.address, { body: say('hey') })).body).toContain('said hey')
  held.headers = { authorization: 'Bearer old' }
  held.next = 'Bearer wrong'
  const twice = errorOf((await ask(door.address, { body: call('tools/list') })).body)
  expect(twice.error.message).toBe('The MCP server web: it refused the new credential, too (401).')
  expect(server.of('tools/list')).toHaveLength(4)
})

test('the older transport: messages go to the address that the stream names, of the same origin', async () => {
  let named = '/messages?session=ä'
  const { address } = await opened({ type: 'sse', url: server.url })
  server.instead = ({ method }, response) => {
    if (method !== 'GET') return false
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': hello\r\n\r\nevent: endpoint\r\ndata: ')
    setImmediate(() => response.write(`${named}\r\n\r\nevent: message\ndata: {"a":"ä"}\n\n`))
    return true
  }
  const stream = await answerOf(address, { method: 'GET' })
  let heard = ''
  stream.on('error', () => {}).on('data', (chunk: Buffer) => (heard += chunk.toString()))
  await until(() => heard.includes('"ä"'))
  expect(heard).toMatch(/^: hello\r\n\r\nevent: endpoint\ndata: \/[\w-]{43}\/1\n\nevent: message\ndata: {"a":"ä"}\n\n$/)
  const messages = new URL(/data: (\/\S+)/.exec(heard)![1]!, address).href
  expect((await ask(messages, { body: say('hey') })).body).toContain('said hey')
  expect(server.calls.at(-1)).toMatchObject({
    path: '/messages?session=%C3%A4',
    headers: { authorization: `Bearer ${secret}` },
  })
  stream.destroy()
  named = 'http://127.0.0.1:1/messages'
  const refused = await answerOf(address, { method: 'GET' })
  await expect(text(refused)).rejects.toThrow('aborted')
})

async function until(is: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 20_000; !is();) {
    if (Date.now() > deadline) throw new Error('not in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Answers the first request on each connection, and closes the connection when the second one comes. */
async function lazyServer(): Promise<{ url: string; heard: string[] }> {
  const heard: string[] = []
  const listener: Server = createServer((socket) => {
    let requests = 0
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      heard.push(/"method":"([^"]+)"/.exec(chunk.toString())?.[1] ?? '')
      if (++requests === 2) return void socket.resetAndDestroy()
      const body = JSON.stringify({ jsonrpc: '2.0', id: 7, result: {} })
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  closing.push(listener)
  const { port } = listener.address() as { port: number }
  return { url: `http://127.0.0.1:${port}/mcp`, heard }
}
