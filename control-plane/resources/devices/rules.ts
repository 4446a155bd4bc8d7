import type { PersonUuid, SandboxId } from '../../../shared/lib/ids.ts'
import { linkLimits } from '../../../shared/device/limits.ts'

export type LivenessStatus = 'connected' | 'disconnected' | 'retired'
const controllers = new Set(['ios', 'ipados', 'android'])

/** A phone or tablet is a controller: it has no status and takes no runs. */
export function isController(platform: string | null): boolean {
  return platform !== null && controllers.has(platform.toLowerCase())
}

/** The person whose machine it is; null: it is a sandbox, and nobody's. */
export const personOf = (device: { personUuid: PersonUuid; sandboxId: SandboxId | null }): PersonUuid | null =>
  device.sandboxId === null ? device.personUuid : null

/** The liveness, computed from the last heartbeat and never stored. */
export function livenessOf(
  device: { lastHeartbeatAt: number | null; createdAt: number },
  now: number,
  leaseMs: number = linkLimits.leaseMs,
): LivenessStatus {
  const last = device.lastHeartbeatAt
  // A device that never sent a heartbeat ages from its creation, so an abandoned enrolment is retired, too.
  if (now - (last ?? device.createdAt) > linkLimits.retireMs) return 'retired'
  if (last === null || now - last > leaseMs) return 'disconnected'
  return 'connected'
}

/**
 * The time until which the device counts as connected, in milliseconds; before its first heartbeat that is its
 * creation.
 */
export function liveUntil(
  device: { lastHeartbeatAt: number | null; createdAt: number },
  leaseMs: number = linkLimits.leaseMs,
): number {
  return device.lastHeartbeatAt === null ? device.createdAt : device.lastHeartbeatAt + leaseMs
}

/** Returns whether a replica holds the device's link, so that it can be asked something now. */
export function isLinked(
  device: { lastHeartbeatAt: number | null; createdAt: number; replicaId: string | null },
  now: number,
  leaseMs: number,
): boolean {
  return device.replicaId !== null && livenessOf(device, now, leaseMs) === 'connected'
}
