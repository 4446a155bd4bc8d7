import type { FolderRef } from '../../../../shared/lib/ids.ts'
import { fail, failField, failPlain } from '../../../../shared/api/errors.ts'
import { folderRoutes, type Folder } from '../../../../shared/api/folders.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { FolderCheck, FolderFacts } from '../../../../shared/device/folder-check.ts'
import { databaseTroubleOf } from '../../../db/dialect.ts'
import { publish } from '../../../db/transaction.ts'
import type { Db } from '../../../db/open.ts'
import type { PersonCaller } from '../../../http/callers.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findRepo, repoOfRemote } from '../../repos/store.ts'
import { findOwnedDevice } from '../../devices/lookup.ts'
import { isLinked, livenessOf } from '../../devices/rules.ts'
import { findDeviceByPublicId, listDevicesByPublicId, type DeviceRow } from '../../devices/store.ts'
import {
  countFoldersOfDevice,
  findFolder,
  findFolderByRepo,
  insertFolder,
  listFoldersOfUser,
  removeFolder,
  replaceRepo,
  type FolderRow,
} from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs' | 'requests'>

/** A device that does not answer about a folder within this time counts as away. */
const checkMs = 10_000
/** A device has at most this many: with each new folder all of them are read again, to tell it. */
const mostFolders = 1_000

export function folderHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(folderRoutes, {
    async list({ db, caller, world }) {
      const folders = await listFoldersOfUser(db, caller.workspaceId, caller.personUuid)
      const devices = await listDevicesByPublicId(db, [...new Set(folders.map((folder) => folder.device))])
      const live = new Map(
        devices.filter((device) => device.removedAt === null).map((device) => [device.publicId, device]),
      )
      const moment = { now: world.now(), leaseMs: deps.leaseMs }
      return { sources: folders.map((folder) => presentFolder(folder, live.get(folder.device) ?? null, moment)) }
    },

    create: (input) => create(input, deps),
    update: (input) => update(input, deps),

    async delete({ db, caller, params, world }) {
      const folder = await ownFolder(db, caller, params.shortId)
      if (!(await removeFolder(db, folder.shortId, world.now()))) unknownFolder()
      await tellDevice(db, folder, world.now())
    },

    async gitRemote({ db, caller, params, world }) {
      const folder = await ownFolder(db, caller, params.shortId)
      const device = await findDeviceByPublicId(db, folder.device)
      const isReachable = device !== null && isLinked(device, world.now(), deps.leaseMs)
      const check = isReachable ? await deps.requests.checkFolder(folder.device, folder.rootPath, checkMs) : null
      return presentRemote(db, folder, check)
    },
  })
}

async function create(input: HandlerInput<typeof folderRoutes.create>, deps: Dependencies) {
  const { db, caller, body, world } = input
  const device = await findOwnedDevice(db, body.deviceId)
  if (device === null || device.workspaceId !== caller.workspaceId) return failPlain('plain.device_not_found')
  if (device.personUuid !== caller.personUuid) return failPlain('plain.device_not_owned')
  if ((await countFoldersOfDevice(db, device.publicId)) >= mostFolders)
    failField('deviceId', `A device has at most ${mostFolders} folders.`)
  const now = world.now()
  const folder = {
    shortId: world.id('fs_'),
    workspaceId: caller.workspaceId,
    device: device.publicId,
    displayName: body.displayName,
    rootPath: body.rootPath,
    createdByUuid: caller.personUuid,
    createdAt: now,
  }
  await insertFolder(db, folder)
  await tellDevice(db, folder, now)
  const row: FolderRow = { ...folder, repoId: null, bindingState: 'active', removedAt: null }
  return presentFolder(row, device, { now, leaseMs: deps.leaseMs })
}

async function update(input: HandlerInput<typeof folderRoutes.update>, deps: Dependencies) {
  const { db, caller, params, body, world } = input
  const folder = await ownFolder(db, caller, params.shortId)
  if (body.repoId !== null && (await findRepo(db, caller.workspaceId, body.repoId)) === null)
    fail('repo_not_found', { param: 'repoId' })
  const holder = body.repoId === null ? null : await findFolderByRepo(db, folder.device, body.repoId)
  if (holder !== null && holder.shortId !== folder.shortId) mapped(holder)
  try {
    if (!(await replaceRepo(db, folder.shortId, body.repoId))) unknownFolder()
  } catch (error) {
    // Another folder took the repo after the lookup.
    if (databaseTroubleOf(error) === 'duplicate') fail('repo_already_mapped', { param: 'repoId', cause: error })
    throw error
  }
  const device = await findDeviceByPublicId(db, folder.device)
  return presentFolder({ ...folder, repoId: body.repoId }, device, { now: world.now(), leaseMs: deps.leaseMs })
}

function mapped(holder: FolderRow): never {
  return fail('repo_already_mapped', { param: 'repoId', details: { folder: holder.shortId } })
}

/** Folders of other people look like unknown ones. */
async function ownFolder(db: Db, caller: PersonCaller, shortId: FolderRef): Promise<FolderRow> {
  const folder = await findFolder(db, caller.workspaceId, shortId)
  return folder?.createdByUuid === caller.personUuid ? folder : unknownFolder()
}

function unknownFolder(): never {
  return fail('resource_not_found', { param: 'shortId', message: 'You have no such folder.' })
}

/** Makes the device's link hand it the list of its folders anew. */
async function tellDevice(db: Db, folder: Pick<FolderRow, 'device'>, at: number): Promise<void> {
  await publish(db, { topic: 'device.changed', key: folder.device, at })
}

/** `device`: the folder's device, null when it was removed. */
function presentFolder(folder: FolderRow, device: DeviceRow | null, moment: { now: number; leaseMs: number }): Folder {
  const isConnected = device !== null && livenessOf(device, moment.now, moment.leaseMs) === 'connected'
  const found = isConnected ? factsOf(folder, device) : null
  return {
    shortId: folder.shortId,
    displayName: folder.displayName,
    config: { deviceId: folder.device, rootPath: folder.rootPath, bindingState: bindingOf(device, found) },
    status: device === null ? 'revoked' : isConnected ? 'active' : 'disconnected',
    state: found?.state ?? null,
    branch: found?.branch ?? null,
    repoId: folder.repoId,
    createdAt: toTimestamp(folder.createdAt),
  }
}

/** Derived, since a folder that is back is bound as before: a person helps where its device or the folder is gone. */
function bindingOf(device: DeviceRow | null, found: FolderFacts | null): Folder['config']['bindingState'] {
  const isGone = device === null || found?.state === 'missing' || found?.state === 'not_a_directory'
  return isGone ? 'manual_rebind_required' : 'active'
}

function factsOf(folder: FolderRow, { providerReadiness }: DeviceRow): FolderFacts | null {
  return ('folders' in providerReadiness ? providerReadiness.folders?.[folder.shortId] : undefined) ?? null
}

async function presentRemote(db: Db, folder: FolderRow, check: FolderCheck | null) {
  const remotes = check?.git?.remotes ?? []
  const remote = remotes.find(({ name }) => name === 'origin') ?? remotes[0]
  const repo = remote === undefined ? null : await repoOfRemote(db, folder.workspaceId, remote.url)
  return {
    shortId: folder.shortId,
    state: check?.state ?? ('device_disconnected' as const),
    url: remote?.url ?? null,
    remotes,
    branch: check?.git?.branch ?? null,
    commit: check?.git?.commit ?? null,
    repoId: repo?.id ?? null,
  }
}
