import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'plist'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ServiceAction, ServiceValue } from '../../../shared/device/service.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { runServiceCommand } from '../../../device-manager/service/command.ts'
import { waitFor } from '../../kit/programs.ts'
import { deviceMain, TestMachine, type Reply } from './machine.ts'

/** The program as on a Mac whose person is user 501: its own code within this process, launchctl and the daemon as others. */
describe.runIf(process.platform === 'linux')('svc-device service under launchd', () => {
  let machine: TestMachine
  beforeEach(() => {
    machine = new TestMachine()
  })
  afterEach(() => machine.close())

  const reply = async <A extends ServiceAction>(action: A): Promise<Reply<A>> => {
    const system = {
      env: machine.env,
      platform: 'darwin',
      uid: 501,
      userName: 'test',
      execPath: process.execPath,
      main: deviceMain,
      umask: 0o022,
      world: realWorld,
    }
    return (await runServiceCommand([action], system)).reply as Reply<A>
  }
  const done = async <A extends ServiceAction>(action: A): Promise<ServiceValue<A>> => {
    const answer = await reply(action)
    if (!answer.ok) throw new Error(`${action}: ${answer.error.code}: ${answer.error.message}`)
    return answer.value
  }

  it('installs, does nothing the second time, uninstalls, and does nothing the second time', async () => {
    machine.enrol()
    const installed = await done('install')
    expect(installed).toMatchObject({ manager: 'launchd', file: machine.plistFile, changed: true, warnings: [] })
    expect(installed.pid).toBe(machine.daemonPid)
    expect(machine.changes()).toEqual([
      'launchctl enable gui/501/dev.svc.device',
      `launchctl bootstrap gui/501 ${machine.plistFile}`,
    ])
    expect(statSync(machine.plistFile).mode & 0o777).toBe(0o644)
    const status = { enabled: true, running: true, pid: installed.pid, lingering: null, problems: [] }
    expect(await done('status')).toMatchObject(status)
    expect(await done('install')).toMatchObject({ changed: false, pid: installed.pid })
    expect(machine.changes()).toEqual([])
    expect(await done('uninstall')).toEqual({ file: machine.plistFile, changed: true })
    expect(machine.daemonPid).toBeNull()
    expect(existsSync(machine.plistFile)).toBe(false)
    expect(await done('uninstall')).toMatchObject({ changed: false })
    expect(machine.changes()).toEqual(['launchctl bootout gui/501/dev.svc.device'])
  })

  it('starts a service anew that was changed, and one that a person had disabled', async () => {
    machine.enrol()
    const first = await done('install')
    writeFileSync(machine.plistFile, readFileSync(machine.plistFile, 'utf8').replace('<integer>10<', '<integer>11<'))
    const second = await done('install')
    expect(second).toMatchObject({ changed: true, tookOver: null })
    expect(second.pid).not.toBe(first.pid)
    await done('uninstall')
    writeFileSync(join(machine.stubDir, 'disabled'), '')
    expect(await done('install')).toMatchObject({ changed: true })
    expect(await done('status')).toMatchObject({ enabled: true, problems: [] })
  })

  it.each(['enable', 'bootstrap'])('leaves nothing behind when `%s` fails', async (verb) => {
    machine.enrol()
    machine.fail(verb)
    expect(await reply('install')).toMatchObject({ ok: false, error: { code: 'tool_failed' } })
    expect(machine.homeFiles()).toEqual([])
    expect(machine.daemonPid).toBeNull()
  })

  it('refuses where nobody is logged in on the screen', async () => {
    machine.enrol()
    machine.fail('print', 'Could not find domain for user gui: 501\n')
    expect(await reply('install')).toMatchObject({ ok: false, error: { code: 'no_service_manager' } })
    expect(machine.homeFiles()).toEqual([])
  })

  it('runs a daemon that launchd leaves down when starting it again would not help', async () => {
    machine.enrol()
    await done('install')
    const plist = parse(readFileSync(machine.plistFile, 'utf8')) as { ProgramArguments: string[] }
    // The place is taken, so that a second daemon ends with what is 78 elsewhere.
    const [program, ...args] = plist.ProgramArguments
    const ended = await machine.run(program!, args)
    expect(ended).toMatchObject({ status: 0, stderr: expect.stringContaining('Another daemon') as string })
    const elsewhere = await machine.run(program!, [...args.slice(0, -1), 'systemd'])
    expect(elsewhere.status).toBe(78)
  })

  it('cuts the file that takes the output, which launchd never does', async () => {
    machine.enrol()
    await done('install')
    await done('stop')
    const output = join(machine.stateDir, 'logs', 'daemon.out')
    writeFileSync(output, 'x'.repeat(1024 * 1024 + 1))
    await done('start')
    await waitFor(() => statSync(output).size < 1024, 'the output was cut')
  })
})
