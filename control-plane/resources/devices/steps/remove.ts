import type { World } from '../../../../shared/lib/world.ts'
import { publish } from '../../../db/transaction.ts'
import type { Db } from '../../../db/open.ts'
import { finishRun } from '../../../run/endings/end-run.ts'
import { takeBackOffer } from '../../../run/offers/lease.ts'
import { listLiveOfDevice } from '../../runs/live-store.ts'
import { clearDefaultDevice } from '../../workspaces/store.ts'
import { deleteSandboxDevice, replaceDevice, type DeviceRow } from '../store.ts'

/**
 * Removes a device: its token stops working, whoever holds its link ends it on reading the outbox, runs it executes end
 * as `runner_lost`, and runs it was offered are queued again. Returns the number of runs that ended. Fails with `transient_conflict` when somebody else changed the row in
 * between.
 */
export async function removeDevice(db: Db, device: DeviceRow, world: World): Promise<number> {
  const at = world.now()
  let ended = 0
  await revokeConnection(db, device, at)
  await clearDefaultDevice(db, device.workspaceId, device.publicId)
  for (const run of await listLiveOfDevice(db, device.publicId)) {
    if (run.leaseState === 'offered') {
      await takeBackOffer(db, run, { at, why: 'device_removed' })
      continue
    }
    const hasEnded = await finishRun(db, run, {
      type: 'device_removed',
      exitReason: 'runner_lost',
      errorMessage: 'The device of this run was removed.',
      at,
      world,
    })
    if (hasEnded) ended++
  }
  return ended
}

/** Ends one connection of a device and its token; everything else under its durable id stays. */
export async function revokeConnection(db: Db, device: DeviceRow, at: number): Promise<void> {
  await replaceDevice(db, device, { removedAt: at, at })
  await publishRevoked(db, device, at)
}

/** The device that a sandbox was: nothing is to be read of it later. */
export async function removeSandboxDevice(db: Db, device: DeviceRow, at: number): Promise<void> {
  await deleteSandboxDevice(db, device.deviceUuid)
  await publishRevoked(db, device, at)
}

/** Tells the replica that holds the device's link to end it. */
export async function publishRevoked(db: Db, device: DeviceRow, at: number): Promise<void> {
  const { workspaceId, deviceUuid, publicId } = device
  const payload = { workspaceId, deviceId: deviceUuid, revoked: true }
  await publish(db, { topic: 'device.changed', key: publicId, payload, at })
}
