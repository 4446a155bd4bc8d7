import { existsSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { serviceUnit, systemUnitOf } from '../../shared/device/service-file.ts'
import { shownProperties, stateFromSystemctl } from '../../shared/lib/unit-words.ts'
import { ServiceError } from './service-error.ts'
import type { ServiceManager } from './service-manager.ts'
import { readUnit, unitText } from './systemd-unit.ts'
import { mustRun, type RunTool } from './tool.ts'

export interface SystemdOptions {
  file: string
  run: RunTool
  userName: string
  /** The account of a service of the machine; null: the service is the person's own. */
  account: string | null
}

/** The systemd of the person, or that of the machine, asked by systemctl and loginctl. */
export function systemdManager({ file, run, userName, account }: SystemdOptions): ServiceManager {
  const scope = account === null ? ['--user'] : []
  const unit = account === null ? serviceUnit : systemUnitOf(account)
  const systemctl = (...args: string[]) => mustRun(run, 'systemctl', [...scope, ...args])
  const state = async () =>
    stateFromSystemctl((await run('systemctl', [...scope, 'show', unit, shownProperties])).stdout)
  return {
    kind: 'systemd',
    account,
    output: `${account === null ? 'journalctl --user' : 'sudo journalctl'} -u ${unit.replace(/\.service$/, '')} -n 20`,
    file,
    write: unitText,
    read: readUnit,
    reach: () => (account === null ? reach(run, userName) : reachMachine(run)),
    state,
    async enable() {
      await systemctl('daemon-reload')
      if (!(await state()).loaded) throw notLoaded(file, [...scope, 'status', unit])
      await systemctl('enable', unit)
    },
    start: async () => void (await systemctl('start', unit)),
    async stop() {
      if ((await state()).loaded) await systemctl('stop', unit)
    },
    async disable() {
      if (existsSync(file)) return void (await systemctl('disable', '--now', unit))
      if ((await state()).running) await systemctl('stop', unit)
      // `enable` made it; systemctl does not remove it without the unit.
      const target = account === null ? 'default' : 'multi-user'
      rmSync(join(dirname(file), `${target}.target.wants`, unit), { force: true })
    },
    async reload() {
      await systemctl('daemon-reload')
      // A unit that failed is remembered although its file is gone. There may be none.
      await run('systemctl', [...scope, 'reset-failed', unit])
    },
    async lingering() {
      // The machine's systemd is there without anybody who is logged in.
      if (account !== null) return null
      const { status, stdout } = await run('loginctl', ['show-user', userName, '--property=Linger', '--value'])
      return status === null ? null : status === 0 && stdout.trim() === 'yes'
    },
    setLingering: async (on) =>
      (await run('loginctl', [on ? 'enable-linger' : 'disable-linger', userName])).status === 0,
  }
}

async function reach(run: RunTool, userName: string): Promise<void> {
  const { status, said } = await run('systemctl', ['--user', 'show-environment'])
  if (status === 0) return
  if (status === null)
    throw new ServiceError(
      'no_service_manager',
      `This machine has no systemd that could keep the device manager running (systemctl: ${said}).`,
      'Start it with `svc device connect`, or let a supervisor of your own keep `svc-device run` running.',
    )
  throw new ServiceError(
    'no_service_manager',
    `The systemd of user ${userName} cannot be reached: ${said}`,
    `Log in as ${userName} itself (by ssh or on the screen, not by su or sudo) and type the command again. Where nobody logs in, first type: sudo loginctl enable-linger ${userName}`,
  )
}

async function reachMachine(run: RunTool): Promise<void> {
  const { status, said } = await run('systemctl', ['show-environment'])
  if (status === 0) return
  throw new ServiceError(
    'no_service_manager',
    `There is no systemd of this machine that could keep the device manager running (systemctl show-environment: ${said}).`,
    'Let a supervisor of your own keep `svc-device run` running under the account; it must not start it again after status 78.',
  )
}

function notLoaded(file: string, status: readonly string[]): ServiceError {
  return new ServiceError(
    'not_loaded',
    `systemd does not find the unit in ${file}.`,
    `It looks elsewhere when it was started with another HOME or XDG_CONFIG_HOME, and finds no unit that is masked: see \`systemctl --user show-environment\` and \`systemctl ${status.join(' ')}\`.`,
  )
}
