import { execFileSync, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bootId, isAlive, startTimeOf } from '../../device-manager/process/identity.ts'
import { writeLockHolders } from '../../device-manager/process/lock-holders.ts'
import type { HostRecord } from '../../device-manager/run-host/wire/protocol.ts'
import { checkInvariants, outputOf } from '../kit/invariants.ts'
import { delay, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// Run hosts that live and do not answer: stopped, or held up by a disk for good.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({ deviceEnv: { SVC_HOST_SILENT_MS: '6000' } })
})
afterAll(() => system?.stop())

const steps = ['lines=50', 'touch=GATES/up', 'await=GATES/more', 'lines=50', 'touch=GATES/printed', 'await=GATES/end']

/** Has a run's host stopped once 50 lines are stored, and 50 more wait to be read. */
async function stoppedRun(): Promise<{ run: Scenario; runId: string; host: HostRecord }> {
  const run = await scenario(system, { steps: [...steps, 'lines=50'] })
  const runId = await run.start()
  await run.reached('up')
  const host = await run.device.hostOf(runId)
  await isStored(runId, 50)
  process.kill(host.pid, 'SIGSTOP')
  onTestFinished(() => goOn(host))
  run.open('more')
  await run.reached('printed')
  return { run, runId, host }
}

function goOn(host: HostRecord): void {
  if (isAlive(host)) process.kill(host.pid, 'SIGCONT')
}

function isStored(runId: string, lines: number): Promise<unknown> {
  const last = printedLines(1, { from: lines })
  return waitFor(
    async () => outputOf(await system.api.events(runId)).output.includes(last),
    `line ${lines} of ${runId} is stored`,
    { about: () => system.device.log },
  )
}

/**
 * Starts a run whose host hangs from its launch on, as on a disk that does not answer: it writes its record into a pipe that nobody
 * reads.
 */
async function hungRun(): Promise<{ run: Scenario; runId: string; host: HostRecord }> {
  const run = await scenario(system, { steps: ['lines=50', 'touch=GATES/up', 'forever'] })
  const host = await waitFor(() => system.device.hosts().find(({ runId }) => runId === null), 'a spare run host')
  execFileSync('mkfifo', [join(system.device.stateDir, 'hosts', `${host.hostId}.json.${host.pid}.new`)])
  const runId = await run.start()
  await run.reached('up')
  await waitFor(async () => (await system.api.run(runId)).status === 'running', 'it runs')
  return { run, runId, host }
}

describe('a run that a person cancels', () => {
  test('whose host is stopped: the host goes on, and nothing of what the run printed is lost', async () => {
    const { run, runId, host } = await stoppedRun()
    await system.api.cancel(runId)
    await checkInvariants(system, run, runId, { exitReason: 'interrupted', output: printedLines(100) })
    expect(isAlive(host)).toBe(false)
  })

  test('whose host hangs for good: the daemon ends it as cancelled, and says that output may be lost', async () => {
    const { run, runId, host } = await hungRun()
    await system.api.cancel(runId)
    const { events } = await checkInvariants(system, run, runId, { exitReason: 'interrupted', mayHaveGaps: true })
    expect(events.slice(-2)).toMatchObject([
      { kind: 'gap', data: { bytes: 1, reason: 'run_host_hung', unknown: true } },
      { kind: 'ended' },
    ])
    expect(isAlive(host)).toBe(false)
  })
})

describe('a host that holds the lock of the spool', () => {
  test('and is stopped goes on, and no other run is held up for longer', async () => {
    const { device } = system
    const holder = await scenario(system, { steps: ['touch=GATES/up', 'rate=500', 'lines=100000', 'forever'] })
    const other = await scenario(system, { steps })
    const [holderId, otherId] = await Promise.all([holder.start(), other.start()])
    await Promise.all([holder.reached('up'), other.reached('up')])
    const host = await device.hostOf(holderId)
    await stopInWrite(host)
    other.open('more')
    await isStored(otherId, 100)
    other.open('end')
    await checkInvariants(system, other, otherId, { exitReason: 'completed', output: printedLines(100) })
    await system.api.cancel(holderId)
    await checkInvariants(system, holder, holderId, {
      exitReason: 'interrupted',
      output: printedLines(100_000),
      isCutOff: true,
    })
  })

  test('and hangs for good is ended, and the others go on', async () => {
    const { device } = system
    const other = await scenario(system, { steps })
    const otherId = await other.start()
    await other.reached('up')
    await isStored(otherId, 50)
    const hung = await lockForGood()
    other.open('more')
    await isStored(otherId, 100)
    other.open('end')
    await checkInvariants(system, other, otherId, { exitReason: 'completed', output: printedLines(100) })
    expect(isAlive(hung)).toBe(false)
    expect(device.log).toContain('a run host without a run does not answer and is ended')
  })
})

test('a daemon that is started beside hosts that are stopped has its link at once, and ends each run as it was told', async () => {
  const { device } = system
  const runs = await Promise.all([stoppedRun(), stoppedRun(), stoppedRun()])
  const [cancelled, ...others] = runs
  await system.api.cancel(cancelled.runId)
  await device.kill9()
  const startedAt = performance.now()
  await device.start()
  expect(performance.now() - startedAt).toBeLessThan(10_000)
  for (const { run } of others) run.open('end')
  const interrupted = { exitReason: 'interrupted', output: printedLines(100) }
  await checkInvariants(system, cancelled.run, cancelled.runId, interrupted)
  for (const { run, runId } of others)
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(150) })
})

test('a daemon that is started beside a host that hangs for good ends the run as it was told', async () => {
  const { device } = system
  const { run, runId } = await hungRun()
  await system.api.cancel(runId)
  await device.kill9()
  await device.start()
  const { events } = await checkInvariants(system, run, runId, { exitReason: 'interrupted', mayHaveGaps: true })
  expect(events.map(({ kind }) => kind).slice(-2)).toEqual(['gap', 'ended'])
})

/** Stops the host at a moment in which it writes. */
async function stopInWrite(host: HostRecord): Promise<void> {
  onTestFinished(() => goOn(host))
  const spool = join(system.device.stateDir, 'spool.db')
  const holds = () => writeLockHolders(spool)?.includes(host.pid) === true
  await waitFor(async () => {
    process.kill(host.pid, 'SIGSTOP')
    // On a busy machine a stop takes effect later than it is sent.
    await delay(20)
    if (holds()) return true
    process.kill(host.pid, 'SIGCONT')
    await delay(5)
    return false
  }, 'the host is stopped within a write')
}

/** A process that looks like a run host, takes the lock of the spool, and neither answers nor lets go. */
async function lockForGood(): Promise<HostRecord> {
  const { stateDir } = system.device
  const hostId = 'h_hung'
  const socket = join(system.root, 'hung.sock')
  const server = createServer(() => {}).listen(socket)
  onTestFinished(() => void server.close())
  const held = join(system.root, 'held')
  const program = `
    const db = new (require('better-sqlite3'))(process.argv[1], { timeout: 20000 })
    db.exec('begin immediate')
    require('node:fs').writeFileSync(process.argv[2], '')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`
  const child = spawn(process.execPath, ['-e', program, join(stateDir, 'spool.db'), held], { stdio: 'inherit' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await waitFor(() => existsSync(held), 'the lock is taken')
  const pid = child.pid!
  const record: HostRecord = {
    hostId,
    pid,
    startTime: startTimeOf(pid) ?? '',
    bootId: bootId(),
    socket,
    stateDir,
    runId: null,
    fence: null,
    harness: null,
  }
  writeFileSync(join(stateDir, 'hosts', `${hostId}.json`), JSON.stringify(record))
  return record
}
