import { createServer, request, type ClientRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BodyRoom } from '../../../control-plane/http/body-room.ts'
import { readBody } from '../../../control-plane/http/body.ts'
import type { ApiError } from '../../../shared/api/errors.ts'
import { waitFor } from '../../kit/programs.ts'
import { woundWorld, type WoundWorld } from '../../kit/wound-world.ts'

// Bodies that come slowly, over real connections to a server that reads them and does nothing else.

const kibibyte = 1024
const mebibyte = 1024 * kibibyte
let world: WoundWorld, room: BodyRoom, server: Server
/** Bytes that have come, of all bodies together. */
let arrived = 0
/** Says what became of each body: its length, or why it was refused. */
let answers: (number | string)[] = []

beforeEach(async () => {
  ;[world, arrived, answers] = [woundWorld(), 0, []]
  room = new BodyRoom(world, { bytes: 8 * mebibyte, waitingPerOwner: 20, waitMs: 60_000 })
  const owner = { group: 'anybody', member: 'anybody' }
  const onChunk = (chunk: Buffer) => void (arrived += chunk.length)
  server = createServer((sent, answer) => {
    const mostMs = sent.url === '/soon' ? { mostMs: 10_000 } : {}
    const limits = { limit: 4 * mebibyte, limitWithoutLength: mebibyte, ...mostMs }
    readBody(sent, { ...limits, room, owner, world, onChunk }).then(
      ({ bytes, release }) => {
        release()
        answers.push(bytes.length)
        answer.end()
      },
      (error: ApiError) => {
        answers.push(error.message)
        answer.writeHead(error.status, error.options.headers).end()
      },
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** A request whose body is sent by hand; without a length it goes in chunks. `ended`: the answer, and whether the connection ended with it. */
function begin(headers: Record<string, string | number>, path = '/') {
  const { port } = server.address() as AddressInfo
  const sent: ClientRequest = request({ port, path, method: 'POST', headers: { connection: 'keep-alive', ...headers } })
  const ended = new Promise<[number | undefined, string | undefined]>((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (answer) => {
      answer.resume()
      answer.once('close', () => resolve([answer.statusCode, answer.headers.connection]))
    })
  })
  sent.flushHeaders()
  const isWatched = () => waitFor(() => world.timerCount === 1, 'it is read')
  const send = async (bytes: number | Buffer) => {
    const before = arrived
    sent.write(typeof bytes === 'number' ? Buffer.alloc(bytes, 'x') : bytes)
    const length = typeof bytes === 'number' ? bytes : bytes.length
    await waitFor(() => arrived === before + length, 'the bytes have come')
  }
  return { sent, ended, isWatched, send }
}

const tooSlow = 'The body came too slowly.'
const cutOff = [400, 'close']

test.each([
  ['a large length', { 'content-length': 4 * mebibyte }, 4 * mebibyte],
  ['no length', {}, mebibyte],
  ['that it is packed', { 'content-length': 100_000, 'content-encoding': 'gzip' }, 4 * mebibyte],
])('who says %s and sends nothing keeps the room for the grace only', async (_what, headers, bytes) => {
  const { ended, isWatched } = begin(headers)
  await isWatched()
  world.advance(4_999)
  expect([room.heldBytes, answers]).toEqual([bytes, []])
  world.advance(1)
  expect(await ended).toEqual(cutOff)
  expect([room.heldBytes, answers, world.timerCount]).toEqual([0, [tooSlow], 0])
})

test('what has come gives more time, until the sender falls behind', async () => {
  const { ended, isWatched, send } = begin({ 'content-length': mebibyte })
  await isWatched()
  for (let second = 0; second < 8; second++) {
    await send(64 * kibibyte)
    world.advance(1_000)
  }
  // Eight seconds have passed, and half of it came: it has thirteen.
  world.advance(4_999)
  expect([room.heldBytes, answers]).toEqual([mebibyte, []])
  world.advance(1)
  expect(await ended).toEqual(cutOff)
  expect([room.heldBytes, answers, world.timerCount]).toEqual([0, [tooSlow], 0])
})

test('a body that keeps pace is read to its end, and no clock goes on after that', async () => {
  const { sent, ended, isWatched, send } = begin({ 'content-length': mebibyte })
  await isWatched()
  for (let at = 0; at < 15; at++) {
    await send(64 * kibibyte)
    world.advance(1_000)
  }
  sent.end(Buffer.alloc(64 * kibibyte))
  expect((await ended)[0]).toBe(200)
  expect([room.heldBytes, answers, world.timerCount]).toEqual([0, [mebibyte], 0])
})

test('a packed body is judged by what comes, and not by what comes out of it', async () => {
  const packed = gzipSync(Buffer.alloc(3 * mebibyte))
  const { sent, ended, isWatched, send } = begin({ 'content-length': packed.length, 'content-encoding': 'gzip' })
  await isWatched()
  await send(packed.subarray(0, 1_000))
  world.advance(4_999)
  sent.end(packed.subarray(1_000))
  expect((await ended)[0]).toBe(200)
  expect([room.heldBytes, answers]).toEqual([0, [3 * mebibyte]])
})

test('a small body holds no room, so it has longer', async () => {
  const { ended, isWatched } = begin({ 'content-length': 60_000 })
  await isWatched()
  world.advance(14_999)
  expect(answers).toEqual([])
  world.advance(1)
  expect(await ended).toEqual(cutOff)
})

test('where the sender waits no longer, a steady body has no more time either', async () => {
  const { ended, isWatched, send } = begin({ 'content-length': 4 * mebibyte }, '/soon')
  await isWatched()
  await send(2 * mebibyte)
  world.advance(9_999)
  expect(answers).toEqual([])
  world.advance(1)
  expect(await ended).toEqual(cutOff)
  expect(room.heldBytes).toBe(0)
})

test('without a length a body may be as large as is said for that', async () => {
  const within = begin({})
  within.sent.end(Buffer.alloc(mebibyte))
  expect((await within.ended)[0]).toBe(200)
  const beyond = begin({})
  beyond.sent.end(Buffer.alloc(mebibyte + 1))
  expect((await beyond.ended)[0]).toBe(413)
  expect(room.heldBytes).toBe(0)
})

test('a sender that goes away while it is behind gives its room back once', async () => {
  const { sent, ended, isWatched, send } = begin({ 'content-length': 4 * mebibyte })
  await isWatched()
  await send(1_000)
  sent.destroy()
  await expect(ended).rejects.toThrow('socket hang up')
  await waitFor(() => answers.length === 1, 'it is refused')
  world.advance(100_000)
  expect([answers, room.heldBytes, world.timerCount]).toEqual([['The body was cut off.'], 0, 0])
})
