import { existsSync } from 'node:fs'
import { isDisabledIn, stateFromLaunchctl } from '../../shared/lib/launchd-words.ts'
import type { World } from '../../shared/lib/world.ts'
import { serviceLabel } from '../../shared/device/service-file.ts'
import { stopSeconds } from './definition.ts'
import { plistText, readPlist } from './launchd-plist.ts'
import { ServiceError } from './service-error.ts'
import type { ServiceManager, ServiceState } from './service-manager.ts'
import { mustRun, type RunTool } from './tool.ts'

export interface LaunchdOptions {
  file: string
  /** Takes the output of the job. */
  outFile: string
  run: RunTool
  world: World
  uid: number
}

const pollMs = 200

/** launchd's domain of a person who is logged in on the screen: only there a keychain is open. */
export function launchdManager({ file, outFile, run, world, uid }: LaunchdOptions): ServiceManager {
  const domain = `gui/${uid}`
  const target = `${domain}/${serviceLabel}`
  const launchctl = (...args: string[]) => mustRun(run, 'launchctl', args)

  const state = async (): Promise<ServiceState> => {
    const [shown, disabled] = [
      await run('launchctl', ['print', target]),
      await run('launchctl', ['print-disabled', domain]),
    ]
    return {
      ...stateFromLaunchctl(shown.status === 0 ? shown.stdout : null),
      enabled: existsSync(file) && !isDisabledIn(disabled.stdout, serviceLabel),
    }
  }

  /** `bootout` answers before the job has ended, and a `bootstrap` in between fails. */
  const unload = async () => {
    if (!(await state()).loaded) return
    const { said } = await run('launchctl', ['bootout', target])
    const giveUpAt = world.monotonic() + (stopSeconds + 15) * 1000
    while ((await state()).loaded) {
      if (world.monotonic() > giveUpAt)
        throw new ServiceError(
          'daemon_stays',
          `launchd did not end ${target}: ${said}`,
          `See: launchctl print ${target}`,
        )
      await world.sleep(pollMs)
    }
  }

  return {
    kind: 'launchd',
    account: null,
    output: `tail ${outFile}`,
    file,
    write: plistText,
    read: readPlist,
    reach: () => reach(run, domain),
    state,
    enable: async () => void (await launchctl('enable', target)),
    start: async () =>
      void (await ((await state()).loaded ? launchctl('kickstart', target) : launchctl('bootstrap', domain, file))),
    stop: unload,
    disable: unload,
    reload: async () => undefined,
    lingering: async () => null,
    setLingering: async () => false,
  }
}

async function reach(run: RunTool, domain: string): Promise<void> {
  const { status, said } = await run('launchctl', ['print', domain])
  if (status === 0) return
  throw new ServiceError(
    'no_service_manager',
    `There is no session on the screen (${domain}) in which launchd could run the device manager: ${said}`,
    'Log in on the screen of this Mac as this user and type the command there; by ssh alone it works only while that session lasts.',
  )
}
