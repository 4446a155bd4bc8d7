import { join } from 'node:path'
import { appNames, configFiles, dataFiles, stateFiles } from '../../shared/lib/places.ts'
import type { CliEnvironment } from './environment.ts'

// Paths on this machine. The platform's usual folders are looked up only when no variable names one.

export async function loginPath(env: CliEnvironment): Promise<string> {
  return join(env.configDir ?? (await usual(appNames.svc)).config, configFiles.login)
}

export async function settingsPath(env: CliEnvironment): Promise<string> {
  return join(env.configDir ?? (await usual(appNames.svc)).config, configFiles.settings)
}

export async function serverPlaces(env: CliEnvironment) {
  const dir = env.dataDir ?? (await usual(appNames.svc)).data
  return { dir, server: join(dir, dataFiles.server), loginToken: join(dir, dataFiles.loginToken) }
}

export async function devicePlaces(env: CliEnvironment) {
  const dir = env.stateDir ?? (await usual(appNames.device)).data
  return {
    dir,
    identity: join(dir, stateFiles.identity),
    token: join(dir, stateFiles.token),
    previous: join(dir, stateFiles.previous),
    daemon: join(dir, stateFiles.daemon),
    refused: join(dir, stateFiles.refused),
    socket: join(dir, stateFiles.socket),
    logs: join(dir, stateFiles.logs),
    daemonLog: join(dir, stateFiles.daemonLog),
    daemonOut: join(dir, stateFiles.daemonOut),
  }
}
export type DevicePlaces = Awaited<ReturnType<typeof devicePlaces>>

async function usual(name: string) {
  const { default: envPaths } = await import('env-paths')
  return envPaths(name, { suffix: '' })
}
