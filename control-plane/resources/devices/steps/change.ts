import type { deviceRoutes } from '../../../../shared/api/devices.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import { publish } from '../../../db/outbox.ts'
import type { Db } from '../../../db/open.ts'
import { replaceDefaultDevice } from '../../workspaces/store.ts'
import { replaceDevice, type DeviceRow } from '../store.ts'

/**
 * Writes the settings that the body names. Fails with `transient_conflict`
 * when somebody else changed the device in between.
 */
export async function changeDevice(
  db: Db,
  device: DeviceRow,
  { body, at }: { body: BodyOf<typeof deviceRoutes.update>; at: number },
): Promise<void> {
  const { displayName, hostname, maxConcurrentRuns, runsBy, remoteControlRevoked } = body
  await replaceDevice(db, device, {
    ...(displayName === undefined ? {} : { displayName }),
    ...(hostname === undefined ? {} : { hostname }),
    ...(maxConcurrentRuns === undefined ? {} : { maxConcurrent: maxConcurrentRuns }),
    ...(runsBy === undefined ? {} : { runsBy }),
    ...(remoteControlRevoked === undefined
      ? {}
      : { remoteControlRevokedAt: remoteControlRevoked ? (device.remoteControlRevokedAt ?? at) : null }),
    at,
  })
  if (body.isWorkspaceDefault === true) await replaceDefaultDevice(db, device.workspaceId, device.publicId, at)
  // Dispatch looks again at what waits, and the device's link tells it its settings.
  const payload = { workspaceId: device.workspaceId }
  await publish(db, { topic: 'device.changed', key: device.publicId, payload, at })
}
