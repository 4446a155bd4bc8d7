import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import { allProcesses } from '../kit/programs-processes.ts'
import { waitFor } from '../kit/programs.ts'
import { runSpecFixture } from '../kit/run-spec.ts'
import { startScripted, type ScriptedSystem } from '../kit/scripted-system.ts'
import type { TestDevice } from '../kit/system-device.ts'
import type { Lease, ScriptedServer } from '../kit/system-scripted-server.ts'

// Fault matrix, rows 29, 34 and 41, at the real daemon: offers and starts that come twice, too late, or too many.

const harness = resolve(import.meta.dirname, '../kit/fake-harness.mjs')
let root: string
let server: ScriptedServer
let device: TestDevice
let system: ScriptedSystem
beforeAll(async () => {
  system = await startScripted('offers')
  ;({ root, server, device } = system)
})
afterAll(() => system?.stop())

/** A run of the scripted harness, and how often it was started. */
function makeRun(...steps: string[]) {
  const runId = realWorld.id('run_')
  const starts = join(root, `${runId}-starts`)
  const gate = join(root, `${runId}-gate`)
  const command = [process.execPath, harness, `starts=${starts}`, ...steps.map((step) => step.replace('GATE', gate))]
  return {
    lease: (fence = 1): Lease => ({ runId, fence }),
    spec: runSpecFixture(runId, { command, folder: { shortId: 'fs_1', rootPath: root } }),
    starts: () =>
      existsSync(starts)
        ? readFileSync(starts, 'utf8')
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as { pid: number; at: number })
        : [],
    /** Its processes, by their numbers outside of the run. */
    live: () => allProcesses(`starts=${starts}`).map(({ pid }) => pid),
    open: () => writeFileSync(gate, ''),
  }
}

test('row 29: an offer and a start that come several times are one acceptance and one start, also when the ending was stored but not answered', async () => {
  const run = makeRun('lines=20', 'await=GATE')
  const lease = run.lease()
  const { onEnded } = server
  server.onEnded = () => null
  server.offer(lease, run.spec)
  server.offer(lease, run.spec)
  await server.heard('run.accepted', lease, 2)
  server.start(lease)
  server.start(lease)
  await server.heard('run.started', lease)
  server.offer(lease, run.spec)
  await server.heard('run.accepted', lease, 3)
  server.start(lease)
  // The link breaks, and the answer is said again to what hello tells.
  server.verdicts = [{ ...lease, verdict: 'go_on', ackSeq: 0 }]
  server.drop()
  const hello = await server.heard('hello', undefined, server.all('hello').length + 1)
  expect(hello.runs).toMatchObject([{ ...lease, state: 'live' }])
  server.start(lease)
  run.open()
  const ended = await server.heard('run.ended', lease)
  expect(ended.report.exitReason).toBe('completed')
  // The ending is told again on the next link, and answered there.
  server.onEnded = onEnded
  server.drop()
  await server.heard('run.ended', lease, 2)
  await waitFor(async () => (await device.spoolRuns()).length === 0, 'the run is forgotten')
  expect(run.starts()).toHaveLength(1)
  expect(server.all('run.ended', lease), 'once on each link').toHaveLength(2)
  server.verdicts = []
})

test('row 34: a lease given anew while the old tree lives: the old one is dead before the new one is taken, and the run is not started again', async () => {
  const run = makeRun('ignore=SIGINT', 'lines=20', 'await=GATE')
  const [old, anew] = [run.lease(1), run.lease(2)]
  const { onEvents } = server
  server.offer(old, run.spec)
  await server.heard('run.accepted', old)
  server.start(old)
  await waitFor(() => run.starts().length === 1, 'the first harness runs')
  const first = run.live()
  expect(first).not.toEqual([])

  server.onEvents = (header) =>
    header.fence === 1 ? { type: 'run.refused', ...old, reason: 'stale_fence' } : onEvents(header)
  let offers = 0
  await waitFor(
    () => {
      if (server.all('run.accepted', anew).length > 0) return true
      // As the control plane does: offered again once the device says that it has room.
      if (server.all('run.declined', anew).length === offers) {
        server.offer(anew, run.spec)
        offers++
      }
      return false
    },
    'the new lease is accepted',
    { everyMs: 200 },
  )
  server.onEvents = onEvents
  for (const declined of server.all('run.declined', anew)) expect(declined.reason).toBe('already_running')
  expect(
    run.live().filter((pid) => first.includes(pid)),
    'the old harness',
  ).toEqual([])
  server.start(anew)
  const ended = await server.heard('run.ended', anew)
  // A server that begins a run again knows less than this device.
  expect(ended.report.exitReason).toBe('runner_lost')
  expect(run.starts()).toHaveLength(1)
  expect(server.all('run.ended', old)).toHaveLength(1)
  // Nothing of the old lease is among the events of the new one.
  expect(server.events.filter(({ runId, fence }) => runId === anew.runId && fence === 2)[0]?.firstSeq).toBe(1)
})

test('row 41: more offers than it can take are declined, not accepted and dropped, and its places come back', async () => {
  server.capacity = 2
  server.drop()
  await server.heard('hello', undefined, server.all('hello').length + 1)
  const runs = Array.from({ length: 6 }, () => makeRun('lines=20', 'await=GATE'))
  for (const run of runs) server.offer(run.lease(), run.spec)
  await waitFor(() => runs.every((run) => answersTo(run.lease()) === 1), 'each offer is answered once')
  const accepted = runs.filter((run) => server.all('run.accepted', run.lease()).length === 1)
  const declined = runs.filter((run) => server.all('run.declined', run.lease()).length === 1)
  expect([accepted.length, declined.length]).toEqual([server.capacity, 6 - server.capacity])
  expect(server.all('run.declined', declined[0]!.lease())[0]?.reason).toBe('capacity')
  for (const run of accepted) server.start(run.lease())
  for (const run of accepted) await server.heard('run.started', run.lease())
  for (const run of accepted) run.open()
  for (const run of accepted) await server.heard('run.ended', run.lease())

  const [next] = declined
  server.offer(next!.lease(2), next!.spec)
  await server.heard('run.accepted', next!.lease(2))
  server.start(next!.lease(2))
  next!.open()
  await server.heard('run.ended', next!.lease(2))
  expect(runs.map((run) => run.starts().length)).toEqual(
    runs.map((run) => (run === next || accepted.includes(run) ? 1 : 0)),
  )
})

test('a question for a change-set is answered by a daemon that cannot read its spool', async () => {
  const spool = join(device.stateDir, 'spool.db')
  renameSync(spool, `${spool}.away`)
  mkdirSync(spool)
  try {
    server.send({ type: 'change_set.get', ...makeRun().lease(), requestId: 'asked' })
    const isAnswer = (body: Buffer) => body.toString().includes('The run is not live here.')
    await waitFor(() => server.bodies.some(isAnswer), 'the answer')
  } finally {
    rmSync(spool, { recursive: true })
    renameSync(`${spool}.away`, spool)
  }
})

function answersTo(lease: Lease): number {
  return server.all('run.accepted', lease).length + server.all('run.declined', lease).length
}
