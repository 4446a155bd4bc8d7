import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hostRecord } from '../../../device-manager/run-host/wire/protocol.ts'
import { isAlive } from '../../../device-manager/process/identity.ts'
import { isLong } from '../../kit/forms.ts'
import { wallSpecOf } from '../../kit/wall.ts'
import { accountOf, outputOf, specOf, spooled, testDevice, until, type TestDevice } from './host-client.ts'

let device: TestDevice
beforeAll(() => {
  device = testDevice({ isWalled: true })
})
afterAll(() => device.remove())

const recordOf = (path: string) => hostRecord.parse(JSON.parse(readFileSync(path, 'utf8')))
const numbered = `i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done`
const allLines = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\r\n`).join('')

describe('host and daemon', () => {
  test('the record tells a later daemon whose process and socket they are', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: 'sleep 300' })
    const started = await host.launch(spec)
    await until(() => recordOf(host.recordPath).harness !== null, 'harness in the record')
    const record = recordOf(host.recordPath)
    expect(record).toMatchObject({ hostId: host.hostId, pid: host.child.pid, runId: spec.runId, fence: 1 })
    expect(record.harness?.pid).toBe(started.pid)
    expect(isAlive(record.harness!)).toBe(true)
    expect(isAlive({ pid: record.pid, startTime: record.startTime })).toBe(true)
    expect(statSync(host.recordPath).mode & 0o777).toBe(0o600)
    expect(statSync(record.socket).mode & 0o777).toBe(0o600)
    host.send({ type: 'stop', exitReason: 'interrupted', message: null })
    await host.exited
  })

  test.concurrent('a daemon that goes away and another one that comes change nothing', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: numbered })
    await host.launch(spec)
    host.disconnect()
    await until(() => spooled(device, spec.runId).events.length > 5, 'events without a daemon')
    const hello = await host.connect()
    expect(hello).toMatchObject({ runId: spec.runId, fence: 1, phase: 'running', pid: host.child.pid })
    expect(hello.lastSeq).toBeGreaterThan(4)
    host.start({ token: 'tok_another_one_for_a_second_start' })
    const { report } = await host.reply('ended')
    expect(report.exitReason).toBe('completed')
    const { events } = spooled(device, spec.runId)
    expect(events.filter(({ kind }) => kind === 'started')).toHaveLength(1)
    expect(outputOf(events).toString()).toBe(allLines)
  })

  test.concurrent('a daemon killed with its socket open, and none after it: the run ends by itself', async () => {
    const host = await device.host()
    await until(() => existsSync(host.recordPath), 'record')
    const spec = specOf(device, { command: numbered })
    const requests = [
      {
        type: 'assign',
        spec,
        fence: 1,
        env: { PATH: process.env['PATH'] },
        homeDir: '/',
        loginShell: '/bin/sh',
        svcBinDir: null,
        harnessVersion: null,
        wall: wallSpecOf(device.stateDir),
      },
      { type: 'start', token: 'tok_0123456789abcdefghij', apiUrl: 'http://127.0.0.1:1', secrets: {} },
    ]
    const lines = requests.map((request) => `${JSON.stringify(request)}\n`).join('')
    const script = `const s = require('node:net').connect(process.argv[1]); s.write(process.argv[2]); s.on('data', (d) => process.stdout.write(d))`
    const daemon = spawn(process.execPath, ['-e', script, recordOf(host.recordPath).socket, lines], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let said = ''
    daemon.stdout.on('data', (chunk) => (said += String(chunk)))
    await until(() => said.includes('"started"'), 'started')
    daemon.kill('SIGKILL')
    await host.left()
    const { events, ending } = spooled(device, spec.runId)
    expect(outputOf(events).toString()).toBe(allLines)
    expect(ending?.report.exitReason).toBe('completed')
  })

  test.concurrent('lines that are no request are ignored, and a daemon that stops reading does not hold the harness up', async () => {
    const host = await device.host()
    await until(() => existsSync(host.recordPath), 'record')
    const rude = connect(recordOf(host.recordPath).socket)
    rude.on('error', () => {})
    rude.write('nonsense\n{"type":"fly"}\n{"type":"stop"}\n')
    await until(() => host.log.split('\n').length > 3, 'three lines of log')
    rude.destroy()
    await host.connect()
    const spec = specOf(device, { command: `head -c 3000000 /dev/zero | tr '\\0' 'x'` })
    host.assign(spec)
    await host.reply('prepared')
    host.start()
    host.pause()
    await until(() => accountOf(device, spec.runId).ending !== null, 'ending')
    expect(accountOf(device, spec.runId).ending?.report.exitReason).toBe('completed')
    expect(outputOf(spooled(device, spec.runId).events).length).toBe(3_000_000)
    host.disconnect()
    await host.left()
    expect(host.log).not.toContain('tok_0123456789')
  })

  // In the short form that is the one below which its daemon never met.
  if (isLong)
    test('without a daemon a host that has no run leaves', async () => {
      const idle = await device.host(['--lonely-ms', '200'])
      expect(await idle.exited).toBe(0)
    })

  test('without a daemon a host that was given a run and has not started it leaves', async () => {
    // Long enough to be reached in time on a busy machine: it counts from the host's start, and anew from the disconnection.
    const assigned = await device.host(['--lonely-ms', '4000'])
    await assigned.connect()
    assigned.assign(specOf(device, { command: 'true' }))
    await assigned.reply('prepared')
    assigned.disconnect()
    expect(await assigned.exited).toBe(0)
    expect(existsSync(assigned.recordPath)).toBe(false)
  })

  test('the end of the daemon that started it makes a host leave that has no run', async () => {
    const unmet = await device.host()
    await until(() => existsSync(unmet.recordPath), 'record')
    unmet.child.stdin!.destroy()
    expect(await unmet.exited).toBe(0)
    expect(existsSync(unmet.recordPath)).toBe(false)

    const assigned = await device.host()
    await assigned.connect()
    assigned.assign(specOf(device, { command: 'echo done' }))
    await assigned.reply('prepared')
    assigned.child.stdin!.destroy()
    assigned.start()
    expect((await assigned.reply('ended')).report.exitReason).toBe('completed')
  })

  test('a spool that cannot be opened shows before a harness is started', async () => {
    const broken = testDevice({ isWalled: true })
    try {
      rmSync(broken.spoolPath)
      mkdirSync(broken.spoolPath)
      const host = await broken.host()
      await host.connect()
      host.assign(specOf(broken, { command: 'true' }))
      expect(await host.exited).toBe(74)
      expect(host.log).toContain('prepare_failed')
    } finally {
      broken.remove()
    }
  })
})
