import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hostRecord } from '../../../device-manager/run-host/wire/protocol.ts'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { allProcesses } from '../../kit/programs-processes.ts'
import { wallSpecOf } from '../../kit/wall.ts'
import { specOf, testDevice, until, type TestDevice } from '../run-host/host-client.ts'

// No process of a run stays, however it ends, without anybody looking for it.

let device: TestDevice
beforeEach(() => {
  device = testDevice({ isWalled: true })
})
afterEach(() => device.remove())

/**
 * Drops all that it could be known by: its session, its environment, its parent, its terminal; and does not listen to
 * signals. Told by its argument alone.
 */
const escape = (name: string) =>
  `setsid env -i /bin/sh -c 'trap "" HUP INT TERM; (while :; do sleep 1; done) </dev/null >/dev/null 2>&1 & echo > escaped' ${name} &
  until [ -e escaped ]; do sleep 0.01; done`

describe.each(linuxTools)('with the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  async function launch(command: string) {
    const host = await device.host()
    const spec = specOf(device, { command })
    await host.connect()
    host.assign(spec, { wall: wallSpecOf(device.stateDir, tool) })
    await host.reply('prepared')
    host.start()
    await host.reply('started')
    return { host, runId: spec.runId }
  }

  test('a child that dropped session, environment and parent ends with the run', async () => {
    const name = `escape-${device.nextRunId()}`
    const { host } = await launch(`${escape(name)}; until [ -e go ]; do sleep 0.01; done`)
    await until(() => existsSync(join(device.workDir, 'escaped')), 'the child got away')
    expect(allProcesses(name).length).toBeGreaterThan(0)
    writeFileSync(join(device.workDir, 'go'), '')
    expect((await host.reply('ended')).report.exitReason).toBe('completed')
    expect(allProcesses(name)).toEqual([])
    await host.left()
  })

  test('a killed run host takes all of the run with it, while no daemon is there', async () => {
    const name = `escape-${device.nextRunId()}`
    const { host } = await launch(`${escape(name)}; exec sleep 600`)
    await until(() => existsSync(join(device.workDir, 'escaped')), 'the child got away')
    await until(() => hostRecord.parse(JSON.parse(readFileSync(host.recordPath, 'utf8'))).wall != null, 'the record')
    const { wall } = hostRecord.parse(JSON.parse(readFileSync(host.recordPath, 'utf8')))
    host.child.kill('SIGKILL')
    await host.exited
    await until(() => allProcesses(name).length === 0 && !existsSync(`/proc/${wall!.pid}`), 'all of the run is gone')
  })

  test('a holder that is killed from outside ends the run, and the run says so', async () => {
    const { host } = await launch('echo begun > begun-inside; exec sleep 600')
    await until(() => readFileSync(host.recordPath, 'utf8').includes('"wall":{'), 'the record')
    // Before that the programs that lead into the wall are what ends.
    await until(() => existsSync(join(device.workDir, 'begun-inside')), 'the program in the wall')
    const { wall } = hostRecord.parse(JSON.parse(readFileSync(host.recordPath, 'utf8')))
    process.kill(wall!.pid, 'SIGKILL')
    expect((await host.reply('ended')).report).toMatchObject({ exitReason: 'error', signal: 'SIGKILL' })
    await host.left()
  })

  test('a wall that is gone before the start lets nothing start', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: 'echo started > started' })
    await host.connect()
    host.assign(spec, { wall: wallSpecOf(device.stateDir, tool) })
    await host.reply('prepared')
    const holders = () =>
      allProcesses('cat').filter(({ command, pid }) => command === 'cat' && isOf(pid, host.child.pid!))
    // It is made while the run is prepared, and may become this program a moment later.
    await until(() => holders().length === 1, 'the holder stands')
    const [{ pid } = { pid: 0 }] = holders()
    process.kill(pid, 'SIGKILL')
    await until(() => !isOf(pid, host.child.pid!), 'the holder is gone')
    host.start()
    expect((await host.reply('ended')).report.exitReason).toBe('harness_start_failed')
    expect(existsSync(join(device.workDir, 'started'))).toBe(false)
    await host.left()
  })
})

/** Whether `ancestor` started it, directly or not. */
function isOf(pid: number, ancestor: number): boolean {
  for (let at = pid; at > 1; at = parentOf(at)) if (at === ancestor) return true
  return false
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
  } catch {
    return 0
  }
}
