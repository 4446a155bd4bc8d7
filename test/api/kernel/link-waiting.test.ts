import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { linkPath } from '../../../control-plane/link/server.ts'
import { waitingLimits } from '../../../control-plane/link/waiting-links.ts'
import { closeCodes, linkLimits } from '../../../shared/device/limits.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestServer } from '../../kit/server.ts'

// Links of which nobody knows yet whose they are, opened by hand.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start({ settings: { SVC_TRUSTED_PROXIES: '1' } })
})
afterAll(() => server.stop())

/** The socket after its handshake, and the status that the server gave. */
async function open(address: string): Promise<{ socket: Socket; status: string }> {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  socket.write(
    [
      `GET ${linkPath} HTTP/1.1`,
      `Host: ${hostname}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.alloc(16, 7).toString('base64')}`,
      `X-Forwarded-For: ${address}`,
      '',
      '',
    ].join('\r\n'),
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  return { socket, status: head.toString('latin1').split(' ')[1] ?? '' }
}

/** The beginning of a masked text frame that says it is so long. */
const frameHead = (bytes: number): Buffer => {
  const head = Buffer.alloc(14)
  head.set([0x81, 0x80 | 127])
  head.writeBigUInt64BE(BigInt(bytes), 2)
  return head
}

/** Returns what the server said until the connection was gone. */
async function flood(socket: Socket, bytes: Buffer): Promise<string> {
  let heard = ''
  socket.on('data', (data: Buffer) => (heard += data.toString('latin1')))
  // Not by once of events: bytes that are never read end in a reset.
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write(bytes)
  await closed
  return heard
}

test('before hello a frame that says it is large is not gathered', async () => {
  const large = linkLimits.frameBytes - 1
  const { socket } = await open('192.0.2.1')
  // Not whole: whoever waits for the rest of it waits until the time for hello is over.
  const frame = Buffer.concat([frameHead(large), Buffer.alloc(256 * 1024)])
  expect(await flood(socket, frame)).toContain(closeCodes.frame_too_large.text)
})

test('before hello small frames without end are not read either', async () => {
  const { socket } = await open('192.0.2.1')
  const pong = Buffer.concat([Buffer.from([0x8a, 0x80 | 100]), Buffer.alloc(4 + 100)])
  const heard = await flood(socket, Buffer.concat(Array<Buffer>(2_000).fill(pong)))
  expect(heard).toContain(closeCodes.frame_too_large.text)
})

test('links that wait are bounded by address, and make room when they are gone', async () => {
  const waiting = await Promise.all(Array.from({ length: waitingLimits.perAddress }, () => open('192.0.2.7')))
  expect(new Set(waiting.map(({ status }) => status))).toEqual(new Set(['101']))
  const refused = await open('192.0.2.7')
  expect(refused.status).toBe('503')
  const elsewhere = await open('192.0.2.8')
  expect(elsewhere.status).toBe('101')
  // Who said hello waits no more.
  const device = await FakeDevice.connect(server)
  for (const { socket } of [...waiting, refused, elsewhere]) socket.destroy()
  await waitFor(async () => {
    const { socket, status } = await open('192.0.2.7')
    socket.destroy()
    return status === '101'
  }, 'there is room again')
  await device.disconnect()
})
