import { existsSync } from 'node:fs'
import { join } from 'node:path'

export const serviceLabel = 'dev.svc.device'

/** Where a background service of this user would be described; null where there is none. */
export function serviceFile(options: { homeDir: string; platform: string }): string | null {
  if (options.platform === 'darwin') return join(options.homeDir, 'Library', 'LaunchAgents', `${serviceLabel}.plist`)
  if (options.platform === 'linux') return join(options.homeDir, '.config', 'systemd', 'user', 'svc-device.service')
  return null
}

export function isServiceInstalled(options: { homeDir: string; platform: string }): boolean | null {
  const path = serviceFile(options)
  return path === null ? null : existsSync(path)
}
