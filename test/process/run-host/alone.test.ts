import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { isAlive, startTimeOf } from '../../../device-manager/process/identity.ts'
import { nothingNames } from '../../kit/programs.ts'
import { specOf, spooled, testDevice, until, type TestDevice } from './host-client.ts'

let device: TestDevice
beforeAll(() => {
  device = testDevice({ isWalled: true })
})
afterAll(() => device.remove())

test('a host that no daemon comes back to ends its run before the control plane gives it up', async () => {
  const host = await device.host()
  const spec = specOf(device, { command: 'sleep 300' })
  await host.launch({ ...spec, limits: { ...spec.limits, silentMs: 1_000 } })
  host.disconnect()
  await host.exited
  const { ending } = spooled(device, spec.runId)
  expect(ending?.report).toMatchObject({ exitReason: 'runner_lost' })
})

test('a secret that the harness wrote into a file is not in the change-set', async () => {
  const folder = join(device.workDir, 'repo')
  mkdirSync(folder)
  execFileSync('git', ['init', '--quiet'], { cwd: folder })
  const host = await device.host()
  const spec = specOf(device, { command: 'echo "key=$API_KEY" > config.txt; echo "$SVC_TOKEN" > token.txt' })
  const token = 'svc.run.token.0123456789'
  await host.launch(
    { ...spec, folder: { shortId: 'fs_0123456789abcdef', rootPath: folder } },
    { secrets: { API_KEY: 'hunter2-hunter2' }, token },
  )
  const { report } = await host.reply('ended')
  expect(report.exitReason).toBe('completed')
  await host.left()
  const changes = JSON.stringify(spooled(device, spec.runId).ending?.changeSet)
  expect(changes).toContain('config.txt')
  expect(changes).toContain('[redacted:API_KEY]')
  expect(changes).not.toContain('hunter2')
  expect(changes).not.toContain(token)
})

describe('a host whose state folder is gone', () => {
  /** A device of its own, whose hosts have a `logger` that keeps what the system's log is told. */
  function lost() {
    const own = testDevice()
    onTestFinished(() => own.remove())
    const root = dirname(own.stateDir)
    const bin = join(root, 'bin')
    const told = join(root, 'told')
    mkdirSync(bin)
    writeFileSync(join(bin, 'logger'), `#!/bin/sh\necho "$@" >> ${told}\n`)
    chmodSync(join(bin, 'logger'), 0o755)
    const host = (backMs: number) =>
      own.host(['--folder-back-ms', String(backMs)], { PATH: `${bin}:${process.env['PATH'] ?? ''}` })
    // Moved first: its host may write into it at this moment.
    const remove = () => {
      renameSync(own.stateDir, join(root, 'gone'))
      rmSync(join(root, 'gone'), { recursive: true, force: true, maxRetries: 5 })
    }
    const read = () => (existsSync(told) ? readFileSync(told, 'utf8') : '')
    return { own, root, host, read, remove }
  }
  const running = 'trap "" HUP; echo up; sleep 300'

  test('ends its harness, waits for a while, says so in the log of the system, and leaves', async () => {
    const { own, host, read, remove } = lost()
    const alone = await host(3_000)
    const spec = specOf(own, { command: running })
    const { pid } = await alone.launch(spec)
    const harness = { pid: pid!, startTime: startTimeOf(pid!)! }
    alone.disconnect()
    remove()
    expect(await alone.exited).toBe(74)
    expect(isAlive(harness)).toBe(false)
    await nothingNames(spec.runId)
    expect(read()).toContain(`The end of run ${spec.runId} could not be recorded.`)
  })

  test('leaves at once when it is told to end, although it would wait for longer', async () => {
    const { own, host, read, remove } = lost()
    const alone = await host(600_000)
    const spec = specOf(own, { command: running })
    await alone.launch(spec)
    alone.disconnect()
    remove()
    alone.child.kill('SIGTERM')
    expect(await alone.exited).toBe(74)
    await nothingNames(spec.runId)
    expect(read()).toContain(spec.runId)
  })

  test('leaves at once when it is told to end after its harness has ended by itself', async () => {
    const { own, host, remove } = lost()
    const alone = await host(600_000)
    const done = join(own.workDir, 'done')
    const spec = specOf(own, { command: `while [ ! -e go ]; do sleep 0.05; done; touch ${done}` })
    await alone.launch(spec)
    alone.disconnect()
    remove()
    writeFileSync(join(own.workDir, 'go'), '')
    await until(() => existsSync(done), 'the harness is done')
    await nothingNames(spec.runId)
    alone.child.kill('SIGTERM')
    expect(await alone.exited).toBe(74)
  })

  test('and another one has its place: leaves', async () => {
    const { own, host, read, remove } = lost()
    const spare = await host(1_000)
    await spare.connect()
    remove()
    mkdirSync(own.stateDir)
    expect(await spare.exited).toBe(74)
    expect(read()).toContain('It had started no run.')
  })

  test('and that stands by with a daemon that lives: leaves', async () => {
    const { host, remove } = lost()
    const spare = await host(1_000)
    await spare.connect()
    remove()
    expect(await spare.exited).toBe(74)
  })

  test('and comes back in time: the end of the run is recorded', async () => {
    const { own, root, host, read } = lost()
    const alone = await host(24_000)
    const spec = specOf(own, { command: running })
    const { pid } = await alone.launch(spec)
    const harness = { pid: pid!, startTime: startTimeOf(pid!)! }
    alone.disconnect()
    renameSync(own.stateDir, join(root, 'moved'))
    await until(() => !isAlive(harness), 'the harness is ended')
    renameSync(join(root, 'moved'), own.stateDir)
    expect(await alone.exited).toBe(0)
    expect(spooled(own, spec.runId).ending?.report).toMatchObject({ exitReason: 'crashed' })
    expect(read()).toBe('')
  })
})
