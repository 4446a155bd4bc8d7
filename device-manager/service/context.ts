import { homedir } from 'node:os'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serviceFileOf, systemServiceFileOf, systemUnitFolder } from '../../shared/device/service-file.ts'
import { appNames } from '../../shared/lib/places.ts'
import { programUrl } from '../../shared/lib/program-file.ts'
import type { World } from '../../shared/lib/world.ts'
import { account } from '../setup/account.ts'
import { readConfig } from '../setup/config.ts'
import { placesIn, type Places } from '../setup/places.ts'
import { accountStateFolder, refuseFolderOfOthers } from './account-folder.ts'
import { findAccount, shellOf } from './account.ts'
import { defineService, type ServiceDefinition } from './definition.ts'
import { launchdManager } from './launchd.ts'
import { ServiceError } from './service-error.ts'
import type { ServiceManager } from './service-manager.ts'
import { ownStateFolder, type ServiceStateFolder } from './state-folder.ts'
import { systemdManager } from './systemd.ts'
import { toolRunner } from './tool.ts'

/** All that the actions on a service work with. */
export interface ServiceContext {
  manager: ServiceManager
  places: Places
  state: ServiceStateFolder
  definition: ServiceDefinition
  /** Whether this process may change the service. */
  mayChange: boolean
  /** A service that keeps this account's device running already, and how it is uninstalled; null: there is none. */
  other: { file: string; uninstall: string } | null
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
  /** Where units of the machine stand. */
  unitFolder: string
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
    unitFolder: systemUnitFolder,
  }
}

/** That of the person who types the command, whoever installed it. Fails where there are no background services. */
export function serviceContext(system: ServiceSystem): ServiceContext {
  const { platform, uid, world, execPath, main, umask, userName } = system
  const config = readConfig(system.env, { homeDir: homedir(), shell: null })
  const places = placesIn(config.stateDir)
  const own = serviceFileOf({ homeDir: config.homeDir, platform })
  if (own === null)
    throw new ServiceError(
      'unsupported_platform',
      `There is no background service for ${platform}.`,
      'Start the device manager with `svc device connect`.',
    )
  const env = withRuntimeDir(system.env, uid)
  const run = toolRunner(env)
  const ofMachine = systemServiceFileOf({ account: userName, platform, folder: system.unitFolder })
  const isOfMachine = ofMachine !== null && !existsSync(own) && existsSync(ofMachine)
  const { outFile, ...definition } = defineService({
    env: system.env,
    execPath,
    main,
    homeDir: config.homeDir,
    places,
    umask,
    account: isOfMachine ? userName : null,
  })
  return {
    manager:
      platform === 'darwin'
        ? launchdManager({ file: own, outFile, run, world, uid })
        : systemdManager({ file: isOfMachine ? ofMachine : own, run, userName, account: definition.account }),
    places,
    state: ownStateFolder({ places, world, program: definition, env }),
    definition: { ...definition, outFile },
    mayChange: !isOfMachine || uid === 0,
    other: null,
    world,
  }
}

/** A service of the machine for the device of an account. */
export async function machineContext(system: ServiceSystem, name: string): Promise<ServiceContext> {
  const { platform, uid, world, execPath, main } = system
  const file = systemServiceFileOf({ account: name, platform, folder: system.unitFolder })
  if (file === null)
    throw new ServiceError(
      'unsupported_platform',
      `There is no service of the machine for ${platform}.`,
      'Log in as the account and type: svc device install-service',
    )
  if (uid !== 0)
    throw new ServiceError(
      'not_root',
      'A service of the machine is installed by root.',
      `sudo svc device install-service --system --user ${name}`,
    )
  const run = toolRunner(system.env)
  const found = await findAccount(name, run)
  const { homeDir } = found
  const stateDir = system.env['SVC_STATE_DIR'] ?? join(homeDir, '.local/share', appNames.device)
  refuseFolderOfOthers(found, stateDir)
  const places = placesIn(stateDir)
  const own = serviceFileOf({ homeDir, platform })
  return {
    manager: systemdManager({ file, run, userName: name, account: name }),
    places,
    state: accountStateFolder({ account: found, stateDir, program: { node: execPath, main } }),
    definition: defineService({
      env: ofMachine(system.env, homeDir),
      ...(shellOf(found) === found.shell ? {} : { shell: shellOf(found) }),
      execPath,
      main,
      homeDir,
      places,
      umask: 0o022,
      account: name,
    }),
    mayChange: true,
    other:
      own === null || !existsSync(own)
        ? null
        : { file: own, uninstall: `sudo -iu ${name} svc device uninstall-service` },
    world,
  }
}

/** What the shell of root says of the machine. Its folders are root's, and where its terminals lie is nothing to the account. */
function ofMachine(env: ServiceSystem['env'], homeDir: string): ServiceSystem['env'] {
  const kept = Object.entries(env).filter(
    ([name]) => !/^(?:XDG_|TMUX_|SCREENDIR|ZELLIJ_|SVC_CONFIG_DIR|SVC_DATA_DIR)/.test(name),
  )
  const path = (env['PATH'] ?? '').split(':').filter((folder) => !/^\/(?:root|home)(?:\/|$)/.test(folder))
  return { ...Object.fromEntries(kept), PATH: [join(homeDir, '.local/bin'), ...path].join(':') }
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
  const words = manager.account === null ? '' : ` --system --user ${manager.account}`
  throw new ServiceError(
    'other_state_dir',
    `The service in ${manager.file} is that of another device, in ${installed.stateDir}.`,
    `Uninstall that one first: ${words === '' ? '' : 'sudo '}SVC_STATE_DIR='${installed.stateDir}' svc device uninstall-service${words}`,
  )
}

/** Fails where the service is the machine's and this process is not root's. */
export function mustBeAllowed(
  { manager, mayChange }: ServiceContext,
  verb: 'install' | 'uninstall' | 'start' | 'stop' | 'restart',
): void {
  if (mayChange) return
  const isFile = verb === 'install' || verb === 'uninstall'
  throw new ServiceError(
    'not_root',
    `The service of this device is one of the machine (${manager.file}), which root alone may change.`,
    isFile
      ? `sudo svc device ${verb}-service --system --user ${manager.account}`
      : `sudo systemctl ${verb} svc-device@${manager.account}`,
  )
}
