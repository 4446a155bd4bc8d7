import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { closeCodes } from '../../../shared/device/limits.ts'
import { replicaState } from '../../kit/balancer.ts'
import { FakeDevice, type Identity } from '../../kit/fake-device.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestServer } from '../../kit/system-server.ts'

// A server that is told to end, and says so before it closes its port.

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-drain-'))
})
afterAll(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }))

async function start(name: string, drainMs: number): Promise<TestServer> {
  const env = { SVC_DRAIN_MS: String(drainMs) }
  const server = new TestServer({ name, root, env, databaseUrl: null, tokenOf: null })
  onTestFinished(() => (server.isRunning ? server.kill9() : undefined))
  await server.start()
  return server
}

async function connect(server: TestServer): Promise<FakeDevice> {
  const body = { hostname: 'laptop', platform: 'linux', version: '0.1.0' }
  const identity = await server.api.call<Identity>('POST', '/api/device/enrol', body)
  const device = await FakeDevice.open({ nextUrl: () => server.url }, identity)
  await device.next('welcome')
  return device
}

const drains = (server: TestServer) =>
  waitFor(async () => (await replicaState(server)) === 'draining', 'the server says that it drains', {
    about: () => server.log,
  })

test('it says that it drains, answers meanwhile, takes no new link, and ends at once at the second signal', async () => {
  // Far longer than the test waits for its exit.
  const server = await start('patient', 600_000)
  const device = await connect(server)
  server.program.signal('SIGTERM')
  await drains(server)
  const { url, token } = server
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const written = await fetch(`${url}/api/v1/agents`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name: 'Made while it drains' }),
  })
  expect([written.status, written.headers.get('connection')]).toEqual([201, 'close'])
  await device.beat()
  await expect(FakeDevice.open({ nextUrl: () => url }, device.identity)).rejects.toThrow('503')
  expect(server.program.isRunning).toBe(true)
  server.program.signal('SIGTERM')
  expect(await server.program.exit(60_000)).toEqual({ code: 0, signal: null })
  expect(await device.closed).toBe(closeCodes.going_away.code)
})

test('devices are sent elsewhere one after another while the port is still open', async () => {
  const server = await start('spread', 8_000)
  const devices = [await connect(server), await connect(server), await connect(server)]
  const gone: string[] = []
  for (const [at, { closed }] of devices.entries()) void closed.then((code) => gone.push(`device ${at + 1}: ${code}`))
  server.program.signal('SIGTERM')
  await devices[0]!.closed
  expect(await replicaState(server)).toBe('draining')
  expect(await server.program.exit(60_000)).toEqual({ code: 0, signal: null })
  await Promise.all(devices.map(({ closed }) => closed))
  const { code } = closeCodes.going_away
  expect(gone).toEqual([`device 1: ${code}`, `device 2: ${code}`, `device 3: ${code}`])
})
