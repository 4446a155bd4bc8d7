import { createHmac } from 'node:crypto'
import { request, type ClientRequest } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { githubReceiver, receiverPath } from '../../../control-plane/github/receiver.ts'
import { waitFor } from '../../kit/programs.ts'
import { woundWorld, type WoundWorld } from '../../kit/wound-world.ts'
import { startServer, type TestServer } from './server.ts'

// Strangers who open deliveries of GitHub and send nothing: those of GitHub are taken nevertheless.

const mebibyte = 1024 * 1024
const secret = 'a secret of the webhook'
let world: WoundWorld, server: TestServer
let silent: ClientRequest[] = []

beforeEach(async () => {
  world = woundWorld()
  server = await startServer({
    routes: [],
    world,
    trustedProxies: 1,
    others: ({ root, limiter }) => [
      githubReceiver({
        root,
        world,
        limiter,
        secret,
        costly: { run: () => Promise.reject(new Error('nothing here is costly')) },
        onStored: () => undefined,
      }),
    ],
  })
})
afterEach(async () => {
  for (const sent of silent) sent.destroy()
  silent = []
  await server.close()
})

/** A delivery with the form of a signature, from an address of its own, of which nothing but the headers comes. */
async function beSilent(length: number | null, address = '192.0.2.1'): Promise<void> {
  const before = world.timerCount
  const headers: Record<string, string | number> = {
    'x-hub-signature-256': `sha256=${'0'.repeat(64)}`,
    'x-forwarded-for': address,
  }
  if (length !== null) headers['content-length'] = length
  const sent = request(`${server.url}${receiverPath}`, { method: 'POST', headers })
  sent.on('error', () => undefined)
  sent.flushHeaders()
  silent.push(sent)
  await waitFor(() => world.timerCount > before, 'it is read, or waits')
}

/** A delivery as GitHub sends it; `isChunked`: as a proxy passes it on that does not say its length. */
async function deliver(bytes: number, { isChunked = false } = {}): Promise<number> {
  const body = JSON.stringify({ zen: 'x'.repeat(bytes - 10) })
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  const reply = await fetch(`${server.url}${receiverPath}`, {
    method: 'POST',
    headers: { 'x-github-event': 'ping', 'x-hub-signature-256': `sha256=${signature}` },
    ...(isChunked ? { body: new Blob([body]).stream(), duplex: 'half' } : { body }),
  })
  await reply.arrayBuffer()
  return reply.status
}

test('a silent delivery without a length takes nothing of the room for large ones', async () => {
  await beSilent(null)
  expect(await deliver(20 * mebibyte)).toBe(202)
})

test('a silent one that says a large length holds up large ones for the grace only', async () => {
  await beSilent(25 * mebibyte)
  const timers = world.timerCount
  const delivered = deliver(2 * mebibyte)
  await waitFor(() => world.timerCount > timers, 'it waits')
  world.advance(5_000)
  expect(await delivered).toBe(202)
})

test('silent ones from two addresses that fill the room for small ones hold them up for the grace only', async () => {
  for (const address of ['192.0.2.2', '192.0.2.3'])
    for (let count = 0; count < 4; count++) await beSilent(mebibyte, address)
  const timers = world.timerCount
  const delivered = deliver(100_000)
  await waitFor(() => world.timerCount > timers, 'it waits')
  world.advance(5_000)
  expect(await delivered).toBe(202)
})

test('a delivery that comes without a length is taken while it is small', async () => {
  expect(await deliver(mebibyte, { isChunked: true })).toBe(202)
  expect(await deliver(2 * mebibyte, { isChunked: true })).toBe(413)
})
