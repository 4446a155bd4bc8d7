import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { addressSource } from './release-source.ts'

let server: Server
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

/** Of a server that sends a piece of so many bytes ten times a second, and no end unless it is to come after some of them. */
async function sourceOfPieces(bytes: number, count = Infinity) {
  server = createServer((_, reply) => {
    let sent = 0
    const timer = setInterval(() => {
      reply.write(Buffer.alloc(bytes))
      if (++sent < count) return
      clearInterval(timer)
      reply.end()
    }, 100)
    reply.once('close', () => clearInterval(timer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return addressSource(`http://127.0.0.1:${port}/`, { windowMs: 1_000, bytes: 1_000 })
}

test('a server that trickles is left, however long it goes on, and one that is slow is waited for', async () => {
  const trickling = await sourceOfPieces(1)
  await expect(trickling.read('release.json', 10_000)).rejects.toMatchObject({
    code: 'cli.release_unreachable',
    message: expect.stringMatching(/bytes came in 1 s, which is too slow/),
  })
  server.close()
  const slow = await sourceOfPieces(1_000, 25)
  expect((await slow.read('release.json', 100_000)).length).toBe(25_000)
})
