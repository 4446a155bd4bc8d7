import { idFrom } from '../../shared/lib/ids.ts'
import { afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { HostRecord } from '../../device-manager/run-host/wire/protocol.ts'
import { parseRunEventId, type RunEvent } from '../../shared/api/run-events.ts'
import { emptyPostgres, hasPostgres } from '../kit/database.ts'
import { isLong } from '../kit/forms.ts'
import { checkInvariants, outputOf } from '../kit/invariants.ts'
import { processesNaming, waitFor } from '../kit/programs.ts'
import type { TestApi } from '../kit/system-api.ts'
import type { TestDevice } from '../kit/system-device.ts'
import type { TestServer } from '../kit/system-server.ts'
import { TestSystem, type SystemOptions } from '../kit/system.ts'
import { printedLines, scenario, stepsWhileAlone, type Scenario } from '../kit/system-scenario.ts'
import { deviceOwner, type DeviceOwner } from './device-owner.ts'
import { isCutOff, lastRelease, programsOf } from './old-programs.ts'

// The programs of the last release and those of this checkout work with each other, as they must while a system is
// upgraded: servers first or devices first, one by one, with runs at work all the time.

/** Without its history a checkout has no old programs to test; the suite says that they could not run there. */
const cutOff = isCutOff(lastRelease)

type Age = 'old' | 'new'
const programs = { old: '', new: '' }
beforeAll(async () => {
  programs.new = inject('programs')
  if (!cutOff) programs.old = await programsOf(lastRelease)
})

const ends: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Starts the servers; devices come later, by `connect`. */
async function begin(server: Age, device: Age, more: SystemOptions = {}): Promise<TestSystem> {
  const system = await TestSystem.start({
    // So that a device soon notices that its server is back.
    deviceEnv: { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' },
    programs: { server: programs[server], device: programs[device] },
    devices: 0,
    ...more,
  })
  ends.push(() => system.stop())
  isOf(server, system.server.program.pid)
  return system
}

/** Fails unless the process was started from the programs of that age, so that no test compares a release with itself. */
function isOf(age: Age, pid: number): void {
  const names = (each: Age) => processesNaming(programs[each]).some((found) => found.pid === pid)
  expect({ old: names('old'), new: names('new') }).toEqual({ old: age === 'old', new: age === 'new' })
}

async function connect(system: TestSystem, server?: TestServer): Promise<DeviceOwner> {
  const owner = await deviceOwner(system, server)
  ends.push(() => owner.remove())
  return owner
}

test('a clone without the commit of the last release says what to do', async () => {
  await expect(programsOf('0'.repeat(40))).rejects.toThrow('`git fetch --unshallow`')
})

describe.each<{ server: Age; device: Age }>([
  { server: 'new', device: 'old' },
  { server: 'old', device: 'new' },
])('$server server, $device device and svc', ({ server, device }) => {
  test.skipIf(cutOff)('runs and tasks from their wake to their end, started and read by svc', async () => {
    const system = await begin(server, device)
    const owner = await connect(system)
    await followedRun(system, owner, { skillFolders: server === 'new' ? ['~/skills'] : null })
    await finishedTask(system, owner)
    await owner.text('device', 'disconnect')
    // The server revokes it (78: do not start again) and svc asks it to stop (0), and either may come first.
    expect([0, 78]).toContain((await owner.device.program.exit(10_000)).code)
  })
})

/** Wakes an agent by svc; returns the run's id. */
async function wakes({ json }: DeviceOwner, { agentId }: Scenario): Promise<string> {
  const wake = await json('run', 'create', '--agent', agentId, '--prompt', 'Make it so.')
  return (wake as { runPublicId: string }).runPublicId
}

/** `skillFolders`: a setting of which the last release knew nothing; null: the server does not take it. */
async function followedRun(
  system: TestSystem,
  owner: DeviceOwner,
  { skillFolders }: { skillFolders: string[] | null },
): Promise<void> {
  const { device, json, text } = owner
  const output = `run=svc run output --data '{"ok":true}'`
  const run = await scenario(system, {
    device,
    steps: ['prompt', 'write=made.txt:x', 'touch=GATES/half', 'await=GATES/end', output, 'lines=200'],
  })
  if (skillFolders !== null)
    await system.api.call('PUT', `/agents/${run.agentId}/config`, { config: { runtime: { skillFolders } } })
  const runId = await wakes(owner, run)
  const following = owner.follow(runId)
  await run.reached('half')
  expect(await json('device', 'status')).toMatchObject({
    running: true,
    link: { state: 'connected' },
    runs: [{ runId }],
  })
  expect(await json('run', 'get', runId)).toMatchObject({ status: 'running' })
  expect(await json('run', 'change-set', runId)).toMatchObject({ live: true, files: [{ path: 'made.txt' }] })
  run.open('end')
  const ended = await checkInvariants(system, run, runId, { exitReason: 'completed' })
  expect(ended.output.toString()).toContain('prompt: Make it so.\r\n')
  expect(ended.output.toString()).toContain('run exited 0\r\n')
  expect(ended.output.toString()).toContain(printedLines(200))

  const followed = (await following.finished).stdout.trim().split('\n')
  expect(followed.map((line) => JSON.parse(line) as RunEvent)).toEqual(ended.events)
  expect(await json('run', 'events', runId, '--limit', '500')).toMatchObject({ data: ended.events })
  expect(await text('run', 'read', runId, '--full')).toContain(printedLines(200).replaceAll('\r\n', '\n'))
  expect(await json('run', 'result', runId)).toMatchObject({ data: { ok: true } })
  const changeSet = { live: false, files: [{ path: 'made.txt', status: 'added' }] }
  expect(await json('run', 'change-set', runId)).toMatchObject(changeSet)
}

/** An agent is woken by a task that it is given, comments on it and finishes it, and is cancelled since it does not leave. */
async function finishedTask(system: TestSystem, { device, json, text }: DeviceOwner): Promise<void> {
  const ofTask = ['run=svc task comment add current "I paint it."', 'run=svc task transition current --status done']
  const run = await scenario(system, { device, steps: [...ofTask, 'lines=20', 'touch=GATES/up', 'forever'] })
  const task = await json('task', 'create', '--title', 'Paint the door', '--assignee', run.agentId)
  const { key } = task as { key: string }
  await run.reached('up')
  const { data: runs } = (await json('run', 'list', '--task', key)) as { data: { id: string }[] }
  expect(runs).toHaveLength(1)
  const { id } = runs[0]!
  expect(await json('task', 'get', key, '--include', 'comments')).toMatchObject({
    status: 'done',
    comments: [{ body: 'I paint it.' }],
  })
  await text('run', 'cancel', id)
  const { output } = await checkInvariants(system, run, id, { exitReason: 'interrupted' })
  expect(output.toString().match(/run exited 0/g), output.toString()).toHaveLength(2)
  expect(output.toString()).toContain(printedLines(20))
}

describe('a system of the old programs', () => {
  test.skipIf(cutOff)(
    'the server is upgraded under one run while a second waits, then the device under the second',
    async () => {
      // With the wall: the new daemon takes up what the old one kept of it, and a run host that stands behind one of the old.
      const system = await begin('old', 'old', { device: { isWalled: true } })
      const { device, text } = await connect(system)
      await text('device', 'set', '--max-concurrent', '1')
      const past = await scenario(system, { device, steps: ['write=made.txt:x', 'lines=100'] })
      const pastId = await past.start()
      const { run: before, events } = await checkInvariants(system, past, pastId, { exitReason: 'completed' })
      const changes = await system.api.changeSet(pastId)

      const live = await scenario(system, { device, steps: stepsWhileAlone })
      const atWork = await untilHalf(live)
      const waiting = await scenario(system, { device, steps: stepsWhileAlone })
      const waitingId = await waiting.start()
      expect(await system.api.run(waitingId)).toMatchObject({ status: 'queued' })
      await upgradeServer(system.server, live)
      expect(await system.api.run(waitingId)).toMatchObject({ status: 'queued' })
      await goesOn(system, live, atWork)

      // What the old server stored reads as before; the new one may add fields.
      expect(await system.api.events(pastId)).toMatchObject(events)
      expect(await system.api.run(pastId)).toMatchObject(before)
      expect(await system.api.changeSet(pastId)).toMatchObject(changes)

      const started = await untilHalf(waiting, waitingId)
      await upgradeDevice(waiting)
      await goesOn(system, waiting, started)
    },
  )

  // The other order, whose parts the tests above show: each age of device at the server of the other one, and an old run host.
  if (isLong)
    test.skipIf(cutOff)(
      'the device and then the server are upgraded under one run, whose run host is the old one to the end',
      async () => {
        const system = await begin('old', 'old')
        const { device } = await connect(system)
        const run = await scenario(system, { device, steps: stepsWhileAlone })
        const unwanted = await scenario(system, { device, steps: ['lines=20', 'touch=GATES/up', 'forever'] })
        const [atWork, unwantedId] = [await untilHalf(run), await unwanted.start()]
        await unwanted.reached('up')
        await upgradeDevice(run)
        await upgradeServer(system.server, run)
        await goesOn(system, run, atWork)
        await system.api.cancel(unwantedId)
        await checkInvariants(system, unwanted, unwantedId, { exitReason: 'interrupted', output: printedLines(20) })

        const next = await scenario(system, { device, steps: ['lines=100', 'await=GATES/end', 'lines=100'] })
        const nextId = await next.start()
        isOf('new', (await device.hostOf(nextId)).pid)
        next.open('end')
        await checkInvariants(system, next, nextId, { exitReason: 'completed', output: printedLines(200) })
      },
    )
})

/** A run of an old device, at work. */
interface AtWork {
  runId: string
  /** Says what has arrived of it. */
  seen: RunEvent[]
  host: HostRecord
}

/** Waits until all that the run has printed so far has arrived. */
function arrived(run: Scenario, runId: string, lines: number): Promise<RunEvent[]> {
  const bytes = Buffer.byteLength(printedLines(lines))
  return waitFor(async () => {
    const events = await run.api.events(runId)
    return outputOf(events).output.length === bytes && events
  }, `${lines} lines of ${runId} arrive`)
}

async function untilHalf(run: Scenario, started?: string): Promise<AtWork> {
  const runId = started ?? (await run.start())
  await run.reached('half')
  const seen = await arrived(run, runId, 50)
  const host = await run.device.hostOf(runId)
  isOf('old', host.pid)
  return { runId, seen, host }
}

/** The run prints more while no server is there, unless it did so before. */
async function upgradeServer(server: TestServer, run: Scenario): Promise<void> {
  expect(await server.end()).toEqual({ code: 0, signal: null })
  run.open('more')
  await run.reached('alone')
  server.programs = programs.new
  await server.start()
  isOf('new', server.program.pid)
  await waitFor(() => run.device.isConnected(), 'the device is back', { about: () => run.device.log })
}

async function upgradeDevice(run: Scenario): Promise<void> {
  expect(await run.device.end()).toEqual({ code: 0, signal: null })
  run.open('more')
  await run.reached('alone')
  run.device.programs = programs.new
  await run.device.start()
  isOf('new', run.device.program.pid)
}

/** The run is still at work under its first lease; it ends well, with each event once and in order. */
async function goesOn(system: TestSystem, run: Scenario, { runId, seen, host }: AtWork): Promise<void> {
  expect(await run.api.run(runId)).toMatchObject({ status: 'running' })
  expect(await run.device.hostOf(runId)).toMatchObject({ pid: host.pid, harness: host.harness })
  // The host is heard, and asked, while the run is at work: at its end the device would read the spool without it.
  await arrived(run, runId, 550)
  await waitFor(async () => (await run.api.changeSet(runId)).live, 'the host tells what the run has changed')
  run.open('end')
  const { events } = await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(600) })
  expect(events.slice(0, seen.length)).toMatchObject(seen)
  expect(new Set(events.map(({ id }) => parseRunEventId(idFrom(runId), id)?.fence)), 'one lease').toEqual(new Set([1]))
}

describe.skipIf(!hasPostgres())('two replicas on one PostgreSQL', () => {
  // In the short form the first one stays old, with no device of its own.
  test.skipIf(cutOff)('are upgraded one after the other, with runs on both', async () => {
    const database = await emptyPostgres()
    ends.push(() => database.close())
    const system = await begin('old', 'old', { replicas: 2, databaseUrl: database.url })
    const [first, second] = system.servers as [TestServer, TestServer]
    const runOn = async (server: TestServer) => {
      const { device } = await connect(system, server)
      const run = await scenario(system, { device, steps: stepsWhileAlone })
      return { device, run, atWork: await untilHalf(run) }
    }
    const onSecond = await runOn(second)
    const onFirst = isLong ? await runOn(first) : null

    await upgradeServer(second, onSecond.run)
    // Each is woken and read on the replica that does not hold its device's link.
    await acrossReplicas(system, { device: onSecond.device, api: first.api })
    if (onFirst !== null) await acrossReplicas(system, { device: onFirst.device, api: second.api })
    await goesOn(system, onSecond.run, onSecond.atWork)
    if (onFirst === null) return
    await upgradeServer(first, onFirst.run)
    await goesOn(system, onFirst.run, onFirst.atWork)
  })
})

async function acrossReplicas(system: TestSystem, where: { device: TestDevice; api: TestApi }): Promise<void> {
  const steps = ['lines=100', 'write=made.txt:x', 'touch=GATES/up', 'await=GATES/end', 'lines=100']
  const run = await scenario(system, { ...where, steps })
  const runId = await run.start()
  const following = run.api.follow(runId)
  await run.reached('up')
  expect(await run.api.changeSet(runId)).toMatchObject({ live: true, files: [{ path: 'made.txt' }] })
  run.open('end')
  const { events } = await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(200) })
  expect((await following).events).toEqual(events)
}
