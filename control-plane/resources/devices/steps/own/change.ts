import type { deviceRoutes } from '../../../../../shared/api/devices.ts'
import type { BodyOf } from '../../../../../shared/api/route.ts'
import { failField } from '../../../../../shared/api/errors.ts'
import { changedRow } from '../../../../db/changed-row.ts'
import { publish } from '../../../../db/transaction.ts'
import type { Db } from '../../../../db/open.ts'
import { replaceDefaultDevice } from '../../../workspaces/store.ts'
import { isController } from '../../rules.ts'
import { replaceDevice, type DeviceRow } from '../../store.ts'
import { withoutUndefined } from '../../../../../shared/lib/without-undefined.ts'

/**
 * Writes the settings in the body. Fails with `validation_error` when a phone is to be the default device, and with
 * `transient_conflict` when somebody else changed the device in between.
 */
export async function changeDevice(
  db: Db,
  device: DeviceRow,
  { body, at }: { body: BodyOf<typeof deviceRoutes.update>; at: number },
): Promise<void> {
  const { displayName, hostname, maxConcurrentRuns, runsBy, remoteControlRevoked } = body
  const isDefault = body.isWorkspaceDefault === true
  if (isDefault && isController(device.platform))
    failField('isWorkspaceDefault', 'A phone or tablet takes no runs: it cannot be the default device.')
  const changes = {
    ...withoutUndefined({ displayName, hostname, maxConcurrent: maxConcurrentRuns, runsBy }),
    ...(hostname !== undefined && { isHostnameSet: true }),
    ...(remoteControlRevoked === undefined
      ? {}
      : { remoteControlRevokedAt: remoteControlRevoked ? (device.remoteControlRevokedAt ?? at) : null }),
  }
  const isSame = changedRow(device, changes, at) === device
  if (!isSame) await replaceDevice(db, device, { ...changes, at })
  const isMadeDefault = isDefault && (await replaceDefaultDevice(db, device.workspaceId, device.publicId, at))
  if (isSame && !isMadeDefault) return
  // Makes the dispatcher reconsider waiting runs, and the device's link send it its settings.
  const payload = { workspaceId: device.workspaceId }
  await publish(db, { topic: 'device.changed', key: device.publicId, payload, at })
}
