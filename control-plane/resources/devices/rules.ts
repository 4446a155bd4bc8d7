import { linkLimits } from '../../../shared/device/limits.ts'

export type LivenessStatus = 'connected' | 'disconnected' | 'retired'
const controllers = new Set(['ios', 'ipados', 'android'])

/** A phone or tablet is a controller: it has no status and takes no runs (document 1, "Device"). */
export function isController(platform: string | null): boolean {
  return platform !== null && controllers.has(platform.toLowerCase())
}

/** Computed from the last heartbeat, never stored (document 1, "Device liveness"). */
export function livenessOf(
  device: { lastHeartbeatAt: number | null; createdAt: number },
  now: number,
  leaseMs: number = linkLimits.leaseMs,
): LivenessStatus {
  const last = device.lastHeartbeatAt
  // A device that never sent a heartbeat ages from its creation, so an abandoned enrolment retires too.
  if (now - (last ?? device.createdAt) > linkLimits.retireMs) return 'retired'
  if (last === null || now - last > leaseMs) return 'disconnected'
  return 'connected'
}

/** Until when the device counts as connected, in milliseconds; before its first heartbeat that time is its creation. */
export function liveUntil(
  device: { lastHeartbeatAt: number | null; createdAt: number },
  leaseMs: number = linkLimits.leaseMs,
): number {
  return device.lastHeartbeatAt === null ? device.createdAt : device.lastHeartbeatAt + leaseMs
}

/** A replica holds its link, so it can be asked something now. */
export function isLinked(
  device: { lastHeartbeatAt: number | null; createdAt: number; replicaId: string | null },
  now: number,
  leaseMs: number,
): boolean {
  return device.replicaId !== null && livenessOf(device, now, leaseMs) === 'connected'
}
