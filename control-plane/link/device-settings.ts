import type { Knex } from 'knex'
import { watchedFolders } from '../../shared/device/folder-check.ts'
import type { ServerMessage } from '../../shared/device/protocol.ts'
import type { DeviceRow } from '../resources/devices/store.ts'
import { accountOf, accountsOf, harnessOfAccount } from '../resources/quotas/rules.ts'
import { listQuotaWindows } from '../resources/quotas/store.ts'
import { listFoldersOfDevice } from '../resources/folders/store.ts'

/** The settings that a device is told of itself, in `welcome` and again when one of them changed. */
export type DeviceSettings = Required<Omit<ServerMessage & { type: 'config.changed' }, 'type'>>

export async function settingsOf(root: Knex, device: DeviceRow, now: number): Promise<DeviceSettings> {
  const folders = await listFoldersOfDevice(root, device.workspaceId, device.publicId)
  const holder = { ...device, accounts: accountsOf(device.providerReadiness) }
  const windows = await listQuotaWindows(root, device.workspaceId, now)
  const own = windows.filter(({ account }) => accountOf(holder, harnessOfAccount(account)) === account)
  return {
    displayName: device.displayName,
    capacity: device.maxConcurrent,
    remoteControlRevoked: device.remoteControlRevokedAt !== null,
    folders: folders.slice(0, watchedFolders).map(({ shortId, rootPath }) => ({ shortId, rootPath })),
    limits: own.map(({ account, resetsAt }) => ({ harness: harnessOfAccount(account), resetsAt })),
  }
}
