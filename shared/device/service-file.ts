/** Where the background service of a device is described. Apart from its schemas: a command looks here before it loads them. */

/** One service per user: its name to launchd, and to systemd. */
export const serviceLabel = 'dev.svc.device'
export const serviceUnit = 'svc-device.service'

/** Where the service of a user is described; null where there is none. */
export function serviceFileOf({ homeDir, platform }: { homeDir: string; platform: string }): string | null {
  if (platform === 'darwin') return `${homeDir}/Library/LaunchAgents/${serviceLabel}.plist`
  if (platform === 'linux') return `${homeDir}/.config/systemd/user/${serviceUnit}`
  return null
}
