import type { deviceRoutes } from '../../../../shared/api/devices.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import { publish } from '../../../db/transaction.ts'
import type { Db } from '../../../db/open.ts'
import { replaceDefaultDevice } from '../../workspaces/store.ts'
import { replaceDevice, type DeviceRow } from '../store.ts'
import { given } from '../../../../shared/lib/given.ts'

/**
 * Writes the settings in the body. Fails with `transient_conflict` when somebody else changed the device in between.
 */
export async function changeDevice(
  db: Db,
  device: DeviceRow,
  { body, at }: { body: BodyOf<typeof deviceRoutes.update>; at: number },
): Promise<void> {
  const { displayName, hostname, maxConcurrentRuns, runsBy, remoteControlRevoked } = body
  await replaceDevice(db, device, {
    ...given({ displayName, hostname, maxConcurrent: maxConcurrentRuns, runsBy }),
    ...(remoteControlRevoked === undefined
      ? {}
      : { remoteControlRevokedAt: remoteControlRevoked ? (device.remoteControlRevokedAt ?? at) : null }),
    at,
  })
  if (body.isWorkspaceDefault === true) await replaceDefaultDevice(db, device.workspaceId, device.publicId, at)
  // Makes the dispatcher reconsider waiting runs, and the device's link send it its settings.
  const payload = { workspaceId: device.workspaceId }
  await publish(db, { topic: 'device.changed', key: device.publicId, payload, at })
}
