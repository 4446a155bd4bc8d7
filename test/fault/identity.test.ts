import { cpSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTimeOf } from '../../device-manager/process/identity.ts'
import { hostReply, type HostReply } from '../../device-manager/run-host/wire/protocol.ts'
import { checkInvariants, goneMs, outputOf } from '../kit/invariants.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// Fault matrix, rows 35 and 36: who a daemon is, and when it may no longer be.

const doNotRestart = 78

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start()
})
afterAll(() => system?.stop())

describe('row 35: two daemons with one identity', () => {
  // One run works on through all of it.
  let run: Scenario
  let runId: string
  beforeAll(async () => {
    run = await scenario(system, { steps: ['lines=100', 'touch=GATES/up', 'await=GATES/end', 'lines=100'] })
    runId = await run.start()
    await run.reached('up')
  })

  test('on one machine the second ends with 78 and says which one has the place', async () => {
    const { device } = system
    const first = device.program
    const second = device.launch()
    expect(await second.exit(15_000)).toEqual({ code: doNotRestart, signal: null })
    expect(device.log).toContain(`Another daemon of this device runs already (pid ${first.pid})`)
    device.adopt(first)
  })

  test('on two machines the second is refused and ends with 78; the first goes on', async () => {
    const { device } = system
    const clone = system.makeDevice()
    for (const file of ['identity.json', 'device-token'])
      cpSync(join(device.stateDir, file), join(clone.stateDir, file))
    const second = clone.launch()
    expect(await second.exit(15_000)).toEqual({ code: doNotRestart, signal: null })
    // A person sees it on both sides.
    expect(clone.log).toContain('Another daemon is connected with this identity.')
    expect(system.server.log).toContain('a second daemon with this identity was refused')
    expect((await device.status()).link.state).toBe('connected')
  })

  test('a copy of the whole state folder on the same machine leaves the run hosts of the first alone', async () => {
    const { device } = system
    const host = await device.hostOf(runId)
    const clone = system.makeDevice()
    // A `.new` is there for the moment in which a file is written.
    const copied = (path: string) => !/\.(sock|reserve|new)$|daemon\.json$/.test(path)
    cpSync(device.stateDir, clone.stateDir, { recursive: true, filter: copied })
    expect(await clone.launch().exit(15_000)).toEqual({ code: doNotRestart, signal: null })
    expect(clone.log).toContain(`${clone.stateDir} is a copy of ${device.stateDir}, whose runs still work.`)
    expect(host.pid).toBeGreaterThan(0)
  })

  test('whoever else connects to a run host does not get it, and a daemon that loses its connection connects again', async () => {
    const { device } = system
    const host = await device.hostOf(runId)
    const stranger = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' }
    expect(await firstReply(host.socket, stranger)).toMatchObject({ type: 'refused', owner: device.program.pid })
    // As the daemon itself: its own connection is closed under it.
    const itself = { pid: device.program.pid, startTime: startTimeOf(device.program.pid) ?? '' }
    expect(await firstReply(host.socket, itself)).toMatchObject({ type: 'hello', runId })
    // Only the run host knows what has changed so far, so the daemon has it again.
    await waitFor(async () => (await system.api.changeSet(runId)).live, 'the daemon speaks with the run host again')
  })

  test('the run of the first one goes on to its end', async () => {
    run.open('end')
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(200) })
    expect(system.device.log).not.toContain('the run host is gone')
  })
})

/** Returns what a run host says first to a daemon that says who it is. */
function firstReply(path: string, owner: { pid: number; startTime: string }): Promise<HostReply> {
  return new Promise((done, fail) => {
    const socket = connect(path)
    socket.on('error', fail)
    socket.once('data', (chunk: Buffer) => {
      done(hostReply.parse(JSON.parse(chunk.toString('utf8').split('\n')[0] ?? '')))
      socket.destroy()
    })
    socket.write(`${JSON.stringify({ type: 'owner', ...owner })}\n`)
  })
}

// The last one, since the device does nothing afterwards.
describe('row 36: the device is removed in mid-run', () => {
  test('its harness is ended within 30 s, its events are kept, its daemon ends with 78', async () => {
    const { device } = system
    const run = await scenario(system, { steps: ['child=plain', 'lines=200', 'touch=GATES/up', 'forever'] })
    const runId = await run.start()
    await run.reached('up')
    await waitFor(
      async () => outputOf(await run.api.events(runId)).output.includes(printedLines(1, { from: 200 })),
      'the output is stored',
    )
    await run.api.call('DELETE', `/devices/${device.identity.deviceId}`)
    await nothingNames(runId, goneMs)
    expect(await device.program.exit(30_000)).toEqual({ code: doNotRestart, signal: null })
    expect(device.log).toMatch(/The device was removed/)

    const ended = await run.api.waitForRun(runId, 'failed')
    expect(ended.exitReason).toBe('runner_lost')
    expect(outputOf(await run.api.events(runId)).output.toString()).toContain(printedLines(200))
    expect(run.starts()).toBe(1)
    // Its token is worth nothing any more, on the link and on routes.
    const answer = await fetch(`${system.server.url}/api/device/config`, {
      headers: { authorization: `Bearer ${device.identity.token}` },
    })
    expect(answer.status).toBe(401)
    const again = device.launch()
    expect(await again.exit(15_000)).toEqual({ code: doNotRestart, signal: null })
    await nothingNames(device.stateDir)
  })
})
