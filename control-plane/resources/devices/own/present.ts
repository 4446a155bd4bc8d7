import type { DeviceRef } from '../../../../shared/lib/ids.ts'
import type { Device } from '../../../../shared/api/devices.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { isController, isLinked, liveUntil, livenessOf } from '../rules.ts'
import type { DeviceRow } from '../store.ts'

export interface DeviceContext {
  now: number
  leaseMs: number
  /** Durable id of the workspace's default device. */
  defaultDevice: DeviceRef | null
  /** What providers keep a device from now. */
  limitsOf(device: DeviceRow): Device['limits']
  limitsInUseOf(device: DeviceRow): Device['limitsInUse']
}

export function presentDevice(device: DeviceRow, context: DeviceContext): Device {
  const { now, leaseMs } = context
  const isPhone = isController(device.platform)
  const status = livenessOf(device, now, leaseMs)
  return {
    deviceId: device.deviceUuid,
    publicId: device.publicId,
    displayName: device.displayName,
    hostname: device.hostname,
    platform: device.platform,
    version: device.version,
    maxConcurrent: device.maxConcurrent,
    isWorkspaceDefault: context.defaultDevice === device.publicId,
    liveness: isPhone
      ? { kind: 'controller' }
      : {
          kind: 'host',
          status,
          expiresAt: device.lastHeartbeatAt === null ? null : toTimestamp(liveUntil(device, leaseMs)),
        },
    online: !isPhone && status === 'connected',
    linked: isLinked(device, now, leaseMs),
    retired: !isPhone && status === 'retired',
    lastHeartbeatAt: toTimestamp(device.lastHeartbeatAt),
    liveUntil: toTimestamp(liveUntil(device, leaseMs)),
    providerReadiness: device.providerReadiness,
    providerReadinessCapturedAt: toTimestamp(device.providerReadinessAt),
    claimState: device.claimState,
    limits: context.limitsOf(device),
    limitsInUse: context.limitsInUseOf(device),
    runsBy: device.runsBy,
    remoteControlRevokedAt: toTimestamp(device.remoteControlRevokedAt),
    createdAt: toTimestamp(device.createdAt),
    updatedAt: toTimestamp(device.updatedAt),
  }
}
