import type { Knex } from 'knex'
import { watchedFolders } from '../../shared/device/folder-check.ts'
import type { ServerMessage } from '../../shared/device/protocol.ts'
import type { DeviceRow } from '../resources/devices/store.ts'
import { listFoldersOfDevice } from '../resources/folders/store.ts'

/** All that a device is told of itself, in `welcome` and again when something of it changed. */
export type DeviceSettings = Required<Omit<ServerMessage & { type: 'config.changed' }, 'type'>>

export async function settingsOf(root: Knex, device: DeviceRow): Promise<DeviceSettings> {
  const folders = await listFoldersOfDevice(root, device.workspaceId, device.publicId)
  return {
    displayName: device.displayName,
    capacity: device.maxConcurrent,
    remoteControlRevoked: device.remoteControlRevokedAt !== null,
    folders: folders.slice(0, watchedFolders).map(({ shortId, rootPath }) => ({ shortId, rootPath })),
  }
}
