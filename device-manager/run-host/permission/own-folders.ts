import envPaths from 'env-paths'
import { appNames, placeVariables } from '../../../shared/lib/places.ts'

/** Where svc itself keeps the login, the device's token and journal, and a server's database on this machine. */
export function ownFolders(stateDir: string, env: Readonly<Record<string, string | undefined>>): string[] {
  const usual = envPaths(appNames.svc, { suffix: '' })
  return [
    stateDir,
    envPaths(appNames.device, { suffix: '' }).data,
    usual.config,
    usual.data,
    ...[env[placeVariables.config], env[placeVariables.data]].filter((folder) => folder !== undefined),
  ]
}
