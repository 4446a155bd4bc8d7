// The file that describes the background service of a device. It is apart from the service's schemas because commands
// look here before they load those.

/** The name of a user's one service to launchd, and to systemd. */
export const serviceLabel = 'dev.svc.device'
export const serviceUnit = 'svc-device.service'

/** The path of that file, or null on platforms without one. */
export function serviceFileOf({ homeDir, platform }: { homeDir: string; platform: string }): string | null {
  if (platform === 'darwin') return `${homeDir}/Library/LaunchAgents/${serviceLabel}.plist`
  if (platform === 'linux') return `${homeDir}/.config/systemd/user/${serviceUnit}`
  return null
}
