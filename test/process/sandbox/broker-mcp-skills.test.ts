import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { ScanTurns, SkillGuard } from '../../../control-plane/sandbox/broker/skill-guard.ts'
import { waitFor } from '../../kit/programs.ts'
import { get, post, statusOf, textOf } from './broker-kit.ts'
import { call, isRefusal, mcpServer, say, startListener, startMcp } from './mcp-kit.ts'

// A program in a sandbox asks the broker by itself, without the proxy, for skills of an MCP server.

const chunked = (body: string, at: readonly number[]) =>
  [...at, body.length].map((to, n) => body.slice(n === 0 ? 0 : at[n - 1], to)).filter((part) => part !== '')
const asChunk = (part: string) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`
const head = post('/mcp/web', '').replace('content-length: 0', 'transfer-encoding: chunked')

/** Counts what a server gets of the bodies of requests. */
async function startReader() {
  const got = { bytes: '', whole: 0, left: 0 }
  const { url } = await startListener((request, response) => {
    request.setEncoding('latin1')
    request.on('data', (chunk: string) => (got.bytes += chunk))
    request.on('end', () => {
      got.whole++
      response.end('the whole')
    })
    request.on('close', () => {
      if (!request.complete) got.left++
    })
    request.on('error', () => undefined)
  })
  return { url, got }
}

describe('what asks a server for skills', () => {
  test.each([
    ['by its method', post('/mcp/web', call('skills/list'))],
    ['by an address', post('/mcp/web', call('resources/read', { uri: ' SKILL://a' }))],
    ['by its method in escapes', post('/mcp/web', String.raw`{"method":"\u0073kills\/list"}`)],
    ['as the second of several', post('/mcp/web', `[${say('a')},${call('skills/get')}]`)],
    ['by the header of a message', post('/mcp/web', call('ping'), ['Mcp-Method: skills/list'])],
    ['by the header of a name', post('/mcp/web', call('ping'), ['Mcp-Name: skill://a'])],
    ['by a header of GET', get('/mcp/web', ['Mcp-Method: skills/list'])],
  ])('%s is refused with the words of the proxy, and the server hears of none', async (_, request) => {
    const server = await mcpServer()
    const { say: tell, counted } = await startMcp(server.url)
    const answer = await tell(request)
    expect([statusOf(answer), isRefusal(answer)]).toEqual([403, true])
    expect(answer).toContain('svc gives no skills of this MCP server to agents')
    expect(server.calls).toEqual([])
    expect(await counted()).toEqual([{ host: '127.0.0.1', decision: 'refused', requests: 1 }])
  })

  test.each([
    ['is no JSON', post('/mcp/web', "{method:'skills/list'}"), 403, 'no message'],
    ['is two messages', post('/mcp/web', `${say('a')}${say('b')}`), 403, 'no message'],
    ['breaks off', post('/mcp/web', say('a').slice(0, -1)), 403, 'no message'],
    ['is empty', post('/mcp/web', ''), 403, 'no message'],
    ['is packed', post('/mcp/web', say('a'), ['content-encoding: gzip']), 415, 'packed'],
    [
      'is of another type',
      post('/mcp/web', say('a')).replace('application/json', 'application/x-www-form-urlencoded'),
      415,
      'application/json',
    ],
    ['is of other characters', post('/mcp/web', say('a')).replace('/json', '/json; charset=utf-16'), 415, 'UTF-8'],
  ])('and what %s: the server could read more in it', async (_, request, status, words) => {
    const { url, got } = await startReader()
    const { say: tell } = await startMcp(url)
    const answer = await tell(request)
    expect([statusOf(answer), isRefusal(answer), answer.includes(words)]).toEqual([status, true, true])
    expect(got.whole).toBe(0)
  })

  test('passes to a server that is trusted for them, with whatever else it understands', async () => {
    const { url, got } = await startReader()
    const { say: tell } = await startMcp(url, { trustsSkills: true })
    const bodies = [call('skills/list'), call('resources/read', { uri: 'skill://a' }), '{method:1}']
    for (const body of bodies)
      expect(statusOf(await tell(post('/mcp/web', body, ['mcp-method: skills/list'])))).toBe(200)
    expect(got).toEqual({ bytes: bodies.join(''), whole: 3, left: 0 })
  })

  test('is refused at an address for messages that the server named, too', async () => {
    const messages: string[] = []
    const { url } = await startListener((request, response) => {
      if (request.method === 'POST') {
        request.on('data', (chunk: Buffer) => messages.push(String(chunk)))
        return void response.writeHead(202).end()
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: endpoint\ndata: /messages\n\n')
    })
    const { open, say: tell } = await startMcp(url, { isSse: true })
    const socket = await open()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += String(chunk)))
    socket.write(get('/mcp/web'))
    await waitFor(() => text.includes('/mcp/web/1'), 'the address')
    expect(statusOf(await tell(post('/mcp/web/1', call('skills/list'))))).toBe(403)
    expect(messages).toEqual([])
    expect(statusOf(await tell(post('/mcp/web/1', call('ping'))))).toBe(202)
    socket.destroy()
  })

  test('has no body but of POST', async () => {
    const { url, got } = await startReader()
    const { say: tell } = await startMcp(url)
    for (const method of ['GET', 'DELETE'])
      expect(await tell(post('/mcp/web', call('skills/list')).replace('POST', method))).toContain('the whole')
    expect(got).toEqual({ bytes: '', whole: 2, left: 0 })
  })
})

/** Sends the parts one after another, each when the server has what comes before. */
async function sendSlowly(socket: Socket, parts: readonly string[], has: () => number) {
  socket.write(head)
  let sent = 0
  for (const part of parts) {
    const before = sent
    // The last byte of what was sent is held back.
    await waitFor(() => has() >= before - 1, 'what was sent before')
    socket.write(asChunk(part))
    sent += part.length
  }
}

describe('a message that comes bit by bit', () => {
  test('is broken off at the server before the word that asks for skills', async () => {
    const { url, got } = await startReader()
    const { open, counted } = await startMcp(url)
    const body = call('resources/read', { padding: 'x'.repeat(500), uri: 'skill://a', more: 1 })
    const at = body.indexOf('ill://')
    const socket = await open()
    const answer = textOf(socket)
    await sendSlowly(socket, chunked(body, [20, 200, at]), () => got.bytes.length)
    socket.write('0\r\n\r\n')
    expect([statusOf(await answer), (await answer).includes('svc gives no skills')]).toEqual([403, true])
    await waitFor(() => got.left === 1, 'the end of the request at the server')
    expect([got.whole, body.slice(0, at - 1)]).toEqual([0, got.bytes])
    expect(await counted()).toEqual([{ host: '127.0.0.1', decision: 'refused', requests: 1 }])
  })

  test('is never whole at the server where it is found to be no message at its end', async () => {
    const { url, got } = await startReader()
    const { open } = await startMcp(url)
    const body = `${say('a')}${' '.repeat(100)}{"method":"skills/list"}`
    const socket = await open()
    const answer = textOf(socket)
    await sendSlowly(socket, chunked(body, [10, say('a').length + 50]), () => got.bytes.length)
    expect(statusOf(await answer)).toBe(403)
    await waitFor(() => got.left === 1, 'the end of the request at the server')
    expect([got.whole, got.bytes.includes('skills')]).toEqual([0, false])
  })

  test('is never whole at the server where it breaks off, even with a length', async () => {
    const { url, got } = await startReader()
    const { open } = await startMcp(url)
    const body = say('a').slice(0, -1)
    const socket = await open()
    const answer = textOf(socket)
    const all = post('/mcp/web', body)
    socket.write(all.slice(0, -5))
    await waitFor(() => got.bytes.length === body.length - 6, 'the first part')
    socket.write(all.slice(-5))
    expect(statusOf(await answer)).toBe(403)
    await waitFor(() => got.left === 1, 'the end of the request at the server')
    expect([got.whole, body.startsWith(got.bytes), got.bytes.length < body.length]).toEqual([0, true, true])
  })

  test('comes to the server as it was sent, byte by byte', async () => {
    const { url, got } = await startReader()
    const { open } = await startMcp(url)
    const body = ` {"id" : 1.50e+01,"method":"ping","method":"p\\u0069ng",\r\n"big":12345678901234567890, "a":"\\/"}\n`
    const socket = await open()
    const answer = textOf(socket)
    socket.write(head)
    for (const byte of body) socket.write(asChunk(byte))
    socket.write('0\r\n\r\n')
    expect(await answer).toContain('the whole')
    expect(got).toEqual({ bytes: body, whole: 1, left: 0 })
  })

  test('of 4 MiB passes as it was sent, and is refused where its end asks for skills', async () => {
    const { url, got } = await startReader()
    const { say: tell } = await startMcp(url)
    const large = say('abc\u00e9"\\'.repeat(600_000))
    expect(await tell(post('/mcp/web', large))).toContain('the whole')
    expect([got.whole, got.bytes === Buffer.from(large).toString('latin1')]).toEqual([1, true])
    got.bytes = ''
    const asking = `${large.slice(0, -1)},"method":"skills/list"}`
    expect([0, 403]).toContain(statusOf(await tell(post('/mcp/web', asking))))
    await waitFor(() => got.left === 1, 'the end of the request at the server')
    expect([got.whole, got.bytes.includes('skills/')]).toEqual([1, false])
  })

  test('is broken off at the server though it has begun to answer', async () => {
    const got = { bytes: '', whole: 0, left: 0 }
    const { url } = await startListener((request, response) => {
      response.write('early ')
      request.on('data', (chunk: Buffer) => (got.bytes += String(chunk)))
      request.on('end', () => got.whole++)
      request.on('close', () => got.left++)
    })
    const { open } = await startMcp(url)
    const socket = await open()
    const answer = textOf(socket)
    socket.write(head + asChunk('{"id":1,'))
    await waitFor(() => got.bytes.length === 7, 'the first part')
    socket.write(asChunk('"method":"skills/list"}'))
    expect((await answer).endsWith('0\r\n\r\n')).toBe(false)
    await waitFor(() => got.left === 1, 'the end of the request at the server')
    expect(got).toEqual({ bytes: '{"id":1', whole: 0, left: 1 })
  })
})

test('of messages that come at once a piece is looked at in each turn of the event loop', async () => {
  const turns = new ScanTurns()
  const count = 20
  const begin = '{"a":"'
  const piece = 'x'.repeat(1_000)
  const passed = { bytes: 0, inOneTurn: 0 }
  for (let message = 0; message < count; message++) {
    const guard = new SkillGuard(turns)
    guard.on('data', (chunk: Buffer) => (passed.bytes += chunk.length))
    for (const part of [begin, piece, piece]) guard.write(part)
  }
  // Of each, the last byte is held.
  for (let before = 0; before < count * (begin.length - 1 + 2 * piece.length); before = passed.bytes) {
    await setImmediate()
    passed.inOneTurn = Math.max(passed.inOneTurn, passed.bytes - before)
  }
  expect(passed.inOneTurn).toBe(piece.length)
})
