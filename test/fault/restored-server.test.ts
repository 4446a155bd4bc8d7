import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileCache } from '../kit/compile-cache.ts'
import { outputOf, wholeLog } from '../kit/invariants.ts'
import { programFile } from '../kit/program-file.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { scenario } from '../kit/system-scenario.ts'

// A server that is restored from a backup, and a device whose runs have gone on since the backup was made: each of them has one ending,
// and none is executed twice.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({
    capacity: 2,
    deviceEnv: { SVC_RECONNECT_MIN_MS: '250', SVC_RECONNECT_MAX_MS: '1000' },
  })
})
afterAll(() => system?.stop())

function operate(...args: string[]): void {
  const { server, root } = system
  const line = ['--disable-warning=ExperimentalWarning', programFile('control-plane'), ...args]
  const env = { PATH: process.env['PATH'] ?? '', HOME: root, SVC_DATA_DIR: server.dataDir, ...compileCache }
  const { status, stderr } = spawnSync(process.execPath, line, { encoding: 'utf8', env, cwd: root })
  expect([status, stderr]).toEqual([0, ''])
}

test('runs that were live, waited or did not exist when the backup was made, and have gone on since', async () => {
  const { api, device, server } = system
  const gated = ['lines=20', 'touch=GATES/begun', 'await=GATES/end', 'lines=20']
  const ends = await scenario(system, { steps: gated })
  const goesOn = await scenario(system, {
    steps: [
      'lines=20',
      'touch=GATES/begun',
      'await=GATES/half',
      'lines=20',
      'touch=GATES/more',
      'await=GATES/end',
      'lines=20',
    ],
  })
  const waits = await scenario(system, { steps: gated })
  const endedSince = await ends.start()
  const live = await goesOn.start()
  await ends.reached('begun')
  await goesOn.reached('begun')
  const waiting = await waits.start()
  const stillWaiting = await waits.start()
  expect((await api.run(waiting)).status).toBe('queued')

  const file = join(system.root, 'backup.tar')
  operate('backup', file)

  ends.open('end')
  await api.waitForRun(endedSince, 'succeeded')
  await waits.reached('begun')
  waits.open('end')
  await api.waitForRun(waiting, 'succeeded')
  await api.waitForRun(stillWaiting, 'succeeded')
  const madeSince = await ends.start()
  await api.waitForRun(madeSince, 'succeeded')
  goesOn.open('half')
  await goesOn.reached('more')
  const countOf = async () =>
    outputOf(await api.events(live))
      .output.toString()
      .split('\n').length - 1
  await waitFor(async () => (await countOf()) === 40, 'the server has what the live run has printed')
  // What the device has told is gone from its spool by then.
  await waitFor(
    async () => (await device.spoolRuns()).every(({ runId }) => runId === live),
    'ended runs left the spool',
  )

  await server.kill9()
  operate('restore', file, '--replace')
  await server.start()
  await waitFor(() => device.isConnected(), 'the device is linked', { about: () => device.log })

  expect(await api.waitForRun(endedSince, 'failed')).toMatchObject({ exitReason: 'runner_lost' })
  for (const runId of [waiting, stillWaiting]) {
    expect(await api.waitForRun(runId, 'failed')).toMatchObject({ exitReason: 'runner_lost' })
    expect(waits.starts(runId), 'starts of a run that had waited').toBe(1)
  }
  expect((await api.raw('GET', `/runs/${madeSince}`)).status).toBe(404)

  goesOn.open('end')
  expect(await api.waitForRun(live, 'succeeded')).toMatchObject({ exitReason: 'completed' })
  const events = await api.events(live)
  wholeLog(events, 'completed')
  expect(events.filter(({ kind, data }) => kind === 'gap' && data['reason'] === 'server_restored')).toHaveLength(1)
  expect([ends.starts(endedSince), ends.starts(madeSince), goesOn.starts(live)]).toEqual([1, 1, 1])
  for (const runId of [endedSince, live, waiting, stillWaiting]) await nothingNames(runId)

  // Nothing is in the way of what comes next.
  const next = await ends.start()
  await api.waitForRun(next, 'succeeded')
  expect(ends.starts(next)).toBe(1)
  await waitFor(async () => (await device.spoolRuns()).length === 0, 'the spool is empty')
})

test('a run that was offered when the backup was made, and has been executed since, is not executed twice', async () => {
  const { api, device, server } = system
  const once = await scenario(system, { steps: ['lines=20'] })
  // A daemon that sleeps leaves the offer open.
  device.program.signal('SIGSTOP')
  const runId = await once.start()
  const file = join(system.root, 'offered.tar')
  operate('backup', file)
  device.program.signal('SIGCONT')
  await api.waitForRun(runId, 'succeeded')
  await waitFor(async () => (await device.spoolRuns()).length === 0, 'the ended run left the spool')

  await server.kill9()
  operate('restore', file, '--replace')
  await server.start()
  // The server takes its offer back, and makes it again under a higher fence.
  expect(await api.waitForRun(runId, 'failed')).toMatchObject({ exitReason: 'runner_lost' })
  expect(once.starts(runId)).toBe(1)
})
