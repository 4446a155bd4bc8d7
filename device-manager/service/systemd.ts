import { existsSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { serviceUnit } from '../../shared/device/service-file.ts'
import { shownProperties, stateFromSystemctl } from '../../shared/lib/unit-words.ts'
import { ServiceError } from './service-error.ts'
import type { ServiceManager } from './service-manager.ts'
import { readUnit, unitText } from './systemd-unit.ts'
import { mustRun, type RunTool } from './tool.ts'

export interface SystemdOptions {
  file: string
  run: RunTool
  userName: string
}

/** The person's systemd, asked by systemctl and loginctl. */
export function systemdManager({ file, run, userName }: SystemdOptions): ServiceManager {
  const systemctl = (...args: string[]) => mustRun(run, 'systemctl', ['--user', ...args])
  const state = async () =>
    stateFromSystemctl((await run('systemctl', ['--user', 'show', serviceUnit, shownProperties])).stdout)
  return {
    kind: 'systemd',
    file,
    write: unitText,
    read: readUnit,
    reach: () => reach(run, userName),
    state,
    async enable() {
      await systemctl('daemon-reload')
      if (!(await state()).loaded) throw notLoaded(file)
      await systemctl('enable', serviceUnit)
    },
    start: async () => void (await systemctl('start', serviceUnit)),
    async stop() {
      if ((await state()).loaded) await systemctl('stop', serviceUnit)
    },
    async disable() {
      if (existsSync(file)) return void (await systemctl('disable', '--now', serviceUnit))
      if ((await state()).running) await systemctl('stop', serviceUnit)
      // `enable` made it; systemctl does not remove it without the unit.
      rmSync(join(dirname(file), 'default.target.wants', serviceUnit), { force: true })
    },
    async reload() {
      await systemctl('daemon-reload')
      // A unit that failed is remembered although its file is gone. There may be none.
      await run('systemctl', ['--user', 'reset-failed', serviceUnit])
    },
    async lingering() {
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

function notLoaded(file: string): ServiceError {
  return new ServiceError(
    'not_loaded',
    `systemd does not find the unit in ${file}.`,
    'It looks elsewhere when it was started with another HOME or XDG_CONFIG_HOME, and finds no unit that is masked: see `systemctl --user show-environment` and `systemctl --user status svc-device`.',
  )
}
