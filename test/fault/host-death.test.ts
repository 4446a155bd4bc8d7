import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findRunCgroup, removeRunCgroup } from '../../device-manager/process/cgroup.ts'
import { makeTestGroup } from '../kit/control-group.ts'
import { isLong } from '../kit/forms.ts'
import { checkInvariants, outputOf } from '../kit/invariants.ts'
import { manyProcessors } from '../kit/many-processors.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario } from '../kit/system-scenario.ts'

// Fault matrix, rows 3 and 4: kill -9 of run hosts, with and without their daemon.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({ device: { isWalled: true }, deviceEnv: manyProcessors })
})
afterAll(() => system?.stop())

const steps = [
  'child=setsid',
  'child=escaped',
  'lines=200',
  'write=made.txt:x',
  'append=README.md:more',
  'touch=GATES/up',
  'forever',
]
/** What `child=` prints is not known before; the numbered lines follow it. */
const crashed = { exitReason: 'crashed' }

describe('kill -9 of the run host', () => {
  test('row 3: its tree is ended, what the spool holds is delivered, the change-set is made, the run is `crashed`', async () => {
    const run = await scenario(system, { steps })
    // The run is not held up by that.
    await killSpare()
    const runId = await run.start()
    await run.reached('up')
    const host = await run.device.hostOf(runId)
    await outputIsStored(runId)
    expect(findRunCgroup(runId) !== null, 'it has a control group where one can be made').toBe(canMakeGroups())
    process.kill(host.pid, 'SIGKILL')
    const { output, run: ended } = await checkInvariants(system, run, runId, crashed)
    expect(output.toString()).toContain(printedLines(200))
    expect(ended).toMatchObject({ status: 'failed', errorCode: 'crashed' })
    expect(findRunCgroup(runId)).toBe(null)
    const changeSet = await run.api.changeSet(runId)
    expect(changeSet.files.map(({ path }) => path)).toEqual(['README.md', 'made.txt'])
  })

  test('row 4: with daemon and server: survivors are found and ended, nothing is started again, and where the machine went down it is said', async () => {
    const [surviving, down] = await Promise.all([scenario(system, { steps }), scenario(system, { steps })])
    const [survivingId, downId] = await Promise.all([surviving.start(), down.start()])
    await Promise.all([surviving.reached('up'), down.reached('up')])
    const { device } = system
    const [hostOfSurviving, host] = await Promise.all([device.hostOf(survivingId), device.hostOf(downId)])
    await Promise.all([outputIsStored(survivingId), outputIsStored(downId)])
    process.kill(hostOfSurviving.pid, 'SIGKILL')
    // Of the other one nothing is left, as when the machine goes down.
    process.kill(-(host.harness?.pid ?? 0), 'SIGKILL')
    process.kill(host.pid, 'SIGKILL')
    await device.kill9()
    await system.server.kill9()
    const record = join(device.stateDir, 'hosts', `${host.hostId}.json`)
    writeFileSync(record, JSON.stringify({ ...host, bootId: 'of the boot before' }))
    await system.server.start()
    await device.start()
    const { output } = await checkInvariants(system, surviving, survivingId, crashed)
    expect(output.toString()).toContain(printedLines(200))
    const { output: before, run: ended } = await checkInvariants(system, down, downId, crashed)
    expect(before.toString()).toContain(printedLines(200))
    expect(ended.errorMessage).toBe('The machine went down while the run went on.')
    expect([survivingId, downId].map((runId) => findRunCgroup(runId))).toEqual([null, null])
  })

  // Row 3 begins with one as well.
  if (isLong)
    test('one that has not started a harness is replaced, and the run goes its way', async () => {
      const run = await scenario(system, { steps: ['lines=100'] })
      await killSpare()
      const runId = await run.start()
      await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(100) })
    })
})

function canMakeGroups(): boolean {
  const group = makeTestGroup()
  return group !== null && removeRunCgroup(group)
}

/** The host that waits for the next run. */
async function killSpare(): Promise<void> {
  const { device } = system
  const spare = await waitFor(() => device.hosts().find(({ runId }) => runId === null), 'a spare run host')
  process.kill(spare.pid, 'SIGKILL')
}

/** What a host had read and not written when it died is nobody's, so that much is waited for. */
function outputIsStored(runId: string): Promise<unknown> {
  const last = printedLines(1, { from: 200 })
  return waitFor(async () => outputOf(await system.api.events(runId)).output.includes(last), 'the output is stored')
}
