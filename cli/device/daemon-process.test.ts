import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ControlStatus } from '../../shared/device/control.ts'
import { daemonPatience } from '../../shared/device/patience.ts'
import { jsonLine } from '../../shared/lib/lines.ts'
import { realWorld, type World } from '../../shared/lib/world.ts'
import type { CommandContext } from '../context/context.ts'
import type { CliError } from '../errors/cli-error.ts'
import type { DevicePlaces } from '../machine/paths.ts'
import { waitForLink, waitUntilStopped } from './daemon-process.ts'

// How long svc waits for a device manager, by a clock that moves with each pause.

const { startMs, linkMs, stopMs } = daemonPatience
let folder: string
let places: DevicePlaces
let server: Server | null
let now: number
let told: string[]
/** What happens at these times of the clock. */
let plan: { atMs: number; does: () => Promise<void> }[]
const world: World = {
  ...realWorld,
  monotonic: () => now,
  sleep: async (ms) => {
    now += ms
    while (plan[0] !== undefined && plan[0].atMs <= now) await plan.shift()!.does()
  },
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-wait-'))
  places = {
    daemon: join(folder, 'daemon.json'),
    socket: join(folder, 's'),
    daemonOut: join(folder, 'out'),
  } as DevicePlaces
  server = null
  now = 0
  told = []
  plan = []
})
afterEach(() => {
  server?.close()
  rmSync(folder, { recursive: true })
})

/** From then on a daemon answers with this link. */
async function answers(link: ControlStatus['link']): Promise<void> {
  server?.close()
  rmSync(places.socket, { force: true })
  const value = { pid: 4711, server: 'http://127.0.0.1:9', link }
  const listening = createServer((socket) => {
    socket.once('data', () => socket.end(jsonLine({ ok: true, value })))
    socket.on('error', () => undefined)
  })
  await new Promise<void>((done) => listening.listen(places.socket, done))
  server = listening
  writeFileSync(places.daemon, '{}')
}

/** From then on none is there. */
async function stops(): Promise<void> {
  await new Promise((done) => server!.close(done))
  server = null
  rmSync(places.daemon)
}

const connected = { state: 'connected', since: 0, lastError: null } as const
const connecting = { state: 'connecting', since: 0, lastError: null } as const
const failing = { state: 'connecting', since: 0, lastError: 'connect ECONNREFUSED' } as const
const context = { world, out: { message: (text: string) => void told.push(text) } } as unknown as CommandContext
const waiting = (exit: () => string | null = () => null) => waitForLink(places, context, { exit })
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'none',
    (error: CliError) => error.code,
  )

test('a device manager that a busy machine starts slowly is waited for', async () => {
  plan = [{ atMs: startMs - 5_000, does: () => answers(connected) }]
  expect((await waiting()).pid).toBe(4711)
  expect(told).toEqual([expect.stringContaining('has not answered yet')])
})

test('one that never answers is given up', async () => {
  expect(await codeOf(waiting())).toBe('cli.daemon_silent')
  expect(now).toBe(startMs)
})

test('one that has ended is not waited for', async () => {
  expect(await codeOf(waiting(() => (now >= 1_000 ? 'status 78' : null)))).toBe('cli.daemon_ended')
  expect(now).toBe(1_000)
  expect(told).toEqual([])
})

test('a link whose first attempt goes on is waited for, also when the answer came late', async () => {
  plan = [
    { atMs: startMs - 5_000, does: () => answers(connecting) },
    { atMs: startMs + linkMs, does: () => answers(connected) },
  ]
  expect((await waiting()).link.state).toBe('connected')
})

test('a link whose attempts fail is given up sooner, with the reason', async () => {
  await answers(failing)
  const error = await waiting().catch((failure: CliError) => failure)
  expect(error).toMatchObject({ code: 'cli.daemon_not_linked', exit: 'unreachable' })
  expect((error as CliError).message).toContain('ECONNREFUSED')
  expect(now).toBe(linkMs)
})

test('the end of one is waited for while it answers or its record is there', async () => {
  await answers(connected)
  plan = [{ atMs: stopMs - 5_000, does: stops }]
  expect(await waitUntilStopped(places, world)).toBe(true)
  await answers(connected)
  expect(await waitUntilStopped(places, world)).toBe(false)
})
