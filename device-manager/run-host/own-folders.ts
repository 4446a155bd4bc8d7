import envPaths from 'env-paths'
import { appNames, placeVariables } from '../../shared/lib/places.ts'
import type { WallSpec } from '../wall/spec.ts'

/** Returns svc's own folders on this machine: of the login, of the device's token and journal, of a server's database. */
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

/** Returns these, and what else the wall of the run hides. */
export const allOwnFolders = (stateDir: string, wall: WallSpec | null): string[] => [
  ...ownFolders(stateDir, process.env),
  ...(wall?.hidden ?? []),
]
