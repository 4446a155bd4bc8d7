import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestListener } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { brokerRefusal } from '../../../shared/runs/brokered.ts'
import type { McpLimits } from '../../../control-plane/sandbox/broker/mcp-requests.ts'
import { ServerUnusable, type ServerPermit } from '../../../control-plane/sandbox/broker/server-access.ts'
import { forward } from '../../../device-manager/sandbox/forwarder.ts'
import { brokerCredential, throughBroker } from '../../../device-manager/run-host/door/broker.ts'
import { Door } from '../../../device-manager/run-host/door/door.ts'
import { upstreamBy } from '../../../device-manager/run-host/door/upstream.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { waitFor } from '../../kit/programs.ts'
import { startServer } from '../../kit/hostile-server.ts'
import { startMcpServer } from '../../kit/mcp-http-server.ts'
import { isLong } from '../../kit/forms.ts'
import { get, nothing, post, startBroker, statusOf, textOf } from './broker-kit.ts'

/** MCP servers of a run, which its broker asks with what the sandbox does not have. */

const first = 'token-one/0123456789+abcdef"x'
const second = 'token-two/9876543210+fedcba"y'

interface Given {
  token: string
  version: number
  /** Why it may not be asked any more. */
  why: string | null
  /** What becomes of a renewal. */
  renew: () => Promise<void>
  asked: (number | null)[]
}

/** A broker of a run with the MCP server `web` at this address. */
async function startMcp(
  address: string,
  { limits, ...more }: Partial<ServerPermit> & { limits?: Partial<McpLimits> } = {},
) {
  const given: Given = {
    token: first,
    version: 1,
    why: null,
    renew: async () => void Object.assign(given, { token: second, version: 2 }),
    asked: [],
  }
  const server: ServerPermit = {
    name: 'web',
    host: '127.0.0.1',
    isSse: false,
    hasConnection: true,
    async sent(refused = null) {
      given.asked.push(refused)
      if (given.why !== null) throw new ServerUnusable(given.why)
      if (refused === given.version) await given.renew()
      const { token, version } = given
      const headers = { authorization: `Bearer ${token}`, 'x-tenant': 'ours' }
      return { url: new URL(address), headers, secrets: [{ name: 'conn_1', value: token }], version }
    },
    whyNot: async () => given.why,
    ...more,
  }
  const broker = await startBroker({ permit: { servers: [server] }, ...(limits && { limits: { mcp: limits } }) })
  return { ...broker, given, server }
}

async function startListener(answer: RequestListener) {
  const server = await startServer(answer)
  onTestFinished(() => server.close())
  return { ...server, url: `http://127.0.0.1:${server.port}/mcp` }
}

async function mcpServer(accepts: string | null = `Bearer ${first}`) {
  const server = await startMcpServer(accepts)
  onTestFinished(() => server.stop())
  return server
}

const call = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
const say = (text: string) => call('tools/call', { name: 'say', arguments: { text } })
const isRefusal = (answer: string) => answer.toLowerCase().includes(`${brokerRefusal}: true`)

describe('a request for an MCP server', () => {
  test('goes to its address with what the connection signs in with, whatever the sandbox sends as that', async () => {
    const server = await mcpServer()
    const { say: tell, counted, asked } = await startMcp(server.url)
    const answer = await tell(
      post('/mcp/web', say('hey'), [
        'authorization: Bearer mine',
        'X-Tenant: theirs',
        'mcp-session-id: session-1',
        'cookie: a=b',
        'x-forwarded-for: 10.0.0.1',
        'proxy-authorization: Basic x',
        'accept-encoding: gzip',
      ]).replace('host: 127.0.0.1', 'host: evil.test'),
    )
    expect([statusOf(answer), answer.includes('said hey')]).toEqual([200, true])
    const { headers } = server.calls[0]!
    expect(headers).toMatchObject({
      authorization: `Bearer ${first}`,
      'x-tenant': 'ours',
      'mcp-session-id': 'session-1',
      'accept-encoding': 'identity',
      host: new URL(server.url).host,
    })
    for (const name of ['cookie', 'x-forwarded-for', 'proxy-authorization']) expect(headers).not.toHaveProperty(name)
    expect(await tell(post('/mcp/web', call('initialize')))).toContain('mcp-session-id: session-1')
    await tell(get('/mcp/web').replace('GET', 'DELETE'))
    expect(server.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /mcp',
      'POST /mcp',
      'DELETE /mcp',
    ])
    expect(asked).toEqual([])
    expect(await counted()).toEqual([{ host: '127.0.0.1', decision: 'allowed', requests: 3 }])
  })

  test('gets each event of a stream when it comes', async () => {
    const server = await mcpServer()
    const { open } = await startMcp(server.url)
    const socket = await open()
    socket.write(get('/mcp/web', ['accept: text/event-stream']))
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += String(chunk)))
    await waitFor(() => text.includes('notifications/message'), 'an event')
    expect(server.open.size).toBe(1)
    socket.destroy()
    await waitFor(() => server.open.size === 0, 'the end of a stream that nobody reads')
  })

  test('has no other way than the one of its run, and to no other path of its origin', async () => {
    const server = await mcpServer()
    const { say: tell, asked, counted } = await startMcp(server.url)
    const { host, origin } = new URL(server.url)
    for (const target of [
      '/mcp/other',
      '/mcp/WEB',
      '/mcp/',
      '/mcp',
      '/mcp/web/',
      '/mcp/web/..',
      '/mcp/web/../../admin',
      '/mcp/web/%2e%2e/admin',
      '/mcp/web/1',
      '/mcp/web/01',
      '/mcp/web?to=/admin',
      '/mcp/web#x',
      '/mcp//web',
      '//mcp/web',
      '/mcp/web%00',
      '/api/../mcp/web/..',
      `${origin}/mcp`,
      `${origin}/admin`,
      `http://x@${host}/mcp`,
      `//${host}/mcp`,
    ])
      expect([target, statusOf(await tell(get(target)))]).toEqual([
        target,
        target.startsWith('/api/') ? 200 : expect.any(Number),
      ])
    expect(statusOf(await tell(`CONNECT ${host} HTTP/1.1\r\nhost: x\r\n\r\n`))).toBe(403)
    expect(statusOf(await tell(get('/mcp/web').replace('GET', 'PUT')))).toBe(405)
    expect([server.calls, asked]).toEqual([[], ['GET /api/../mcp/web/..']])
    expect((await counted()).filter(({ decision }) => decision === 'allowed')).toEqual([
      { host: 'svc', decision: 'allowed', requests: 1 },
    ])
  })

  test.each([
    ['two lengths', ['content-length: 5', 'content-length: 6'], 'hello!'],
    ['a length and chunks', ['content-length: 5', 'transfer-encoding: chunked'], '0\r\n\r\n'],
    ['a bare line end', ['x-a: b\nauthorization: x'], ''],
    ['a space before the colon', ['authorization : x'], ''],
    ['an upgrade', ['connection: upgrade', 'upgrade: websocket'], ''],
  ])('is not handed on where it smuggles by %s', async (_name, headers, body) => {
    const server = await mcpServer()
    const { open } = await startMcp(server.url)
    const socket = await open()
    const said = textOf(socket)
    socket.end(['POST /mcp/web HTTP/1.1', 'host: x', ...headers, '', body].join('\r\n'))
    expect([0, 400, 403]).toContain(statusOf(await said))
    expect(server.calls).toEqual([])
  })

  test('keeps what the connection adds, whatever headers the sandbox calls its own', async () => {
    const server = await mcpServer()
    const { say: tell } = await startMcp(server.url)
    const answer = await tell(
      post('/mcp/web', say('x')).replace('connection: close', 'connection: close, authorization, x-tenant'),
    )
    expect([statusOf(answer), server.calls[0]!.headers['x-tenant']]).toEqual([200, 'ours'])
  })

  test('is not handed on once the run is over, or its connection is withdrawn, with a sentence', async () => {
    const server = await mcpServer()
    const { say: tell, given, counted } = await startMcp(server.url)
    expect(statusOf(await tell(post('/mcp/web', say('x'))))).toBe(200)
    given.why = 'the connection is revoked'
    const answer = await tell(post('/mcp/web', say('x')))
    expect([statusOf(answer), isRefusal(answer)]).toEqual([403, true])
    expect(answer).toContain('the connection is revoked')
    expect(server.calls).toHaveLength(1)
    expect(await counted()).toContainEqual({ host: '127.0.0.1', decision: 'refused', requests: 1 })
    const over = await startBroker({ permit: null })
    expect(statusOf(await over.say(post('/mcp/web')))).toBe(403)
  })

  test('is cut off in mid-stream when its connection is withdrawn', async () => {
    const server = await mcpServer()
    const { open, given } = await startMcp(server.url, { limits: { watchMs: 50 } })
    const socket = await open()
    const ended = textOf(socket)
    socket.write(get('/mcp/web'))
    await waitFor(() => server.open.size === 1, 'a stream')
    await sleep(200)
    expect(server.open.size).toBe(1)
    given.why = 'the connection is revoked'
    await ended
    await waitFor(() => server.open.size === 0, 'the end of the stream')
  })

  test('is bound by the checks of addresses', async () => {
    for (const address of [
      'http://10.0.0.1/mcp',
      'http://169.254.169.254/mcp',
      'http://[::1]/mcp',
      'ftp://127.0.0.1/',
    ]) {
      const { say: tell, counted } = await startMcp(address)
      const answer = await tell(post('/mcp/web', say('x')))
      expect([address, statusOf(answer), isRefusal(answer)]).toEqual([address, 502, true])
      expect((await counted())[0]?.decision).toBe('refused')
    }
  })
})

test('a host that takes connections and speaks no TLS counts as one that cannot be reached', async () => {
  const silent = createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as AddressInfo
  const { say: tell } = await startMcp(`https://127.0.0.1:${port}/mcp`, { limits: { connectMs: 200 } })
  const answer = await tell(post('/mcp/web', say('x')))
  expect([statusOf(answer), isRefusal(answer), answer.includes('could not be reached in time')]).toEqual([
    502,
    true,
    true,
  ])
  const { url } = await startListener((_request, response) => void setTimeout(() => response.end('slow'), 400))
  expect(await (await startMcp(url, { limits: { connectMs: 200 } })).say(post('/mcp/web', say('x')))).toContain('slow')
})

describe('a credential that the server refuses', () => {
  test('is renewed outside, for all that are refused at that moment; the sandbox hears that it may ask again', async () => {
    const server = await mcpServer(`Bearer ${second}`)
    const { say: tell, given } = await startMcp(server.url)
    const answers = await Promise.all([tell(post('/mcp/web', say('a'))), tell(post('/mcp/web', say('b')))])
    expect(answers.map((answer) => [statusOf(answer), isRefusal(answer)])).toEqual([
      [401, false],
      [401, false],
    ])
    expect(answers.join('')).not.toContain('www-authenticate')
    expect(given.asked.filter((refused) => refused !== null)).toEqual([1, 1])
    expect(statusOf(await tell(post('/mcp/web', say('a'))))).toBe(200)
  })

  test('and cannot be renewed fails with a sentence', async () => {
    const server = await mcpServer('Bearer nobody')
    const { say: tell, given, counted } = await startMcp(server.url)
    given.renew = async () => undefined
    expect(await tell(post('/mcp/web', say('a')))).toContain('refused the credential of its connection (401)')
    given.renew = () => Promise.reject(new ServerUnusable('the connection is expired'))
    const answer = await tell(post('/mcp/web', say('a')))
    expect([statusOf(answer), isRefusal(answer)]).toEqual([403, true])
    expect(answer).toContain('the connection is expired')
    expect(await counted()).toEqual([
      { host: '127.0.0.1', decision: 'failed', requests: 1 },
      { host: '127.0.0.1', decision: 'refused', requests: 1 },
    ])
  })

  test('that does not go far enough is told as that', async () => {
    const { url } = await startListener((_request, response) => {
      response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }).end()
    })
    const answer = await (await startMcp(url)).say(post('/mcp/web', say('a')))
    expect([isRefusal(answer), answer.includes('insufficient_scope')]).toEqual([true, true])
  })
})

describe('an answer', () => {
  const forms: [string, string][] = [
    ['as it is', first],
    ['as JSON', JSON.stringify({ token: first })],
    ['in an address', encodeURIComponent(first)],
    ['in base64', Buffer.from(first).toString('base64')],
    ['in base64 of something longer', Buffer.from(`me:${first}`).toString('base64')],
    ['in hex', Buffer.from(first).toString('hex')],
  ]
  test.each(forms)('that holds the credential %s comes without it', async (_name, told) => {
    const { url } = await startListener((_request, response) => response.end(`before ${told} after`))
    const answer = await (await startMcp(url)).say(post('/mcp/web', say('a')))
    expect([statusOf(answer), answer.includes(told), answer.includes('[redacted:conn_1]')]).toEqual([200, false, true])
    expect([answer.includes('before '), answer.includes(' after')]).toEqual([true, true])
  })

  test('that tells it bit by bit comes without it, and what follows comes at once', async () => {
    const bits = [first.slice(0, 3), first.slice(3, 9), first.slice(9), '\n\ndata: {"next":1}\n\n']
    const { url } = await startListener((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const [at, bit] of bits.entries()) setTimeout(() => response.write(bit), at * 40)
    })
    const { open } = await startMcp(url)
    const socket = await open()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += String(chunk)))
    socket.write(get('/mcp/web'))
    await waitFor(() => text.includes('"next":1'), 'the next event')
    expect([text.includes(first.slice(0, 4)), text.includes('[redacted:conn_1]')]).toEqual([false, true])
    socket.destroy()
  })

  test('in a stream that began before a renewal comes without the new one, too', async () => {
    const opened = Promise.withResolvers<(text: string) => void>()
    const { url } = await startListener((request, response) => {
      if (request.method === 'POST') return void response.writeHead(202).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      opened.resolve((text) => response.write(text))
    })
    const { open, say: tell, given } = await startMcp(url)
    const socket = await open()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += String(chunk)))
    socket.write(get('/mcp/web'))
    const write = await opened.promise
    await given.renew()
    await tell(post('/mcp/web', say('a')))
    write(`data: ${second}\n\ndata: {}\n\n`)
    await waitFor(() => text.includes('data: {}'), 'the event')
    expect(text).not.toContain(second)
    socket.destroy()
  })

  test.each([
    ['in a header', { 'mcp-session-id': first }, 'told its credential'],
    ['packed', { 'content-encoding': 'gzip' }, 'packed'],
  ])('that has it %s does not come', async (_name, headers, words) => {
    const { url } = await startListener((_request, response) => response.writeHead(200, headers).end('x'))
    const answer = await (await startMcp(url)).say(post('/mcp/web', say('a')))
    expect([statusOf(answer), isRefusal(answer), answer.includes(words), answer.includes(first)]).toEqual([
      502,
      true,
      true,
      false,
    ])
  })

  test('has no cookie, no challenge and no address of the server', async () => {
    const { url } = await startListener((_request, response) => {
      response.writeHead(404, {
        'set-cookie': 'a=b',
        'www-authenticate': 'Basic',
        [brokerRefusal]: 'true',
        link: '<x>',
      })
      response.end('not here')
    })
    const answer = (await (await startMcp(url)).say(post('/mcp/web', say('a')))).toLowerCase()
    expect([statusOf(answer.toUpperCase()), answer.includes('not here')]).toEqual([404, true])
    for (const name of ['set-cookie', 'www-authenticate', brokerRefusal, 'link'])
      expect(answer).not.toContain(`${name}:`)
  })

  test('that is too long, or takes too long, is cut off', async () => {
    const { url } = await startListener((request, response) => {
      if (request.method === 'POST') response.end(Buffer.alloc(300_000, 'a'))
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: x\n\n')
    })
    const { say: tell, counted } = await startMcp(url, { limits: { answerBytes: 100_000, timeMs: 300 } })
    expect((await tell(post('/mcp/web', say('a')))).length).toBeLessThan(110_000)
    expect(await tell(get('/mcp/web'))).toContain('data: x')
    expect((await counted()).map(({ decision }) => decision)).toEqual(['failed'])
  })

  test('that breaks off breaks off for the sandbox', async () => {
    const { url } = await startListener((_request, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('half')
      setTimeout(() => response.destroy(), 50)
    })
    const { open } = await startMcp(url)
    const socket = await open()
    socket.write(post('/mcp/web', say('a')))
    const answer = await textOf(socket)
    expect([answer.endsWith('half'), answer.includes('\r\n0\r\n')]).toEqual([false, false])
  })

  test('that leads to another origin is refused, and one to another path gets a number', async () => {
    const elsewhere = await mcpServer(null)
    let to = elsewhere.url
    const seen: string[] = []
    const { url } = await startListener((request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.authorization}`)
      if (request.url === '/mcp') response.writeHead(307, { location: to }).end()
      else response.end('there')
    })
    const { say: tell } = await startMcp(url)
    for (to of [elsewhere.url, '//evil.test/mcp', 'https://127.0.0.1/mcp', 'javascript:x', 'http://x@127.0.0.1/']) {
      const answer = await tell(post('/mcp/web', say('a')))
      expect([to, isRefusal(answer), answer.includes('redirects')]).toEqual([to, true, true])
    }
    expect(elsewhere.calls).toEqual([])
    to = '/mcp/?tenant=1'
    expect(await tell(post('/mcp/web', say('a')))).toMatch(/^HTTP\/1\.1 307[^]*location: \/mcp\/web\/1\r\n/)
    expect(await tell(post('/mcp/web/1', say('a')))).toContain('there')
    expect(statusOf(await tell(post('/mcp/web/2', say('a'))))).toBe(404)
    expect(seen.at(-1)).toBe(`POST /mcp/?tenant=1 Bearer ${first}`)
  })

  test('of the transport sse has a number in place of its address, and ends where that is of another origin', async () => {
    let named = '/messages?session=1'
    const { url } = await startListener((request, response) => {
      if (request.method === 'POST') return void response.writeHead(202).end(`sent to ${request.url}`)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`event: endpoint\ndata: ${named}\n\n`)
    })
    const { open, say: tell } = await startMcp(url, { isSse: true })
    const socket = await open()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += String(chunk)))
    socket.write(get('/mcp/web'))
    await waitFor(() => text.includes('event: endpoint\ndata: /mcp/web/1\n\n'), 'the address')
    expect(await tell(post('/mcp/web/1', say('a')))).toContain('sent to /messages?session=1')
    socket.destroy()
    named = 'http://evil.test/messages'
    expect(await tell(get('/mcp/web'))).not.toContain('evil.test')
  })
})

describe('too much', () => {
  test('a message of a gigabyte is refused before it is read, and one that says no length after a part of it', async () => {
    let received = 0
    const { url } = await startListener((request) => request.on('data', (chunk: Buffer) => (received += chunk.length)))
    const { open, counted } = await startMcp(url, { limits: { sentBytes: 100_000 } })
    const said = async (bytes: string, body: Buffer) => {
      const socket = await open()
      const answer = textOf(socket)
      socket.write(bytes)
      for (let sent = 0; sent < 4_000_000 && !socket.destroyed; sent += body.length) {
        socket.write(body)
        await sleep(0)
      }
      return statusOf(await answer)
    }
    const length = post('/mcp/web', '').replace('content-length: 0', `content-length: ${1024 ** 3}`)
    expect([0, 413]).toContain(await said(length, Buffer.alloc(64_000)))
    expect(received).toBe(0)
    const chunked = post('/mcp/web', '').replace('content-length: 0', 'transfer-encoding: chunked')
    const chunk = Buffer.concat([Buffer.from('fa00\r\n'), Buffer.alloc(64_000), Buffer.from('\r\n')])
    expect([0, 413]).toContain(await said(chunked, chunk))
    expect(received).toBeLessThan(200_000)
    expect(await counted()).toEqual([{ host: '127.0.0.1', decision: 'refused', requests: 2 }])
  })

  test('requests at once are refused in short, and the next ones pass', async () => {
    const { url } = await startListener((_request, response) => void setTimeout(() => response.end('done'), 300))
    const { say: tell, counted } = await startMcp(url, { limits: { open: 20 } })
    const many = isLong ? 1_000 : 150
    // The socket itself takes no more than its queue holds.
    const ask = () => tell(post('/mcp/web', say('a'))).catch(() => '')
    const answers = await Promise.all(Array.from({ length: many }, ask))
    const of = (status: number) => answers.filter((answer) => statusOf(answer) === status)
    expect(of(200).length).toBeGreaterThanOrEqual(20)
    expect(of(429).length).toBeGreaterThan(0)
    expect(of(429).every((answer) => answer.length < 400 && isRefusal(answer))).toBe(true)
    expect(of(200).length + of(429).length + of(0).length).toBe(many)
    expect(await tell(post('/mcp/web', say('a')))).toContain('done')
    expect((await counted()).map(({ decision }) => decision).toSorted()).toEqual(['allowed', 'refused'])
  })

  test('a reader that does not read has the server wait, until its time is over', async () => {
    let written = 0
    const closed = Promise.withResolvers<void>()
    const { url } = await startListener((_request, response) => {
      response.on('close', closed.resolve)
      const write = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 'a'))) written += 65_536
      }
      response.on('drain', write)
      write()
    })
    const { open } = await startMcp(url, { limits: { timeMs: 800 } })
    const socket = await open()
    socket.pause()
    socket.write(get('/mcp/web'))
    await closed.promise
    expect(written).toBeLessThan(16 * 1024 * 1024)
    socket.destroy()
  })
})

describe('the door of a sandbox', () => {
  async function startDoor(address: string, more: Partial<ServerPermit> = {}) {
    const { socket, given } = await startMcp(address, more)
    const forwarder = await forward({ path: socket }, { port: 0 })
    const door = await Door.listen('web', () => undefined)
    onTestFinished(() => {
      door.close()
      forwarder.close()
    })
    door.lead({
      url: new URL(`http://127.0.0.1:${forwarder.port}/mcp/web`),
      isSse: more.isSse === true,
      trustsSkills: false,
      credential: brokerCredential,
      redactor: new Redactor([]),
      upstream: throughBroker(upstreamBy({})),
    })
    const headers = { 'content-type': 'application/json' }
    const ask = async (body: string) => {
      const answer = await fetch(door.address, { method: 'POST', headers, body })
      return { status: answer.status, text: await answer.text() }
    }
    return { given, ask, door }
  }

  test('asks again by itself what does nothing, and tells of a call that a new credential is there', async () => {
    const server = await mcpServer(`Bearer ${second}`)
    const { ask, given } = await startDoor(server.url)
    expect((await ask(call('tools/list'))).text).toContain('"say"')
    expect(given.version).toBe(2)
    Object.assign(given, { token: first, version: 1 })
    expect((await ask(say('a'))).text).toContain('svc has a new one now: call again')
    expect((await ask(say('a'))).text).toContain('said a')
    expect(server.of('tools/call')).toHaveLength(2)
  })

  test('tells refusals of the broker as an answer to the call', async () => {
    const server = await mcpServer()
    const { ask, given } = await startDoor(server.url)
    given.why = 'the connection is revoked. A person signs in anew'
    const { status, text } = await ask(say('a'))
    expect([status, JSON.parse(text)]).toEqual([
      200,
      {
        jsonrpc: '2.0',
        id: 7,
        error: {
          code: -32000,
          message: 'The MCP server web: the connection is revoked. A person signs in anew.',
        },
      },
    ])
  })

  test('follows a server to another path of its own', async () => {
    const { url } = await startListener((request, response) => {
      if (request.url === '/mcp') response.writeHead(307, { location: '/mcp/' }).end()
      else response.end(JSON.stringify({ jsonrpc: '2.0', id: 7, result: { at: request.url } }))
    })
    const { ask } = await startDoor(url)
    expect((await ask(say('a'))).text).toContain('"at":"/mcp/"')
  })
})

test('a run that has no servers is refused all of them', async () => {
  const { say: tell, counted } = await startBroker({ permit: nothing })
  expect(statusOf(await tell(post('/mcp/web', say('a'))))).toBe(403)
  expect(await counted()).toEqual([{ host: '-', decision: 'refused', requests: 1 }])
})
