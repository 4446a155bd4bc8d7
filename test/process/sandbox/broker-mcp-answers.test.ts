import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { brokerRefusal } from '../../../shared/runs/brokered.ts'
import { waitFor } from '../../kit/programs.ts'
import { isLong } from '../../kit/forms.ts'
import { get, post, statusOf, textOf } from './broker-kit.ts'

import { first, second, startMcp, startListener, mcpServer, say, isRefusal } from './mcp-kit.ts'

// What MCP servers answer, and what becomes of too much, behind the broker of a sandbox.

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
    const chunk = Buffer.concat([Buffer.from('fa00\r\n'), Buffer.alloc(64_000, ' '), Buffer.from('\r\n')])
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
