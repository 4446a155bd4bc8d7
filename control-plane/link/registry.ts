import type { DeviceRef, DeviceUuid, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { CloseName } from '../../shared/device/limits.ts'
import type { ClaimState, ServerMessage } from '../../shared/device/protocol.ts'
import type { DeviceSettings } from './device-settings.ts'

/** An open link: a device that said hello to this replica and was welcomed. */
export interface Link {
  readonly deviceUuid: DeviceUuid
  readonly publicId: DeviceRef
  readonly workspaceId: WorkspaceUuid
  /** Unique to this link. */
  readonly linkId: string
  /** Identifies the daemon's process. */
  readonly instance: string
  claimState: ClaimState
  /** The time of its hello or its last heartbeat. */
  beatAt: number
  /** Bytes in the device's spool, by its last report; null: it has not reported. */
  spoolBytes: number | null
  /** The settings last sent to the daemon. */
  settings: DeviceSettings
  /** The harnesses that can run, by the device's last report; null: it has not reported. */
  ready: string | null
  /** False as soon as the socket begins to close, which may be a while before it is closed. */
  isOpen(): boolean
  send(message: ServerMessage): boolean
  close(name: CloseName): void
  /** Resolves with true when the other end answers a ping within `ms`. */
  challenge(ms: number): Promise<boolean>
}

/** Ends the link of a connection that was removed or replaced. */
export function revokeLink(link: Link): void {
  link.send({ type: 'revoked', reason: 'The device was removed or connected anew.' })
  link.close('revoked')
}

/** The links of this replica, by the device's durable id. */
export class LinkRegistry {
  private readonly links = new Map<string, Link>()

  isLinked(publicId: DeviceRef): boolean {
    return this.links.get(publicId)?.isOpen() ?? false
  }

  find(publicId: DeviceRef): Link | null {
    return this.links.get(publicId) ?? null
  }

  send(publicId: DeviceRef, message: ServerMessage): boolean {
    return this.links.get(publicId)?.send(message) ?? false
  }

  /**
   * Adds a link. A daemon has one link: an earlier one is closed, and the daemon connects again if it used that one.
   */
  add(link: Link): void {
    const earlier = this.links.get(link.publicId)
    this.links.set(link.publicId, link)
    earlier?.close('going_away')
  }

  /** Removes this link; a later link of the same device stays. */
  remove(link: Link): boolean {
    if (this.links.get(link.publicId) !== link) return false
    return this.links.delete(link.publicId)
  }

  all(): Link[] {
    return [...this.links.values()]
  }

  get size(): number {
    return this.links.size
  }

  get spoolBytes(): number {
    return this.all().reduce((sum, { spoolBytes }) => sum + (spoolBytes ?? 0), 0)
  }
}
