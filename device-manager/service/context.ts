import { homedir } from 'node:os'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { serviceFileOf } from '../../shared/device/service-file.ts'
import { programUrl } from '../../shared/lib/program-file.ts'
import type { World } from '../../shared/lib/world.ts'
import { account } from '../setup/account.ts'
import { readConfig } from '../setup/config.ts'
import { placesIn, type Places } from '../setup/places.ts'
import { defineService, type ServiceDefinition } from './definition.ts'
import { launchdManager } from './launchd.ts'
import { ServiceError } from './service-error.ts'
import type { ServiceManager } from './service-manager.ts'
import { systemdManager } from './systemd.ts'
import { toolRunner } from './tool.ts'

/** All that the actions on a service work with. */
export interface ServiceContext {
  manager: ServiceManager
  places: Places
  definition: ServiceDefinition
  env: Readonly<Record<string, string | undefined>>
  world: World
}

export interface ServiceSystem {
  env: Readonly<Record<string, string | undefined>>
  platform: string
  uid: number
  userName: string
  execPath: string
  main: string
  umask: number
  world: World
}

/** This process's own surroundings. */
export function thisSystem(world: World): ServiceSystem {
  return {
    env: process.env,
    platform: process.platform,
    uid: process.getuid?.() ?? 0,
    userName: account().userName,
    execPath: process.execPath,
    main: fileURLToPath(programUrl('device-manager')),
    umask: process.umask(),
    world,
  }
}

/** Fails where there are no background services. */
export function serviceContext(system: ServiceSystem): ServiceContext {
  const { platform, uid, world, execPath, main, umask } = system
  const config = readConfig(system.env, { homeDir: homedir(), shell: null })
  const places = placesIn(config.stateDir)
  const file = serviceFileOf({ homeDir: config.homeDir, platform })
  if (file === null)
    throw new ServiceError(
      'unsupported_platform',
      `There is no background service for ${platform}.`,
      'Start the device manager with `svc device connect`.',
    )
  const env = withRuntimeDir(system.env, uid)
  const run = toolRunner(env)
  return {
    manager:
      platform === 'darwin'
        ? launchdManager({ file, run, world, uid })
        : systemdManager({ file, run, userName: system.userName }),
    places,
    definition: defineService({ env: system.env, execPath, main, homeDir: config.homeDir, places, umask }),
    env,
    world,
  }
}

/** A shell that did not come from a login (cron, su) lacks the variable by which the person's own systemd is found. */
function withRuntimeDir(env: ServiceSystem['env'], uid: number): ServiceSystem['env'] {
  const usual = `/run/user/${uid}`
  if (env['XDG_RUNTIME_DIR'] !== undefined || !existsSync(`${usual}/bus`)) return env
  return { ...env, XDG_RUNTIME_DIR: usual }
}

/** The text of the service's file, or null. */
export function installedText({ manager }: Pick<ServiceContext, 'manager'>): string | null {
  try {
    return readFileSync(manager.file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** A user has one service. That of another state folder is not touched. */
export function refuseOtherStateDir({ manager, places }: ServiceContext, text: string | null): void {
  const installed = text === null ? null : manager.read(text)
  if (installed === null || installed.stateDir === places.stateDir) return
  throw new ServiceError(
    'other_state_dir',
    `The service in ${manager.file} is that of another device, in ${installed.stateDir}.`,
    `Uninstall that one first: SVC_STATE_DIR='${installed.stateDir}' svc device uninstall-service`,
  )
}
