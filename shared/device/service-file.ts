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

/** Where the units of the machine stand that root installs. */
export const systemUnitFolder = '/etc/systemd/system'

/** That of the server of the machine stands there, too. */
export const systemServerUnit = 'svc-server.service'

/** The service of the machine that keeps the device of this account running. `systemd` has a word for what is one of several: what stands behind the `@`. */
export const systemUnitOf = (account: string): string => `svc-device@${account}.service`

export const isSystemUnitName = (name: string): boolean => /^svc-device@[a-z_][a-z0-9_-]*\.service$/.test(name)

/** The path of its file, or null on platforms where root installs none. */
export function systemServiceFileOf({
  account,
  platform,
  folder = systemUnitFolder,
}: {
  account: string
  platform: string
  folder?: string
}): string | null {
  return platform === 'linux' ? `${folder}/${systemUnitOf(account)}` : null
}
