import { Agent, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { createHttpServer } from '../../../control-plane/http/http-server.ts'
import { realWorld } from '../../../shared/lib/world.ts'

// A server that stops, and clients that keep their connections open as long as they may.

const bytes = 20 * 1024 * 1024

async function start() {
  const stopping = new AbortController()
  const server = createHttpServer({ takesUpgrade: () => false, world: realWorld, stopping: stopping.signal })
  server.on('request', ({ url }, response) => {
    if (url === '/stream') {
      response.write('begun')
      // As the source of a stream notices that it ends.
      stopping.signal.addEventListener('abort', () => setImmediate(() => response.end(', ended')))
    } else response.end(Buffer.alloc(bytes))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const agent = new Agent({ keepAlive: true })
  onTestFinished(() => {
    agent.destroy()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const get = (path: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      request({ port, host: '127.0.0.1', path, agent }, resolve).on('error', reject).end()
    })
  const stop = () => {
    stopping.abort()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return { get, stop, agent }
}

test('a connection over which a stream was followed ends with the stream', async () => {
  const { get, stop } = await start()
  const stream = await get('/stream')
  const closed = stop()
  expect(String(await buffer(stream))).toBe('begun, ended')
  await closed
})

test('an answer that is still being taken comes whole, and its connection ends after it', async () => {
  const { get, stop } = await start()
  const large = await get('/large')
  // More than the system holds for a client that does not read yet.
  const closed = stop()
  expect((await buffer(large)).length).toBe(bytes)
  await closed
})

test('a request over an open connection is answered, and the client is told that it was the last one', async () => {
  const { get, stop, agent } = await start()
  agent.maxSockets = 1
  const stream = await get('/stream')
  const next = get('/large')
  const closed = stop()
  await buffer(stream)
  // Refused over the connection that ended, or answered over it.
  const answer = await next.catch(() => null)
  if (answer !== null) {
    expect(answer.headers['connection']).toBe('close')
    expect((await buffer(answer)).length).toBe(bytes)
  }
  await closed
})

test('a connection on which nothing is under way ends at once', async () => {
  const { get, stop } = await start()
  await buffer(await get('/large'))
  await stop()
})
