import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'plist'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestMachine } from './machine.ts'

/** The program as on a Mac whose person is user 501: its own code within this process, launchctl and the daemon as others. */
describe.runIf(process.platform === 'linux')('svc-device service under launchd', () => {
  let machine: TestMachine
  beforeEach(() => {
    machine = new TestMachine('darwin')
    machine.enrol()
  })
  afterEach(() => machine.close())

  it('installs, does nothing the second time, uninstalls, and does nothing the second time', async () => {
    const installed = await machine.done('install')
    expect(installed).toMatchObject({ manager: 'launchd', file: machine.plistFile, changed: true, warnings: [] })
    expect(installed.pid).toBe(machine.daemonPid)
    expect(machine.changes()).toEqual([
      'launchctl enable gui/501/dev.svc.device',
      `launchctl bootstrap gui/501 ${machine.plistFile}`,
    ])
    expect(statSync(machine.plistFile).mode & 0o777).toBe(0o644)
    const status = { enabled: true, running: true, pid: installed.pid, lingering: null, problems: [] }
    expect(await machine.done('status')).toMatchObject(status)
    expect(await machine.done('install')).toMatchObject({ changed: false, pid: installed.pid })
    expect(machine.changes()).toEqual([])

    // launchd leaves a daemon down when starting it again would not help. The place is taken, so that a second daemon ends
    // with what is 78 elsewhere.
    const plist = parse(readFileSync(machine.plistFile, 'utf8')) as { ProgramArguments: string[] }
    const [program, ...args] = plist.ProgramArguments
    const ended = await machine.run(program!, args)
    expect(ended).toMatchObject({ status: 0, stderr: expect.stringContaining('Another daemon') as string })
    const elsewhere = await machine.run(program!, [...args.slice(0, -1), 'systemd'])
    expect(elsewhere.status).toBe(78)

    expect(await machine.done('uninstall')).toEqual({ file: machine.plistFile, changed: true })
    expect(machine.daemonPid).toBeNull()
    expect(existsSync(machine.plistFile)).toBe(false)
    expect(await machine.done('uninstall')).toMatchObject({ changed: false })
    expect(machine.changes()).toEqual(['launchctl bootout gui/501/dev.svc.device'])
  })

  // The start and the end of the daemon are shown above; this is about what is left there by a person or an older version.
  if (isLong)
    it('starts a service that a person had disabled, cuts its output, and starts one anew that was changed', async () => {
      writeFileSync(join(machine.stubDir, 'disabled'), '')
      // launchd never cuts the file that takes the output.
      const output = join(machine.stateDir, 'logs', 'daemon.out')
      mkdirSync(dirname(output), { mode: 0o700 })
      writeFileSync(output, 'x'.repeat(1024 * 1024 + 1))
      const first = await machine.done('install')
      expect(first).toMatchObject({ changed: true })
      expect(await machine.done('status')).toMatchObject({ enabled: true, problems: [] })
      await waitFor(() => statSync(output).size < 1024, 'the output was cut')

      writeFileSync(machine.plistFile, readFileSync(machine.plistFile, 'utf8').replace('<integer>10<', '<integer>11<'))
      const second = await machine.done('install')
      expect(second).toMatchObject({ changed: true, tookOver: null })
      expect(second.pid).not.toBe(first.pid)

      await machine.done('stop')
      expect(machine.daemonPid).toBeNull()
      expect((await machine.done('start')).pid).toBe(machine.daemonPid)
    })

  it.each(['enable', 'bootstrap'])('leaves nothing behind when `%s` fails', async (verb) => {
    machine.fail(verb)
    expect(await machine.service('install')).toMatchObject({ ok: false, error: { code: 'tool_failed' } })
    expect(machine.homeFiles()).toEqual([])
    expect(machine.daemonPid).toBeNull()
  })

  it('refuses where nobody is logged in on the screen', async () => {
    machine.fail('print', 'Could not find domain for user gui: 501\n')
    expect(await machine.service('install')).toMatchObject({ ok: false, error: { code: 'no_service_manager' } })
    expect(machine.homeFiles()).toEqual([])
  })
})
