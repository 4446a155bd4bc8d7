import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Session, type SessionHandlers } from '../../../control-plane/link/session.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { closeCodes, linkLimits } from '../../../shared/device/limits.ts'
import { encodeFrame } from '../../../shared/device/frame.ts'
import { realWorld } from '../../../shared/lib/world.ts'

// A device that sends faster than the control plane works off, over a real socket: one of this machine, of which the system holds little.

const http = createServer()
const sockets = new WebSocketServer({ server: http, maxPayload: linkLimits.frameBytes, perMessageDeflate: false })
const mebibyte = 1024 * 1024
const heldBytes = 4 * mebibyte
/** More than the system itself holds of a connection. */
const floodBytes = 16 * mebibyte

let handlers: SessionHandlers
let session: Session
let device: WebSocket
let folder: string
beforeEach(async () => {
  handlers = {
    hello: () => Promise.resolve(true),
    message: () => Promise.resolve(),
    accepted: () => Promise.resolve(),
    ended: () => Promise.resolve(),
    frame: () => Promise.resolve(),
    closed: () => undefined,
  }
  folder = mkdtempSync(join(tmpdir(), 'svc-ls-'))
  const path = join(folder, 's')
  await new Promise<void>((resolve) => http.listen(path, resolve))
  sockets.once('connection', (socket, { socket: wire }) => {
    const common = { world: realWorld, log: silentLog, onClose: () => undefined }
    session = new Session({ socket, wire, ...common, handlers, heldBytes })
  })
  device = new WebSocket(`ws+unix://${path}:/`, { perMessageDeflate: false })
  await new Promise((resolve) => device.once('open', resolve))
})
afterEach(async () => {
  device.terminate()
  await new Promise((resolve) => http.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

const claimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
const sayHello = () =>
  device.send(
    JSON.stringify({
      type: 'hello',
      protocol: linkLimits.protocol,
      token: 'svc_dev_x',
      publicId: 'dvc_x',
      instance: crypto.randomUUID(),
      version: '0.1.0',
      platform: 'linux',
      hostname: 'laptop',
      runs: [],
      claimState,
    }),
  )
const body = Buffer.alloc(mebibyte, 'x')
function flood(): number {
  const count = floodBytes / mebibyte
  for (let seq = 1; seq <= count; seq++) {
    const header = {
      type: 'run.events',
      runId: idFrom<RunId>('run_0000000000000000'),
      fence: 1,
      firstSeq: seq,
      lastSeq: seq,
      kinds: { text: 1 },
    } as const
    device.send(encodeFrame({ ...header, sha256: 'a'.repeat(64) }, body))
  }
  return count
}
/** Bytes that the other end does not take: the number is the same for a while. */
async function leftUnread(): Promise<number> {
  const seen: number[] = []
  await vi.waitUntil(
    () => {
      seen.push(device.bufferedAmount)
      return seen.length > 10 && new Set(seen.slice(-10)).size === 1
    },
    { timeout: 20_000, interval: 50 },
  )
  return device.bufferedAmount
}

test('what is not worked off yet is bounded, and nothing of it is lost', async () => {
  const waiting: (() => void)[] = []
  let frames = 0
  handlers.frame = () => {
    frames++
    return new Promise((resolve) => waiting.push(resolve))
  }
  sayHello()
  const sent = flood()
  expect(await leftUnread()).toBeGreaterThan(floodBytes / 4)
  expect(frames * mebibyte).toBeLessThan(heldBytes + 2 * mebibyte)
  await vi.waitUntil(
    () => {
      for (const done of waiting.splice(0)) done()
      return frames === sent
    },
    { timeout: 20_000, interval: 5 },
  )
  expect(device.bufferedAmount).toBe(0)
})

test('nothing more is read while it is looked up who said hello', async () => {
  let answer: (isWelcome: boolean) => void = () => undefined
  let frames = 0
  handlers.hello = () => new Promise((resolve) => (answer = resolve))
  handlers.frame = () => {
    frames++
    return Promise.resolve()
  }
  sayHello()
  const sent = flood()
  expect(await leftUnread()).toBeGreaterThan(floodBytes / 4)
  expect(frames).toBe(0)
  answer(true)
  await expect.poll(() => frames, { interval: 5 }).toBe(sent)
  expect(session.isOpen).toBe(true)
})

test('a device that sends what it must not is told so, however much it sent', async () => {
  const closed = new Promise((resolve) => device.once('close', resolve))
  handlers.frame = () => new Promise(() => undefined)
  sayHello()
  device.send('no frame of this protocol')
  flood()
  expect(await closed).toBe(closeCodes.malformed_frame.code)
})

const beat = (activeRuns: number) =>
  device.send(JSON.stringify({ type: 'heartbeat', claimState: { ...claimState, activeRuns } }))

test('each heartbeat is handled with what it says, also where it says the same as the one before', async () => {
  const said: unknown[] = []
  handlers.message = (_, message) => void said.push(message)
  sayHello()
  const expected = [0, 0, 3, 3, 0].map((activeRuns) => ({
    type: 'heartbeat',
    claimState: { ...claimState, activeRuns },
  }))
  for (const { claimState } of expected) beat(claimState.activeRuns)
  await expect.poll(() => said.length).toBe(expected.length)
  expect(said).toEqual(expected)
})

test('a message waits for those before it, however it is handled', async () => {
  const said: string[] = []
  let done: () => void = () => undefined
  handlers.message = (_, { type }) => {
    said.push(type)
    return type === 'run.started' ? new Promise<void>((resolve) => (done = resolve)) : undefined
  }
  sayHello()
  beat(0)
  device.send(JSON.stringify({ type: 'run.started', runId: 'run_0000000000000000', fence: 1, harnessStartedAt: 1 }))
  beat(0)
  const answered = new Promise((resolve) => device.once('pong', resolve))
  device.ping()
  await answered
  expect(said).toEqual(['heartbeat', 'run.started'])
  done()
  await expect.poll(() => said.length).toBe(3)
  expect(said[2]).toBe('heartbeat')
})

test('runs that a device accepts at once are claimed beside each other; one beyond that holds up what comes after it', async () => {
  const said: unknown[] = []
  const claims: (() => void)[] = []
  handlers.accepted = (_, { fence }) => {
    said.push(fence)
    return new Promise((resolve) => claims.push(resolve))
  }
  handlers.message = (_, { type }) => void said.push(type)
  const heard = async () => {
    const answered = new Promise((resolve) => device.once('pong', resolve))
    device.ping()
    await answered
    return said.splice(0)
  }
  const accept = (fence: number) =>
    device.send(JSON.stringify({ type: 'run.accepted', runId: 'run_0000000000000000', fence }))
  sayHello()
  const most = 32
  for (let fence = 1; fence <= most; fence++) accept(fence)
  beat(0)
  const fences = Array.from({ length: most }, (_, at) => at + 1)
  expect(await heard()).toEqual([...fences, 'heartbeat'])
  accept(most + 1)
  beat(1)
  expect(await heard()).toEqual([most + 1])
  claims[most]!()
  await expect.poll(() => said.length).toBe(1)
  expect(said).toEqual(['heartbeat'])
})

test.each([
  [
    'at once',
    () => {
      throw new Error('no room')
    },
  ],
  ['later', () => Promise.reject(new Error('no room'))],
] as const)('a message that cannot be handled, %s, ends the link, and none after it is handled', async (_, fails) => {
  let handled = 0
  handlers.message = () => {
    handled++
    return fails()
  }
  const closed = new Promise((resolve) => device.once('close', resolve))
  sayHello()
  beat(0)
  beat(1)
  expect(await closed).toBe(closeCodes.going_away.code)
  expect(handled).toBe(1)
})
