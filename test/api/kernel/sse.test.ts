import { Agent, createServer, request, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineRoute } from '../../../shared/api/route.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { implement } from '../../../control-plane/http/implement.ts'
import { streamsPerCaller } from '../../../control-plane/http/open-streams.ts'
import { EventStream, formatMessage, sendStream, type StreamMessage } from '../../../control-plane/http/sse.ts'
import { call, startServer, type TestServer } from './server.ts'

const routes = {
  events: defineRoute({
    id: 'streaming.events',
    endpoint: 'GET /events',
    summary: 'Events',
    query: z.object({ count: z.number().optional() }),
    reply: z.object({ page: z.literal(true) }),
    stream: 'sse',
  }),
}

interface Watched {
  ended: Promise<void>
  markEnded: () => void
}
function watch(): Watched {
  let markEnded = () => {}
  const ended = new Promise<void>((resolve) => (markEnded = resolve))
  return { ended, markEnded }
}

function handlers(watched: Watched) {
  return implement(routes, {
    events: ({ stream, query, signal }) => {
      if (stream === null) return Promise.resolve({ page: true })
      return Promise.resolve(
        new EventStream(source(Number(stream.lastEventId ?? 0), query.count ?? Infinity, signal), () =>
          Promise.resolve(),
        ),
      )
    },
  })
  async function* source(after: number, count: number, signal: AbortSignal): AsyncGenerator<StreamMessage> {
    try {
      for (let n = after + 1; n <= count; n++) {
        yield { id: String(n), event: 'text', data: { n, text: 'line\nline' } }
        if (count === Infinity) await nothingMore(signal)
      }
    } finally {
      watched.markEnded()
    }
  }
}

const nothingMore = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

function follow(server: TestServer, path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(`${server.url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${server.seed.ownerToken}`, accept: 'text/event-stream', ...headers },
    })
      .on('response', resolve)
      .on('error', reject)
      .end()
  })
}

test('a caller holds no more than a number of streams open at once, which takes none from others', async () => {
  const watched = watch()
  const server = await startServer({ routes: handlers(watched) })
  try {
    const open = await Promise.all(Array.from({ length: streamsPerCaller }, () => follow(server, '/events')))
    expect(open.every(({ statusCode }) => statusCode === 200)).toBe(true)
    const more = await follow(server, '/events')
    more.resume()
    expect([more.statusCode, more.headers['retry-after']]).toEqual([429, '10'])
    expect((await call(server, '/events')).status).toBe(200)
    const other = await follow(server, '/events', { authorization: `Bearer ${server.seed.memberToken}` })
    expect(other.statusCode).toBe(200)
    open[0]!.destroy()
    await watched.ended
    expect((await follow(server, '/events')).statusCode).toBe(200)
  } finally {
    await server.close()
  }
})

test('events come as messages with their ids, from where the reader left off', async () => {
  const watched = watch()
  const server = await startServer({ routes: handlers(watched) })
  try {
    expect((await call(server, '/events')).body).toEqual({ page: true })
    const response = await follow(server, '/events?count=3', { 'last-event-id': '1' })
    expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(response.headers['request-id']).toBeDefined()
    const text = (await response.toArray()).join('')
    const message = (n: number) => `id: ${n}\nevent: text\ndata: {"n":${n},"text":"line\\nline"}\n\n`
    expect(text).toBe(message(2) + message(3))
    await watched.ended
  } finally {
    await server.close()
  }
})

test('text with line ends stays one message', () => {
  expect(formatMessage({ id: null, event: null, data: 'a\r\nb\nc' })).toBe('data: a\ndata: b\ndata: c\n\n')
})

test('the source ends when its reader goes', async () => {
  const watched = watch()
  const server = await startServer({ routes: handlers(watched) })
  try {
    const response = await follow(server, '/events')
    await new Promise((resolve) => response.once('data', resolve))
    response.destroy()
    await watched.ended
  } finally {
    await server.close()
  }
})

test('who asks for the headers of a stream alone gets them, and the connection is free again', async () => {
  const server = await startServer({ routes: handlers(watch()) })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const head = (method: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${server.seed.ownerToken}`, accept: 'text/event-stream' }
      request(`${server.url}/api/v1/events${method === 'HEAD' ? '' : '?count=1'}`, { method, agent, headers })
        .on('response', resolve)
        .on('error', reject)
        .end()
    })
  try {
    for (let round = 0; round < 2; round++) {
      const response = await head('HEAD')
      expect(response.headers['content-type']).toContain('text/event-stream')
      expect(await response.toArray()).toEqual([])
    }
    const stream = Buffer.concat(await (await head('GET')).toArray()).toString()
    expect(stream).toContain('id: 1')
  } finally {
    agent.destroy()
    await server.close()
  }
})

test('a server that stops ends its streams', async () => {
  const watched = watch()
  const server = await startServer({ routes: handlers(watched) })
  try {
    const response = await follow(server, '/events')
    await new Promise((resolve) => response.once('data', resolve))
    server.stop()
    await response.toArray()
    expect(response.complete).toBe(true)
    await watched.ended
  } finally {
    await server.close()
  }
})

/** A server of one stream with limits of its own. */
async function streamServer(
  source: () => AsyncIterable<StreamMessage>,
  limits: Parameters<typeof sendStream>[1]['limits'],
) {
  let maxBuffered = 0
  const over: Promise<void>[] = []
  const server = createServer((_request, response) => {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    const write = response.write.bind(response)
    response.write = (chunk: string) => {
      const isDrained = write(chunk)
      maxBuffered = Math.max(maxBuffered, response.writableLength)
      return isDrained
    }
    over.push(sendStream(response, { source: source(), world: realWorld, signal: gone.signal, limits: limits! }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { port, over, maxBuffered: () => maxBuffered, close }
}

test('a reader that takes nothing is cut off, and little is kept for it', async () => {
  const watched = watch()
  async function* endless(): AsyncGenerator<StreamMessage> {
    try {
      for (;;) yield { id: null, event: null, data: 'x'.repeat(10_000) }
    } finally {
      watched.markEnded()
    }
  }
  const limits = { heartbeatMs: 15_000, bufferedBytes: 256 * 1024, stallMs: 50 }
  const { port, over, maxBuffered, close } = await streamServer(endless, limits)
  const socket = connect(port, '127.0.0.1')
  try {
    socket.on('error', () => undefined)
    socket.pause()
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await watched.ended
    await Promise.all(over)
    expect(maxBuffered()).toBeLessThan(limits.bufferedBytes + 20_000)
  } finally {
    socket.destroy()
    await close()
  }
})

test('a reader that is slow but reads gets everything', async () => {
  const total = 400
  async function* many(): AsyncGenerator<StreamMessage> {
    for (let n = 1; n <= total; n++) yield { id: String(n), event: null, data: 'x'.repeat(20_000) }
  }
  const limits = { heartbeatMs: 15_000, bufferedBytes: 64 * 1024, stallMs: 5_000 }
  const { port, maxBuffered, close } = await streamServer(many, limits)
  try {
    const response = await new Promise<IncomingMessage>((resolve) => request({ port }).on('response', resolve).end())
    let ids = 0
    for await (const chunk of response) {
      ids += String(chunk).match(/^id: /gm)?.length ?? 0
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(ids).toBe(total)
    expect(maxBuffered()).toBeLessThan(limits.bufferedBytes + 40_000)
  } finally {
    await close()
  }
})

test('a quiet stream is kept alive by comments', async () => {
  async function* quiet(): AsyncGenerator<StreamMessage> {
    await new Promise(() => undefined)
    yield { id: null, event: null, data: '' }
  }
  const { port, over, close } = await streamServer(quiet, { heartbeatMs: 5, bufferedBytes: 1, stallMs: 1000 })
  const response = await new Promise<IncomingMessage>((resolve) => request({ port }).on('response', resolve).end())
  let text = ''
  for await (const chunk of response) {
    text += String(chunk)
    if (text.length >= 9) break
  }
  expect(text.slice(0, 9)).toBe(':\n\n:\n\n:\n\n')
  await Promise.all(over)
  await close()
})

test('a source that fails ends the answer unfinished', async () => {
  const server = await startServer({
    routes: implement(routes, {
      events: () => Promise.resolve(new EventStream(failing(), () => Promise.resolve())),
    }),
  })
  async function* failing(): AsyncGenerator<StreamMessage> {
    yield { id: '1', event: null, data: 1 }
    throw new Error('the store is gone')
  }
  try {
    const response = await follow(server, '/events')
    await new Promise<void>((resolve) =>
      response
        .on('data', () => undefined)
        .on('error', () => undefined)
        .once('close', resolve),
    )
    expect(response.complete).toBe(false)
    expect(server.logged.some(({ level, fields }) => level === 'error' && fields['code'] === 'internal_error')).toBe(
      true,
    )
  } finally {
    await server.close()
  }
})
