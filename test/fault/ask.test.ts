import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import { isLong, repeats } from '../kit/forms.ts'
import { delay, nothingNames, seededRandom, waitFor } from '../kit/programs.ts'
import { runSpecFixture } from '../kit/run-spec.ts'
import { startScripted, type ScriptedSystem } from '../kit/scripted-system.ts'
import type { TestDevice } from '../kit/system-device.ts'
import type { Lease, ScriptedServer } from '../kit/system-scripted-server.ts'

// What a person is asked is not lost by a death of daemon or run host at any moment after it was on the disk.

/** Moments at which the run host is killed. */
const rounds = repeats('FAULT_ASKS', { short: 1, long: 16 })

const player = resolve(import.meta.dirname, '../process/run-host/claude-player.mjs')
const recording = resolve(import.meta.dirname, '../fixtures/harness/claude/cbhook-ask.jsonl')
const acknowledge: ScriptedServer['onEvents'] = ({ runId, fence, lastSeq }) => ({
  type: 'ack',
  runId,
  fence,
  seq: lastSeq,
})

let root: string
let server: ScriptedServer
let device: TestDevice
let system: ScriptedSystem
beforeAll(async () => {
  const prepare = (made: Pick<ScriptedSystem, 'root' | 'device'>) => {
    const bin = join(made.root, 'bin')
    mkdirSync(bin)
    // After its question it says nothing any more and does not leave: the host has to end it.
    const env = `PLAYER_RECORDING='${recording}' PLAYER_ANSWERS='${join(made.root, 'answers')}' PLAYER_MODE=deaf`
    writeFileSync(join(bin, 'claude'), `#!/bin/sh\n${env} exec '${process.execPath}' '${player}' "$@"\n`)
    chmodSync(join(bin, 'claude'), 0o755)
    writeFileSync(join(made.device.homeDir, '.profile'), `export PATH='${bin}':"$PATH"\n`)
  }
  system = await startScripted('ask-fault', { prepare, isWalled: true })
  ;({ root, server, device } = system)
})
afterEach(() => {
  server.onEvents = acknowledge
  server.verdicts = []
})
afterAll(() => system?.stop())

async function startRun(): Promise<Lease> {
  const lease = { runId: realWorld.id('run_'), fence: 1 }
  const spec = runSpecFixture(lease.runId, {
    harness: 'claude',
    command: null,
    folder: { shortId: 'fs_1', rootPath: root },
    permissions: { allow: [], ask: [], deny: [], defaultMode: 'ask' },
  })
  server.offer(lease, spec)
  await server.heard('run.accepted', lease)
  server.start(lease)
  return lease
}

/** A run that has asked: the server has seen the frame, and has acknowledged it or not. */
async function askedRun(isAcknowledged: boolean): Promise<Lease> {
  server.onEvents = isAcknowledged ? acknowledge : () => null
  const lease = await startRun()
  await waitFor(() => told(lease).length > 0, 'the call is asked', { about: () => device.log })
  server.verdicts = [{ ...lease, verdict: 'go_on', ackSeq: isAcknowledged ? lastSeq(lease) : 0 }]
  return lease
}
const headers = ({ runId }: Lease) => server.events.filter((header) => header.runId === runId)
const told = (lease: Lease) => headers(lease).flatMap(({ approvals }) => approvals ?? [])
const lastSeq = (lease: Lease) => Math.max(...headers(lease).map((header) => header.lastSeq))

async function expectAsked(lease: Lease): Promise<void> {
  const { report } = await server.heard('run.ended', lease)
  expect(report).toMatchObject({
    exitReason: 'approval_requested',
    message: expect.stringContaining("a person's approval"),
    approvals: [{ name: 'Bash', safeSummary: expect.stringContaining('echo hello') }],
  })
  expect(new Set(told(lease).map(({ inputDigest }) => inputDigest))).toEqual(
    new Set([report.approvals![0]!.inputDigest]),
  )
  expect(server.all('run.ended', lease).every((ended) => ended.report.exitReason === 'approval_requested')).toBe(true)
  await nothingNames(lease.runId)
}

// Of what the server has acknowledged before, and of what it has not. The short form tries each death with one of them.
test.each(isLong ? [true, false] : [false])('kill -9 of the run host (acknowledged: %s)', async (isAcknowledged) => {
  const lease = await askedRun(isAcknowledged)
  const host = await device.hostOf(lease.runId)
  process.kill(host.pid, 'SIGKILL')
  if (!isAcknowledged) server.send({ type: 'ack', ...lease, seq: lastSeq(lease) })
  server.onEvents = acknowledge
  await expectAsked(lease)
})

test.each(isLong ? [true, false] : [true])('kill -9 of the daemon (acknowledged: %s)', async (isAcknowledged) => {
  const lease = await askedRun(isAcknowledged)
  await device.kill9()
  server.onEvents = acknowledge
  await device.start()
  await expectAsked(lease)
})

test.each(isLong ? [true, false] : [false])('kill -9 of both (acknowledged: %s)', async (isAcknowledged) => {
  const lease = await askedRun(isAcknowledged)
  const host = await device.hostOf(lease.runId)
  await device.kill9()
  process.kill(host.pid, 'SIGKILL')
  const before = told(lease).length
  server.onEvents = acknowledge
  await device.start()
  await expectAsked(lease)
  // What was not acknowledged was told again with its frame.
  expect(told(lease).length - before).toBe(isAcknowledged ? 0 : 1)
})

test('kill -9 of the run host at any moment: the run ends as one that asked exactly when it did', async () => {
  const random = seededRandom('ask')
  const reasons = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    const lease = await startRun()
    // The harness is asked within a fifth of a second, or two on a machine at work.
    await server.heard('run.started', lease)
    await delay(random() * 400)
    const host = device.hosts().find(({ runId }) => runId === lease.runId)
    if (host) process.kill(host.pid, 'SIGKILL')
    const { report } = await server.heard('run.ended', lease)
    reasons.add(report.exitReason)
    const asked = [...new Set(told(lease).map(({ inputDigest }) => inputDigest))]
    expect(report.exitReason).toBe(asked.length > 0 ? 'approval_requested' : 'crashed')
    expect(report.approvals?.map(({ inputDigest }) => inputDigest)).toEqual(asked.length > 0 ? asked : undefined)
    await nothingNames(lease.runId)
  }
  process.stderr.write(`ask: ended ${[...reasons].join(', ')}\n`)
})
