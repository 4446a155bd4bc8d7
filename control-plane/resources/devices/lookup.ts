import { hasPrefix, idFrom } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { Db } from '../../db/open.ts'
import { hashToken } from '../../http/token-hash.ts'
import { livenessOf, personOf } from './rules.ts'
import { findDevice, findDeviceByPublicId, findDeviceByToken, type DeviceRow } from './store.ts'

/** A device of a person, by either of its ids; null for a sandbox, which no client names. */
export async function findOwnedDevice(db: Db, id: string): Promise<DeviceRow | null> {
  const device = hasPrefix(id, 'dvc_') ? await findDeviceByPublicId(db, id) : await findDevice(db, idFrom(id))
  return device !== null && personOf(device) !== null ? device : null
}

/** The device of a device token. A retired one must connect anew. */
export async function deviceOfToken(db: Db, bearer: string | null, now: number): Promise<DeviceRow> {
  if (bearer === null) return fail('auth_missing')
  const device = bearer.startsWith('svc_dev_') ? await findDeviceByToken(db, hashToken(bearer)) : null
  if (device === null || device.removedAt !== null) return fail('auth_invalid')
  if (livenessOf(device, now) === 'retired')
    return fail('auth_invalid', { message: 'This device was away for too long; connect it again.' })
  return device
}
