import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Registry } from 'prom-client'
import { DatabaseGauges } from '../../../control-plane/gauges/database-gauges.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { movableWorld, TestServer, type MovableWorld, type ServerOptions } from '../../kit/server.ts'

// What an operator reads of a server in its metrics.

let server: TestServer
let world: MovableWorld
/** By how much the clock that nobody sets is ahead of the real one. */
let aheadMs: number
const folders: string[] = []

async function start(options: ServerOptions = {}): Promise<void> {
  aheadMs = 0
  world = { ...movableWorld(), monotonic: () => realWorld.monotonic() + aheadMs }
  server = await TestServer.start({ world, ...options })
}
beforeEach(() => start())
afterEach(async () => {
  await server.stop()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** Numbers of the database are read again after some seconds. */
async function scrape(): Promise<string> {
  aheadMs += 6_000
  return (await fetch(`${server.url}/metrics`)).text()
}
/** The value of a series, as `svc_runs{phase="waiting"}`; null: there is none. */
function valueIn(text: string, series: string): number | null {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? null : Number(line.slice(series.length + 1))
}
const value = async (series: string) => valueIn(await scrape(), series)

test('runs are counted by phase, and those that wait by what holds them, with the age of the first', async () => {
  const agent = await server.createAgent()
  await server.startRun(agent.id)
  world.advance(60_000)
  await server.startRun(agent.id)
  world.advance(30_000)
  await server.plane.sweeper.runAll()
  const waiting = await scrape()
  expect(valueIn(waiting, 'svc_runs{phase="waiting"}')).toBe(2)
  expect(valueIn(waiting, 'svc_runs{phase="running"}')).toBe(0)
  expect(valueIn(waiting, 'svc_runs_oldest_seconds{phase="waiting"}')).toBeGreaterThanOrEqual(90)
  expect(valueIn(waiting, 'svc_runs_waiting{gate="no_device"}')).toBe(2)
  expect(valueIn(waiting, 'svc_runs_waiting{gate="capacity"}')).toBe(0)
  expect(valueIn(waiting, 'svc_runs_waiting_oldest_seconds{gate="no_device"}')).toBeGreaterThanOrEqual(90)

  const device = await FakeDevice.connect(server)
  const run = await device.take()
  await run.end('error')
  await device.take()
  await server.plane.sweeper.runAll()
  const running = await scrape()
  expect(valueIn(running, 'svc_runs{phase="waiting"}')).toBe(0)
  expect(valueIn(running, 'svc_runs{phase="running"}')).toBe(1)
  expect(valueIn(running, 'svc_runs_waiting{gate="no_device"}')).toBe(0)
  expect(valueIn(running, 'svc_runs_waiting_oldest_seconds{gate="no_device"}')).toBe(0)
  expect(valueIn(running, 'svc_runs_ended_total{exit_reason="error"}')).toBe(1)
  expect(valueIn(running, 'svc_run_changes_total{event="claimed"}')).toBe(2)
  expect(valueIn(running, 'svc_run_wait_seconds_bucket{le="15"}')).toBe(0)
  expect(valueIn(running, 'svc_run_wait_seconds_count')).toBe(2)
})

test('devices are counted by whether they are linked, with what their spools hold', async () => {
  await enrol(server)
  const [one, other] = [await FakeDevice.connect(server), await FakeDevice.connect(server)]
  const claimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
  one.send({ type: 'heartbeat', claimState, spoolBytes: 1_000 })
  other.send({ type: 'heartbeat', claimState, spoolBytes: 50 })
  // A beat without a number, as older devices send it, leaves what was said.
  for (const device of [one, other]) await device.beat()
  const text = await scrape()
  expect(valueIn(text, 'svc_links')).toBe(2)
  expect(valueIn(text, 'svc_links_spool_bytes')).toBe(1_050)
  expect(valueIn(text, 'svc_devices{state="linked"}')).toBe(2)
  expect(valueIn(text, 'svc_devices{state="not_linked"}')).toBe(1)
  await one.disconnect()
  await expect.poll(() => value('svc_devices{state="linked"}')).toBe(1)
  expect(await value('svc_links_spool_bytes')).toBe(50)
})

test('refused sign-ins are counted by their way, and a device that waits for its code is none', async () => {
  await server.call('/agents', { token: `svc_pat_${'x'.repeat(40)}` })
  await server.call('/agents', { token: 'no token at all' })
  await server.call('/agents', { token: null })
  await fetch(`${server.url}/sign-in/link?token=nothing`, { method: 'POST' })
  const { publicId } = await enrol(server)
  const stranger = await FakeDevice.open(server, { publicId, deviceId: '', token: 'wrong', displayName: '' })
  await stranger.closed
  const text = await scrape()
  expect(valueIn(text, 'svc_sign_ins_refused_total{way="token",reason="auth_invalid"}')).toBe(2)
  expect(valueIn(text, 'svc_sign_ins_refused_total{way="token",reason="auth_missing"}')).toBe(1)
  const ways = [...text.matchAll(/^svc_sign_ins_refused_total\{way="(\w+)",/gm)].map(([, way]) => way)
  expect(new Set(ways)).toEqual(new Set(['token', 'page', 'device']))
})

test('a sweep that fails is counted by its name, and the others go on', async () => {
  await server.plane.sweeper.runAll()
  await server.database.root.schema.renameTable('idempotency', 'elsewhere')
  await server.plane.sweeper.runAll()
  await server.database.root.schema.renameTable('elsewhere', 'idempotency')
  const text = await scrape()
  expect(valueIn(text, 'svc_sweep_failures_total{sweep="old_rows"}')).toBe(1)
  expect(valueIn(text, 'svc_sweeps_total{sweep="old_rows"}')).toBe(1)
  expect(valueIn(text, 'svc_sweep_failures_total{sweep="queued_runs"}')).toBe(0)
  expect(valueIn(text, 'svc_sweeps_total{sweep="queued_runs"}')).toBe(2)
  expect(valueIn(text, 'svc_sweep_last_success_timestamp_seconds{sweep="statistics"}')).toBeGreaterThan(1.7e9)
})

test('a storage that fails is counted by what was asked of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-metrics-'))
  folders.push(folder)
  await server.stop()
  await start({ settings: { SVC_DATA_DIR: folder } })
  const upload = () =>
    server.call('/files', { body: { name: 'a.txt', contentBase64: Buffer.from('a').toString('base64') } })
  expect((await upload()).status).toBe(201)
  expect(await value('svc_storage_failures_total{act="put"}')).toBe(0)
  rmSync(join(folder, 'files'), { recursive: true })
  writeFileSync(join(folder, 'files'), 'no folder')
  expect((await upload()).status).toBe(503)
  expect(await value('svc_storage_failures_total{act="put"}')).toBe(1)
})

test('what people call things is in no label and makes no line', async () => {
  const evil = '"} 1\nsvc_evil{a="\\'
  const agent = await server.createAgent({ name: evil })
  await server.startRun(agent.id, { prompt: evil })
  await FakeDevice.connect(server, { hello: { hostname: evil, platform: evil, version: evil } })
  await fetch(`${server.url}/${encodeURIComponent(evil)}`, { headers: { 'x-forwarded-host': 'evil' } })
  await server.plane.sweeper.runAll()
  const text = await scrape()
  expect(text).not.toContain('evil')
  expect(text).not.toContain(agent.id)
})

test('while the database does not answer, what is not known is left out, and the rest is there', async () => {
  expect(await value('svc_database_up')).toBe(1)
  await server.database.root.schema.renameTable('wakes', 'elsewhere')
  const text = await scrape()
  await server.database.root.schema.renameTable('elsewhere', 'wakes')
  expect(valueIn(text, 'svc_database_up')).toBe(0)
  expect(text).not.toMatch(/^svc_runs\{/m)
  expect(valueIn(text, 'svc_links')).toBe(0)
  expect(valueIn(text, 'svc_database_connections_max')).toBe(1)
  expect(await value('svc_runs{phase="waiting"}')).toBe(0)
})

test('who asks does not wait for a database that is busy', async () => {
  const { root } = server.database
  const registry = new Registry()
  const patience: number[] = []
  const after = (ms: number, work: () => void) => {
    patience.push(ms)
    setImmediate(work)
    return () => undefined
  }
  const gauges = new DatabaseGauges({ root, world: { ...world, after }, log: silentLog, registry, leaseMs: 1_000 })
  let release = () => {}
  let held: Promise<void> = Promise.resolve()
  await new Promise<void>((begun) => {
    const work = () => {
      begun()
      return new Promise<void>((resolve) => (release = resolve))
    }
    held = root.transaction(work)
  })
  await gauges.refresh()
  expect(valueIn(await registry.metrics(), 'svc_database_up')).toBe(0)
  expect(valueIn(await server.plane.watch.metrics.registry.metrics(), 'svc_database_connections{state="used"}')).toBe(1)
  expect(patience).toEqual([2_000])
  release()
  await held
  await expect.poll(() => registry.metrics()).toContain('svc_runs{phase="waiting"} 0')
})

test('however many ask at once, the database is asked once, and again only after some seconds', async () => {
  let asked = 0
  server.database.root.on('query-response', (_rows: unknown, { sql }: { sql: string }) => {
    if (/from runs where ended_at is null group by 1/.test(sql)) asked++
  })
  const texts = await Promise.all(
    Array.from({ length: 50 }, () => fetch(`${server.url}/metrics`).then((answer) => answer.text())),
  )
  expect(texts.every((text) => valueIn(text, 'svc_database_up') === 1)).toBe(true)
  expect(asked).toBe(1)
  await scrape()
  expect(asked).toBe(2)
})
