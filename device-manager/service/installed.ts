import { existsSync, readFileSync } from 'node:fs'
import { serviceFileOf } from '../../shared/device/service-file.ts'

interface ServicePlace {
  homeDir: string
  platform: string
}

export function isServiceInstalled(place: ServicePlace): boolean | null {
  const file = serviceFileOf(place)
  return file === null ? null : existsSync(file)
}

/** Returns what the background service of this user starts; null: there is none, or somebody else wrote its file. */
export async function startedByService(
  place: ServicePlace,
): Promise<{ file: string; node: string; main: string } | null> {
  const file = serviceFileOf(place)
  if (file === null || !existsSync(file)) return null
  // The reader of launchd's files is not loaded elsewhere.
  const read =
    place.platform === 'darwin'
      ? (await import('./launchd-plist.ts')).readPlist
      : (await import('./systemd-unit.ts')).readUnit
  const service = read(readFileSync(file, 'utf8'))
  return service === null ? null : { file, node: service.node, main: service.main }
}
