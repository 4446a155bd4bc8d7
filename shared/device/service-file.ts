/** The file that describes the background service of a device. Apart from its schemas: a command looks here before it loads them. */

/** One service per user: its name to launchd, and to systemd. */
export const serviceLabel = 'dev.svc.device'
export const serviceUnit = 'svc-device.service'

/** Returns the file that describes the service of a user; null where there is none. */
export function serviceFileOf({ homeDir, platform }: { homeDir: string; platform: string }): string | null {
  if (platform === 'darwin') return `${homeDir}/Library/LaunchAgents/${serviceLabel}.plist`
  if (platform === 'linux') return `${homeDir}/.config/systemd/user/${serviceUnit}`
  return null
}
