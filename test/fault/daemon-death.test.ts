import { idFrom } from '../../shared/lib/ids.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseRunEventId } from '../../shared/api/run-events.ts'
import { isDrawn, isLong, repeats } from '../kit/forms.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { delay, processesNaming, seededRandom, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, stepsWhileAlone } from '../kit/system-scenario.ts'

// Fault matrix, rows 1 and 2: kill -9 of the daemon. `FAULT_KILLS` sets how often row 2 kills.

const kills = repeats('FAULT_KILLS', { short: 1, long: 6 })

let system: TestSystem
/** The shell of the device's person, whose environment runs are given, answers once this file is there. */
let gate: string
beforeAll(async () => {
  system = await TestSystem.start({ devices: 0, device: { isWalled: true } })
  gate = join(system.root, 'shell-may-answer')
  const shell = join(system.root, 'slow-shell')
  writeFileSync(shell, `#!/bin/sh\nwhile [ ! -e '${gate}' ]; do sleep 0.02; done\nexec /bin/sh "$@"\n`, { mode: 0o755 })
  await system.addDevice(system.server, { SHELL: shell })
})
afterAll(() => system?.stop())

test('row 1: a run of whose start no host had heard is started by the next daemon, once; its harness works on, and the one after that takes it up where it is, and tells in full of one that ended meanwhile', async () => {
  const { device } = system
  const [run, ending] = await Promise.all([
    scenario(system, { steps: stepsWhileAlone }),
    scenario(system, { steps: ['touch=GATES/up', 'await=GATES/go', 'lines=300', 'write=made.txt:x'] }),
  ])
  // At once: it is asked for a host, which is given the run when the person's shell has told its environment, and the
  // daemon waits for the shell no longer than five seconds.
  const runId = await run.start()
  await waitFor(async () => (await device.status()).runs.some(({ state }) => state === 'starting'), 'the start came')
  await waitFor(() => device.hosts().length > 0, 'a run host is there')
  await device.kill9()
  await waitFor(() => device.hosts().length === 0, 'its host left')
  writeFileSync(gate, '')
  await device.start()
  await run.reached('half')

  const endingId = await ending.start()
  await ending.reached('up')
  const before = await device.hostOf(runId)
  await device.kill9()
  run.open('more')
  await run.reached('alone')
  ending.open('go')
  await waitFor(() => processesNaming(endingId).length === 0, 'harness and run host leave')
  expect(await run.api.run(runId)).toMatchObject({ status: 'running' })

  const restartedAt = performance.now()
  await device.start()
  // All that it printed while nobody was there.
  const wanted = Buffer.byteLength(printedLines(550))
  await waitFor(async () => bytesOf(await run.api.events(runId)) === wanted, 'what was printed meanwhile arrives')
  expect(performance.now() - restartedAt, 'adopted within').toBeLessThan(10_000)
  const after = await device.hostOf(runId)
  expect(after).toMatchObject({ pid: before.pid, harness: before.harness })

  run.open('end')
  const { events } = await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(600) })
  expect(new Set(events.map(({ id }) => parseRunEventId(idFrom(runId), id)?.fence)), 'one fence').toEqual(new Set([1]))
  await checkInvariants(system, ending, endingId, { exitReason: 'completed', output: printedLines(300) })
})

// In the short form row 1 kills it where a run starts and where one is at work, and `workflows.test.ts` at random points.
if (isDrawn('FAULT_KILLS'))
  describe('kill -9 of the daemon', () => {
    beforeAll(() => writeFileSync(gate, ''))

    test(
      `row 2: ${kills} times at random points of the lives of two runs`,
      { timeout: 60_000 + kills * 3_000 },
      async () => {
        const random = seededRandom('row 2')
        const lines = 60 * kills
        const [long, short] = await Promise.all([
          scenario(system, { steps: ['rate=100', `lines=${lines}`, 'write=made.txt:x'] }),
          scenario(system, { steps: ['lines=100', 'touch=GATES/on', 'lines=100'] }),
        ])
        const [longId, shortId] = await Promise.all([long.start(), short.start()])
        for (let killed = 0; killed < kills; killed++) {
          // From the moment of the wake, through a daemon's start (some hundred milliseconds), to a while after it.
          await delay(random() * (killed % 2 === 0 ? 400 : 1_200))
          await system.device.kill9()
          system.device.launch()
        }
        // Once more, when it has just begun.
        if (isLong) {
          await system.device.kill9()
          system.device.launch()
        }
        await waitFor(() => system.device.isConnected(), 'the device is connected', { about: () => system.device.log })
        await checkInvariants(system, long, longId, { exitReason: 'completed', output: printedLines(lines) })
        await checkInvariants(system, short, shortId, { exitReason: 'completed', output: printedLines(200) })
      },
    )
  })

function bytesOf(events: readonly { kind: string; data: Record<string, unknown> }[]): number {
  return events.reduce(
    (sum, { data }) => sum + (typeof data['text'] === 'string' ? Buffer.byteLength(data['text']) : 0),
    0,
  )
}

test('a daemon that is stopped while its run host starts leaves none behind', async () => {
  const device = system.makeDevice()
  await device.enrol(system.api)
  for (let round = 0; round < (isLong ? 3 : 1); round++) {
    const program = device.launch()
    // It starts for some hundred milliseconds; each look at all processes takes several.
    await waitFor(() => processesNaming(device.stateDir).some(isRunHost), 'a run host starts', { everyMs: 20 })
    program.signal('SIGTERM')
    expect(await program.exit(10_000)).toEqual({ code: 0, signal: null })
    expect(processesNaming(device.stateDir).filter(isRunHost)).toEqual([])
    // A wall that was being tried at that moment is ended by the kernel, which tells it of its parent's death.
    await waitFor(() => processesNaming(device.stateDir).length === 0, 'nothing of the daemon lives', { ms: 5_000 })
    expect(device.hosts()).toEqual([])
  }
})

const isRunHost = ({ command }: { command: string }) => command.includes('--host-id')
