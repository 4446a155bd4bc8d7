import type { World } from '../../shared/lib/world.ts'
import type { DeviceIdentity } from '../../shared/device/device-identity.ts'
import { keepDisplayName, replaceToken } from '../setup/identity-file.ts'
import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'

interface TokenOptions {
  places: Places
  world: Pick<World, 'after'>
  log: Log
  /** False: it is in memory alone, and a daemon that starts anew has none. */
  keepsToken: boolean
}

/** The time that a token which cannot be written waits for the next try. */
const retryMs = 5_000

/**
 * The device's token. The old one works until the new one was used once, so the new one is used when it is on the disk and
 * not before: a daemon that starts after a crash must not find the old one alone (a full disk may take nothing for hours).
 */
export class DeviceToken {
  private readonly options: TokenOptions
  private current: string
  private newest: string | null = null

  constructor(token: string, options: TokenOptions) {
    this.current = token
    this.options = options
  }

  get value(): string {
    return this.current
  }

  /** Takes the place of the one before as soon as it is on the disk; a still newer one takes its own place. */
  replace(token: string): void {
    const { places, world, log, keepsToken } = this.options
    this.newest = token
    try {
      if (keepsToken) replaceToken(places, token)
    } catch (error) {
      log.error({ err: error }, 'the new device token cannot be written yet')
      world.after(retryMs, () => this.newest === token && this.replace(token))
      return
    }
    this.current = token
    log.info({}, 'device token rotated')
  }
}

/** The name that the server has for the device; its identity file has it, too, for `svc` while no daemon runs. */
export class DeviceName {
  private readonly options: { identity: DeviceIdentity; places: Places; log: Log }
  private current: string

  constructor(options: { identity: DeviceIdentity; places: Places; log: Log }) {
    this.options = options
    this.current = options.identity.displayName
  }

  get value(): string {
    return this.current
  }

  replace(displayName: string): void {
    const { places, identity, log } = this.options
    this.current = displayName
    keepDisplayName(places, { ...identity, displayName }, log)
  }
}
