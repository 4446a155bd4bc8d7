import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ServerUnusable, type ServerPermit } from '../../../control-plane/sandbox/broker/server-access.ts'
import { forward } from '../../../device-manager/sandbox/forwarder.ts'
import { brokerCredential, throughBroker } from '../../../device-manager/run-host/mcp-proxy/broker.ts'
import { McpProxy } from '../../../device-manager/run-host/mcp-proxy/mcp-proxy.ts'
import { upstreamBy } from '../../../device-manager/run-host/mcp-proxy/upstream.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { waitFor } from '../../kit/programs.ts'
import { get, nothing, post, startBroker, statusOf, textOf } from './broker-kit.ts'

import { first, second, startMcp, startListener, mcpServer, call, say, isRefusal } from './mcp-kit.ts'

// MCP servers of a run, which its broker asks with what the sandbox does not have.

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

describe('the door of a sandbox', () => {
  async function startDoor(address: string, more: Partial<ServerPermit> = {}) {
    const { socket, given } = await startMcp(address, more)
    const forwarder = await forward({ path: socket }, { port: 0 })
    const door = await McpProxy.listen('web', () => undefined)
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
