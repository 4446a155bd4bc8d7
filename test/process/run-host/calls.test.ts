import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { identityOf, isAlive, type ProcessIdentity } from '../../../device-manager/process/identity.ts'
import { Calls } from '../../../device-manager/run-host/calls.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { waitFor } from '../../kit/programs.ts'

// The limits of the calls of a run in a sandbox, with real processes.

/** A harness that starts `sleep` for each line it is sent, and says its number. */
async function harness() {
  const runId = realWorld.id('run_')
  const script = 'trap \'\' TERM; while read -r ignores; do (trap "$ignores" TERM; exec sleep 600) & echo $!; done'
  const child = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'], env: { SVC_RUN_ID: runId } })
  const begun: ProcessIdentity[] = []
  onTestFinished(() => {
    child.kill('SIGKILL')
    for (const each of begun.filter(isAlive)) process.kill(each.pid, 'SIGKILL')
  })
  const start = async (trap = '-'): Promise<ProcessIdentity> => {
    child.stdin.write(`${trap}\n`)
    const [said] = (await once(child.stdout, 'data')) as [Buffer]
    const identity = identityOf(Number(said.toString()))!
    begun.push(identity)
    return identity
  }
  const leader = identityOf(child.pid!)!
  return { start, running: { runId, leader, cgroup: null, exclude: [process.pid] } }
}

const called = (toolCallId: string): RunEventBody => ({
  kind: 'tool_call',
  data: { toolCallId, name: 'Bash', input: {} },
})
const answered = (toolCallId: string): RunEventBody => ({
  kind: 'tool_result',
  data: { toolCallId, isError: false, output: '' },
})

test('a call that takes too long loses its processes, and nothing else of the run does', async () => {
  const { start, running } = await harness()
  const told: RunEventBody[] = []
  const calls = new Calls({
    world: realWorld,
    limits: { toolCalls: 10, callMs: 400, warnAtCalls: null },
    running,
    warn: () => {},
    tell: (event) => told.push(event),
    onCall: () => {},
  })
  onTestFinished(() => calls.stop())
  const server = await start()
  // Its time is over before that of the other one begins.
  calls.note(called('short'))
  const left = await start()
  calls.note(answered('short'))
  expect(calls.isAnyOpen).toBe(false)
  await realWorld.sleep(30)
  calls.note(called('long'))
  const ofCall = await start()
  await waitFor(() => !isAlive(ofCall), 'the end of what the call began')
  expect(told).toMatchObject([{ kind: 'error', data: { class: 'call_too_long' } }])
  expect([running.leader, server, left].map(isAlive)).toEqual([true, true, true])
  expect([calls.made, calls.isAnyOpen]).toEqual([2, true])
  calls.note(answered('long'))
  expect(calls.isAnyOpen).toBe(false)
})

test('what ignores a signal to end is ended all the same', async () => {
  const { start, running } = await harness()
  const limits = { toolCalls: 10, callMs: 100, warnAtCalls: null }
  const nothing = () => {}
  const calls = new Calls({ world: realWorld, limits, running, warn: nothing, tell: nothing, onCall: nothing })
  onTestFinished(() => calls.stop())
  calls.note(called('stubborn'))
  const stubborn = await start('')
  await waitFor(() => !isAlive(stubborn), 'its end', { ms: 20_000 })
  expect(isAlive(running.leader)).toBe(true)
})
