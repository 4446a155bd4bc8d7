import { idFrom, type DeviceRef, type DeviceUuid } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { publish } from '../db/transaction.ts'
import type { Log } from '../process/log.ts'
import { clearLink, findDevice, recordHeartbeats, type DeviceRow } from '../resources/devices/store.ts'
import type { Bus } from '../db/bus.ts'
import { revokeLink, type LinkRegistry } from './registry.ts'

/**
 * Decides whether a device that says hello may have the link when there seems to be one already: a half-open link is
 * given up, a daemon that reconnects replaces its own old link, and a second daemon with the same identity is refused.
 */
export interface TakeoverOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  links: LinkRegistry
  replicaId: string
  leaseMs: number
}

/** An old link must answer a ping within this time to keep its place. */
const challengeMs = 2_000
/** The interval at which the row of a device is read while another replica checks its link. */
export const lookEveryMs = 100

export class Takeover {
  private readonly options: TakeoverOptions
  private off: (() => void) | null = null

  constructor(options: TakeoverOptions) {
    this.options = options
  }

  start(): void {
    this.off = this.options.bus.on('link.challenge', (row) => {
      if (row.payload.replicaId !== this.options.replicaId) return
      this.answer(row.key, idFrom(String(row.payload.deviceId)), String(row.payload.instance)).catch((error: unknown) =>
        this.options.log.warn({ err: error }, 'a challenge was not answered'),
      )
    })
  }

  stop(): void {
    this.off?.()
  }

  async mayConnect(device: DeviceRow, instance: string): Promise<boolean> {
    const { links, replicaId, world, leaseMs } = this.options
    await this.endRevoked(device)
    if (links.find(device.publicId)) return this.challengeLocal(device.publicId, instance)
    const elsewhere = device.replicaId !== null && device.replicaId !== replicaId
    const fresh = device.lastHeartbeatAt !== null && world.now() - device.lastHeartbeatAt < leaseMs
    if (!elsewhere || !fresh) return true
    return this.challengeRemote(device, instance)
  }

  /**
   * Ends a link whose connection was removed or replaced. A device that connects anew may say hello before this replica
   * has read of it; the earlier link would then answer the challenge, and the new daemon would be refused as a second
   * one.
   */
  private async endRevoked(device: DeviceRow): Promise<void> {
    const { root, links } = this.options
    const link = links.find(device.publicId)
    if (!link || link.deviceUuid === device.deviceUuid || (await findDevice(root, link.deviceUuid))) return
    revokeLink(link)
    links.remove(link)
  }

  /** Resolves with true when the old link is gone afterwards. */
  private async challengeLocal(publicId: DeviceRef, instance: string): Promise<boolean> {
    const link = this.options.links.find(publicId)
    if (!link) return true
    if (link.instance === instance || !(await link.challenge(challengeMs))) {
      link.close('going_away')
      this.options.links.remove(link)
      return true
    }
    return false
  }

  private async challengeRemote(device: DeviceRow, instance: string): Promise<boolean> {
    const { root, world } = this.options
    await publish(root, {
      topic: 'link.challenge',
      key: device.publicId,
      payload: { replicaId: device.replicaId, instance, deviceId: device.deviceUuid },
      at: world.now(),
    })
    // The other replica clears the row when its link is dead, and updates the heartbeat when it is alive. If that
    // replica is dead itself nobody answers, and the device is admitted.
    for (let waited = 0; waited < challengeMs + 1_500; waited += lookEveryMs) {
      await world.sleep(lookEveryMs)
      const now = await findDevice(root, device.deviceUuid)
      if (!now || now.replicaId !== device.replicaId) return true
    }
    const row = await findDevice(root, device.deviceUuid)
    return row?.lastHeartbeatAt === device.lastHeartbeatAt
  }

  private async answer(publicId: DeviceRef, deviceUuid: DeviceUuid, instance: string): Promise<void> {
    const { root, links, replicaId, world } = this.options
    const link = links.find(publicId)
    // A heartbeat confirms a live link, and the asking replica sees by it that the link is alive.
    if (link && !(await this.challengeLocal(publicId, instance)))
      return recordHeartbeats(root, [{ deviceUuid: link.deviceUuid, at: world.now() }])
    await clearLink(root, deviceUuid, replicaId)
  }
}
