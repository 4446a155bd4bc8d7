import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Program, waitFor } from '../../kit/programs.ts'
import { deviceMain, TestMachine } from './machine.ts'

const isLinux = process.platform === 'linux'
let machine: TestMachine

async function startByHand(): Promise<Program> {
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

const problemsNow = async () => (await machine.done('status')).problems.map(({ code }) => code)

describe.runIf(isLinux)('svc-device service under systemd', () => {
  beforeEach(() => {
    machine = new TestMachine()
  })
  afterEach(() => machine.close())

  it('installs, does nothing the second time, uninstalls, and does nothing the second time', async () => {
    machine.enrol()
    const reply = await machine.program('install')
    const installed = reply.ok ? reply.value : expect.fail(reply.error.message)
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

  it('takes the place of a daemon that was started by hand, and leaves lingering on that was on before', async () => {
    machine.enrol()
    writeFileSync(join(machine.stubDir, 'linger'), '')
    const program = await startByHand()
    const installed = await machine.done('install')
    expect(installed.tookOver).toBe(program.pid)
    expect(await program.exited).toEqual({ code: 0, signal: null })
    expect(installed.pid).toBe(machine.daemonPid)
    expect(installed.pid).not.toBe(program.pid)
    await machine.done('uninstall')
    expect(machine.isLingering).toBe(true)
  })

  it('installs without lingering where that is refused, and says so', async () => {
    machine.enrol()
    machine.fail('enable-linger', 'Could not enable linger: Access denied\n')
    const { warnings } = await machine.done('install')
    expect(warnings.map(({ code }) => code)).toEqual(['not_lingering'])
    expect(await problemsNow()).toEqual(['not_lingering'])
    await machine.done('uninstall')
    expect(machine.changes()).not.toContainEqual(expect.stringMatching(/disable-linger/))
  })

  it('leaves nothing behind when a step fails', async () => {
    machine.enrol()
    const program = await startByHand()
    for (const verb of ['daemon-reload', 'enable', 'start']) {
      machine.fail(verb)
      const reply = await machine.service('install')
      expect(reply, verb).toMatchObject({ ok: false, error: { code: 'tool_failed' } })
      expect(JSON.stringify(reply)).toContain(`${verb} is made to fail`)
      expect(machine.homeFiles(), verb).toEqual([])
      expect(machine.isLingering, verb).toBe(false)
      // A daemon runs as before: the same one, or one in its place when it had been stopped already.
      await waitFor(() => machine.daemonPid !== null, 'a daemon runs again')
      if (verb === 'start') expect(machine.daemonPid).not.toBe(program.pid)
      else expect(machine.daemonPid, verb).toBe(program.pid)
      if (verb !== 'daemon-reload')
        expect(await machine.done('status'), verb).toMatchObject({ installed: false, problems: [] })
      machine.heal(verb)
    }
  })

  it('refuses to install with a typed error and without a trace', async () => {
    expect(await machine.refused('install')).toBe('not_connected')
    machine.enrol()
    expect(await machine.refused('restart')).toBe('not_installed')
    machine.fail('show-environment', 'Failed to connect to bus: No medium found\n')
    expect(await machine.refused('install')).toBe('no_service_manager')
    expect(machine.changes()).toEqual([])
    expect(machine.homeFiles()).toEqual([])
    rmSync(join(machine.binDir, 'systemctl'))
    const withoutSystemd = { PATH: machine.binDir }
    expect(await machine.refused('install', withoutSystemd)).toBe('no_service_manager')
    expect(await machine.done('uninstall', withoutSystemd)).toMatchObject({ changed: false })
  })
})

/** One service for all of these: each leaves it with a daemon that runs, the last one alone does not. */
describe.runIf(isLinux)('an installed service under systemd', () => {
  beforeAll(async () => {
    machine = new TestMachine()
    machine.enrol()
    await machine.done('install')
  })
  afterAll(() => machine.close())

  it('tells when Node, svc or the PATH moved after the install', async () => {
    const claude = machine.addProgram('claude')
    const text = readFileSync(machine.unitFile, 'utf8')
    const pretend = (from: string, to: string) => writeFileSync(machine.unitFile, text.replaceAll(from, to))
    expect(await problemsNow()).toEqual([])
    pretend(`"${process.execPath}"`, `"${machine.root}/gone/node"`)
    expect(await problemsNow()).toEqual(['node_missing'])
    pretend(deviceMain, `${machine.root}/gone/main.js`)
    expect(await problemsNow()).toEqual(['main_missing'])
    pretend(deviceMain, join(import.meta.dirname, 'machine.ts'))
    expect(await problemsNow()).toEqual(['program_changed'])
    pretend(`${machine.binDir}:`, '')
    const { problems } = await machine.done('status')
    expect(problems.map(({ code }) => code)).toEqual(['path_changed'])
    expect(problems[0]!.message).toContain(claude)
    writeFileSync(machine.unitFile, '[Service]\nExecStart=/bin/true\n')
    expect(await problemsNow()).toEqual(['unreadable'])
    expect(await machine.done('install')).toMatchObject({ changed: true })
    expect(await problemsNow()).toEqual([])
    rmSync(claude)
  })

  it('does not touch the service of another device', async () => {
    const pid = machine.daemonPid
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
    const first = machine.daemonPid
    const second = await machine.done('restart')
    expect(second.pid).not.toBe(first)
    expect(await machine.done('start')).toMatchObject({ pid: second.pid })
    expect(await machine.done('stop')).toEqual({ stopped: true })
    expect(machine.daemonPid).toBeNull()
    expect(await problemsNow()).toEqual(['not_running'])
    expect((await machine.done('start')).pid).toBe(machine.daemonPid)
  })

  it('puts the earlier unit back when the new one does not start', async () => {
    const before = readFileSync(machine.unitFile, 'utf8')
    machine.fail('start')
    expect(await machine.refused('install', { SVC_LOG_LEVEL: 'debug' })).toBe('tool_failed')
    expect(readFileSync(machine.unitFile, 'utf8')).toBe(before)
    machine.heal('start')
    const { pid } = await machine.done('start')
    expect(machine.daemonPid).toBe(pid)
  })

  it('waits before it starts a daemon that keeps crashing, until a person starts it', async () => {
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
    expect(await problemsNow()).toEqual(['crash_loop'])
    expect((await machine.done('restart')).pid).toBe(machine.daemonPid)
    expect(journal().match(/waiting/g)).toHaveLength(1)
    expect(await problemsNow()).toEqual([])
  })

  it('tells when the service has given up, and when another daemon runs', async () => {
    await machine.done('stop')
    const program = await startByHand()
    expect(await problemsNow()).toEqual(['other_daemon'])
    const { pid } = await machine.done('start')
    expect(await program.exited).toEqual({ code: 0, signal: null })
    expect(pid).toBe(machine.daemonPid)
    await machine.done('stop')
    rmSync(join(machine.stateDir, 'device-token'))
    expect(await machine.refused('start')).toBe('daemon_silent')
    const { problems } = await machine.done('status')
    expect(problems).toMatchObject([{ code: 'failed', message: expect.stringContaining('status 78') as string }])
  })
})
