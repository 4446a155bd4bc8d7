import { existsSync, readFileSync } from 'node:fs'
import { serviceFileOf, systemServiceFileOf } from '../../shared/device/service-file.ts'

interface ServicePlace {
  homeDir: string
  platform: string
  userName: string
}

/** The file of the service that keeps this account's device running; null: none does. */
function fileOfService({ homeDir, platform, userName }: ServicePlace): string | null {
  const files = [serviceFileOf({ homeDir, platform }), systemServiceFileOf({ account: userName, platform })]
  return files.find((file) => file !== null && existsSync(file)) ?? null
}

/** null: there are no services here. */
export function isServiceInstalled(place: ServicePlace): boolean | null {
  return serviceFileOf(place) === null ? null : fileOfService(place) !== null
}

/** Returns what the background service of this user starts; null: there is none, or somebody else wrote its file. */
export async function startedByService(
  place: ServicePlace,
): Promise<{ file: string; node: string; main: string } | null> {
  const file = fileOfService(place)
  if (file === null) return null
  // The reader of launchd's files is not loaded elsewhere.
  const read =
    place.platform === 'darwin'
      ? (await import('./launchd-plist.ts')).readPlist
      : (await import('./systemd-unit.ts')).readUnit
  const service = read(readFileSync(file, 'utf8'))
  return service === null ? null : { file, node: service.node, main: service.main }
}
