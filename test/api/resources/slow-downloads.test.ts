import { connect, type Socket } from 'node:net'
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Skill } from '../../../shared/api/skill-fields.ts'
import { enrol, type Identity } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { waitFor } from '../../kit/programs.ts'
import type { TestServer } from '../../kit/server.ts'

// Devices that open many downloads, and take nothing of them.

const readers = 200
/** More than the kernel holds for a reader that reads nothing. */
const sizeBytes = 6 * 1024 * 1024

let server: TestServer, skill: Skill
beforeAll(async () => {
  ;({ server } = await startWithPeople())
  const contentBase64 = randomBytes(sizeBytes / 6).toString('base64')
  const files = Array.from({ length: 6 }, (_, at) => ({ path: `large-${at}`, contentBase64 }))
  const bundle = { files: [{ path: 'SKILL.md', content: 'Text.' }, ...files] }
  const headers = { 'idempotency-key': crypto.randomUUID() }
  skill = await server.ok('/skills', { body: { slug: 'large', name: 'Large', bundle }, headers })
})
afterAll(() => server.stop())

/** Asks, reads the status, and no more. */
function openSlow({ token }: Identity): { status: () => number | null; socket: Socket } {
  const { port } = new URL(server.url)
  const socket = connect(Number(port), '127.0.0.1')
  let status: number | null = null
  socket.on('error', () => undefined)
  socket.once('data', (chunk: Buffer) => {
    status = Number(/^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1])
    socket.pause()
  })
  socket.write(
    `GET /api/device/skills/${skill.bundleHash} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  )
  onTestFinished(() => void socket.destroy())
  return { status: () => status, socket }
}

test('a device has so many of them at most, others are not held up, and what it leaves is given back', async () => {
  const [greedy, other] = [await enrol(server), await enrol(server)]
  const fetchFor = async ({ token }: Identity) => {
    const reply = await fetch(`${server.url}/api/device/skills/${skill.bundleHash}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(10_000),
    })
    return { status: reply.status, bytes: (await reply.arrayBuffer()).byteLength }
  }
  const opened = Array.from({ length: readers }, () => openSlow(greedy))
  const count = (status: number | null) => opened.filter((each) => each.status() === status).length
  // Some wait for room, for a while.
  await waitFor(() => count(429) >= readers - 52, 'refusals', {
    about: () => `${count(200)} ${count(429)} ${count(null)}`,
  })
  expect((await fetchFor(other)).bytes).toBeGreaterThan(sizeBytes)
  expect(await server.call('/skills')).toMatchObject({ status: 200 })
  await waitFor(() => count(null) === 0, 'an answer for each', { ms: 40_000 })
  expect([count(200), count(429)]).toEqual([32, readers - 32])
  const heap = process.memoryUsage()
  expect(heap.arrayBuffers + heap.external).toBeLessThan(512 * 1024 * 1024)
  for (const { socket } of opened) socket.destroy()
  const again = await waitFor(async () => {
    const reply = await fetchFor(greedy)
    return reply.status === 200 ? reply : null
  }, 'room for it again')
  expect(again.bytes).toBeGreaterThan(sizeBytes)
})
