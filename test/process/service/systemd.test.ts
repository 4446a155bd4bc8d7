import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Program, waitFor } from '../../kit/programs.ts'
import { deviceMain, TestMachine } from './machine.ts'

describe.runIf(process.platform === 'linux')('svc-device service under systemd', () => {
  let machine: TestMachine
  beforeEach(() => {
    machine = new TestMachine()
  })
  afterEach(() => machine.close())

  const startByHand = async () => {
    const program = new Program({
      name: 'daemon',
      args: [deviceMain, 'run'],
      env: machine.env,
      cwd: machine.root,
      logPath: join(machine.root, 'hand.log'),
    })
    await waitFor(() => existsSync(join(machine.stateDir, 'daemon.sock')), 'the daemon listens', {
      about: () => program.log,
    })
    return program
  }

  it('installs, does nothing the second time, uninstalls, and does nothing the second time', async () => {
    machine.enrol()
    const installed = await machine.done('install')
    expect(installed).toMatchObject({ manager: 'systemd', file: machine.unitFile, changed: true, tookOver: null })
    expect(installed.pid).toBe(machine.daemonPid)
    expect(machine.changes()).toEqual([
      'systemctl --user daemon-reload',
      'systemctl --user enable svc-device.service',
      expect.stringMatching(/^loginctl enable-linger ./),
      // Nothing runs yet; it would end a daemon that systemd is about to start again.
      'systemctl --user stop svc-device.service',
      'systemctl --user start svc-device.service',
    ])
    expect(await machine.done('status')).toMatchObject({
      installed: true,
      enabled: true,
      running: true,
      pid: installed.pid,
      lingering: true,
      problems: [],
    })

    expect(await machine.done('install')).toMatchObject({ changed: false, pid: installed.pid })
    expect(machine.changes()).toEqual([])

    expect(await machine.done('uninstall')).toEqual({ file: machine.unitFile, changed: true })
    expect(machine.daemonPid).toBeNull()
    expect(machine.homeFiles()).toEqual([])
    expect(machine.isLingering).toBe(false)
    expect(machine.changes()).toEqual([
      'systemctl --user disable --now svc-device.service',
      'systemctl --user daemon-reload',
      'systemctl --user reset-failed svc-device.service',
      expect.stringMatching(/^loginctl disable-linger ./),
    ])

    expect(await machine.done('uninstall')).toMatchObject({ changed: false })
    expect(machine.changes()).toEqual([])
  })

  it('takes the place of a daemon that was started by hand', async () => {
    machine.enrol()
    const program = await startByHand()
    const installed = await machine.done('install')
    expect(installed.tookOver).toBe(program.pid)
    expect(await program.exited).toEqual({ code: 0, signal: null })
    expect(installed.pid).toBe(machine.daemonPid)
    expect(installed.pid).not.toBe(program.pid)
  })

  it('leaves lingering on that was on before', async () => {
    machine.enrol()
    writeFileSync(join(machine.stubDir, 'linger'), '')
    await machine.done('install')
    await machine.done('uninstall')
    expect(machine.isLingering).toBe(true)
  })

  it('installs without lingering where that is refused, and says so', async () => {
    machine.enrol()
    machine.fail('enable-linger', 'Could not enable linger: Access denied\n')
    const { warnings } = await machine.done('install')
    expect(warnings.map(({ code }) => code)).toEqual(['not_lingering'])
    expect((await machine.done('status')).problems.map(({ code }) => code)).toEqual(['not_lingering'])
    await machine.done('uninstall')
    expect(machine.changes()).not.toContainEqual(expect.stringMatching(/disable-linger/))
  })

  it.each(['daemon-reload', 'enable', 'start'])('leaves nothing behind when `%s` fails', async (verb) => {
    machine.enrol()
    const program = await startByHand()
    machine.fail(verb)
    const reply = await machine.service('install')
    expect(reply).toMatchObject({ ok: false, error: { code: 'tool_failed' } })
    expect(JSON.stringify(reply)).toContain(`${verb} is made to fail`)
    expect(machine.homeFiles()).toEqual([])
    expect(machine.isLingering).toBe(false)
    // A daemon runs as before: the same one, or one in its place when it had been stopped already.
    await waitFor(() => machine.daemonPid !== null, 'a daemon runs again')
    if (verb !== 'start') expect(machine.daemonPid).toBe(program.pid)
    if (verb !== 'daemon-reload') expect(await machine.done('status')).toMatchObject({ installed: false, problems: [] })
  })

  it('puts the earlier unit back when the new one does not start', async () => {
    machine.enrol()
    await machine.done('install')
    const before = readFileSync(machine.unitFile, 'utf8')
    machine.fail('start')
    expect(await machine.refused('install', { SVC_LOG_LEVEL: 'debug' })).toBe('tool_failed')
    expect(readFileSync(machine.unitFile, 'utf8')).toBe(before)
    machine.heal('start')
    const { pid } = await machine.done('start')
    expect(machine.daemonPid).toBe(pid)
  })

  it('refuses to install with a typed error and without a trace', async () => {
    expect(await machine.refused('install')).toBe('not_connected')
    machine.enrol()
    machine.fail('show-environment', 'Failed to connect to bus: No medium found\n')
    expect(await machine.refused('install')).toBe('no_service_manager')
    expect(machine.changes()).toEqual([])
    expect(machine.homeFiles()).toEqual([])
    rmSync(join(machine.binDir, 'systemctl'))
    const withoutSystemd = { PATH: machine.binDir }
    expect(await machine.refused('install', withoutSystemd)).toBe('no_service_manager')
    expect(await machine.done('uninstall', withoutSystemd)).toMatchObject({ changed: false })
  })

  it('does not touch the service of another device', async () => {
    machine.enrol()
    const { pid } = await machine.done('install')
    const other = new TestMachine()
    try {
      other.enrol()
      const env = { HOME: machine.home, STUB_DIR: machine.stubDir }
      expect(await other.refused('install', env)).toBe('other_state_dir')
      expect(await other.refused('uninstall', env)).toBe('other_state_dir')
      expect((await other.done('status', env)).problems.map(({ code }) => code)).toEqual(['state_dir_differs'])
    } finally {
      await other.close()
    }
    expect(machine.daemonPid).toBe(pid)
  })

  it('stops, starts and restarts', async () => {
    machine.enrol()
    expect(await machine.refused('restart')).toBe('not_installed')
    const first = await machine.done('install')
    const second = await machine.done('restart')
    expect(second.pid).not.toBe(first.pid)
    expect(await machine.done('start')).toMatchObject({ pid: second.pid })
    expect(await machine.done('stop')).toEqual({ stopped: true })
    expect(machine.daemonPid).toBeNull()
    expect((await machine.done('status')).problems.map(({ code }) => code)).toEqual(['not_running'])
    expect((await machine.done('start')).pid).toBe(machine.daemonPid)
  })

  it('tells when Node, svc or the PATH moved after the install', async () => {
    machine.enrol()
    machine.addProgram('claude')
    await machine.done('install')
    const text = readFileSync(machine.unitFile, 'utf8')
    const pretend = (from: string, to: string) => writeFileSync(machine.unitFile, text.replaceAll(from, to))
    const codes = async () => (await machine.done('status')).problems.map(({ code }) => code)
    expect(await codes()).toEqual([])
    pretend(`"${process.execPath}"`, `"${machine.root}/gone/node"`)
    expect(await codes()).toEqual(['node_missing'])
    pretend(deviceMain, `${machine.root}/gone/main.js`)
    expect(await codes()).toEqual(['main_missing'])
    pretend(deviceMain, join(import.meta.dirname, 'machine.ts'))
    expect(await codes()).toEqual(['program_changed'])
    pretend(`${machine.binDir}:`, '')
    const { problems } = await machine.done('status')
    expect(problems.map(({ code }) => code)).toEqual(['path_changed'])
    expect(problems[0]!.message).toContain(join(machine.binDir, 'claude'))
    expect(await machine.done('install')).toMatchObject({ changed: true })
    expect(await codes()).toEqual([])
    writeFileSync(machine.unitFile, '[Service]\nExecStart=/bin/true\n')
    expect(await codes()).toEqual(['unreadable'])
  })

  it('tells when the service has given up, and when another daemon runs', async () => {
    machine.enrol()
    await machine.done('install')
    await machine.done('stop')
    const program = await startByHand()
    expect((await machine.done('status')).problems.map(({ code }) => code)).toEqual(['other_daemon'])
    const { pid } = await machine.done('start')
    expect(await program.exited).toEqual({ code: 0, signal: null })
    expect(pid).toBe(machine.daemonPid)
    await machine.done('stop')
    rmSync(join(machine.stateDir, 'device-token'))
    expect(await machine.refused('start')).toBe('daemon_silent')
    const { problems } = await machine.done('status')
    expect(problems).toMatchObject([{ code: 'failed', message: expect.stringContaining('status 78') as string }])
  })

  it('waits before it starts a daemon that keeps crashing, until a person starts it', async () => {
    machine.enrol()
    await machine.done('install')
    for (let crash = 1; crash <= 3; crash++) {
      const pid = machine.daemonPid!
      process.kill(pid, 'SIGKILL')
      await waitFor(() => !existsSync(`/proc/${pid}`), 'the daemon is gone')
      // As systemd does after such an end, by itself.
      execFileSync(join(machine.binDir, 'systemctl'), ['--user', 'start', 'svc-device.service'], { env: machine.env })
      if (crash < 3) await waitFor(() => ![null, pid].includes(machine.daemonPid), 'a daemon runs again')
    }
    const journal = () => readFileSync(join(machine.stubDir, 'journal'), 'utf8')
    await waitFor(() => journal().includes('ended unexpectedly 3 times'), 'the daemon waits')
    expect(journal()).toContain('waiting 10 s')
    expect((await machine.done('status')).problems.map(({ code }) => code)).toEqual(['crash_loop'])
    expect((await machine.done('restart')).pid).toBe(machine.daemonPid)
    expect(journal().match(/waiting/g)).toHaveLength(1)
    expect((await machine.done('status')).problems).toEqual([])
  })
})
