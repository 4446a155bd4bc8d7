import {
  idFrom,
  type DeviceRef,
  type DeviceUuid,
  type FolderRef,
  type RepoUuid,
  type WorkspaceUuid,
} from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import {
  type DeviceRow,
  clearAllLinks,
  clearLink,
  findDevice,
  findDeviceByPublicId,
  findDeviceByToken,
  findDeviceEver,
  insertDevice,
  listDevicesByPublicId,
  listDevicesOfUser,
  listDevicesOfWorkspace,
  markLinked,
  markUnlinked,
  promoteToken,
  recordClaimState,
  recordClaimStates,
  recordHeartbeats,
  recordReadiness,
  replaceDevice,
  setNextToken,
} from '../../control-plane/resources/devices/store.ts'
import {
  findFolder,
  findFolderByRepo,
  insertFolder,
  countFoldersOfDevice,
  listFoldersOfDevice,
  listFoldersOfUser,
  removeFolder,
  replaceRepo,
} from '../../control-plane/resources/folders/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedDevice, seedPerson, seedWorkspace, wroteSecond } from './seed.ts'

async function seedOwner(db: Db) {
  const workspaceId = await seedWorkspace(db)
  return { workspaceId, personUuid: await seedPerson(db, workspaceId) }
}
const claimState = { accepting: true, reason: null, message: null, activeRuns: 2 }

onBoth(
  'a device is found by each of its ids until it is removed, and after that by its durable one',
  async ({ root }) => {
    const owner = await seedOwner(root)
    const device = await seedDevice(root, owner)
    const stored = await findDevice(root, device.deviceUuid)
    expect(stored).toMatchObject({
      deviceUuid: device.deviceUuid,
      publicId: device.publicId,
      ...owner,
      displayName: 'laptop',
      maxConcurrent: 3,
      providerReadiness: {},
      claimState: null,
      lastHeartbeatAt: null,
      createdAt: at,
    })
    expect(await findDeviceByPublicId(root, device.publicId)).toEqual(stored)
    expect(await findDeviceByToken(root, device.tokenHash)).toEqual(stored)
    await replaceDevice(root, stored!, { removedAt: at + 1, at: at + 1 })
    await expect(replaceDevice(root, stored!, { displayName: 'late', at })).rejects.toMatchObject(wroteSecond)
    expect(await findDevice(root, device.deviceUuid)).toBeNull()
    expect(await findDeviceByPublicId(root, device.publicId)).toBeNull()
    expect((await findDeviceEver(root, device.publicId))?.removedAt).toBe(at + 1)
    expect((await findDeviceByToken(root, device.tokenHash))?.removedAt).toBe(at + 1)
    // The durable id may be taken by a new connection, and then that one is meant.
    const next = await seedDevice(root, owner, { publicId: device.publicId })
    expect((await findDeviceEver(root, device.publicId))?.deviceUuid).toBe(next.deviceUuid)
    expect((await findDeviceByPublicId(root, device.publicId))?.deviceUuid).toBe(next.deviceUuid)
    expect(
      await insertDevice(root, { ...next, deviceUuid: idFrom('x'), tokenHash: 'y' }).catch(databaseTroubleOf),
    ).toBe('duplicate')
    expect(await findDeviceEver(root, idFrom('dvc_0000000000000000'))).toBeNull()
  },
)

onBoth('lists: of a person, of a workspace, by durable ids', async ({ root }) => {
  const owner = await seedOwner(root)
  const other = await seedPerson(root, owner.workspaceId)
  const a = await seedDevice(root, owner)
  const b = await seedDevice(root, owner, { at: at + 1 })
  const c = await seedDevice(root, { ...owner, personUuid: other })
  await seedDevice(root, { workspaceId: await seedWorkspace(root), personUuid: owner.personUuid })
  const mine = await listDevicesOfUser(root, owner.workspaceId, owner.personUuid)
  expect(mine.map((device) => device.deviceUuid)).toEqual([b.deviceUuid, a.deviceUuid])
  const all = await listDevicesOfWorkspace(root, owner.workspaceId)
  expect(new Set(all.map((device) => device.deviceUuid))).toEqual(new Set([a.deviceUuid, b.deviceUuid, c.deviceUuid]))
  const named = await listDevicesByPublicId(root, [a.publicId, c.publicId])
  expect(new Set(named.map((device) => device.deviceUuid))).toEqual(new Set([a.deviceUuid, c.deviceUuid]))
  expect(await listDevicesByPublicId(root, [])).toEqual([])
})

onBoth('a change is made from the row that was read', async ({ root }) => {
  const device = await seedDevice(root, await seedOwner(root))
  const read = (await findDevice(root, device.deviceUuid))!
  await replaceDevice(root, read, { displayName: 'A', maxConcurrent: 9, at: at + 1 })
  await expect(replaceDevice(root, read, { displayName: 'B', at: at + 2 })).rejects.toMatchObject(wroteSecond)
  expect(await findDevice(root, device.deviceUuid)).toMatchObject({
    displayName: 'A',
    maxConcurrent: 9,
    updatedAt: at + 1,
  })
})

onBoth('links, heartbeats and reports', async ({ root }) => {
  const device = await seedDevice(root, await seedOwner(root))
  const { deviceUuid: deviceId } = device
  const link = {
    deviceUuid: deviceId,
    replicaId: 'r1',
    linkId: 'i1',
    at: at + 1,
    version: '2',
    platform: 'darwin',
    hostname: 'h',
  }
  await markLinked(root, { ...link, claimState })
  expect(await findDevice(root, deviceId)).toMatchObject({
    replicaId: 'r1',
    linkId: 'i1',
    lastHeartbeatAt: at + 1,
    version: '2',
    platform: 'darwin',
    claimState,
  })
  expect((await findDevice(root, deviceId))?.hostname).toBe('h')
  await replaceDevice(root, (await findDevice(root, deviceId))!, { hostname: 'mine', isHostnameSet: true, at })
  await markLinked(root, { ...link, claimState })
  expect((await findDevice(root, deviceId))?.hostname).toBe('mine')
  // Another link of the device came since: the old one's end changes nothing.
  await markLinked(root, { ...link, linkId: 'i2', claimState })
  await markUnlinked(root, link)
  expect((await findDevice(root, deviceId))?.replicaId).toBe('r1')
  await markUnlinked(root, { ...link, linkId: 'i2' })
  expect((await findDevice(root, deviceId))?.replicaId).toBeNull()
  await markLinked(root, { ...link, claimState })
  await clearLink(root, deviceId, 'r2')
  expect((await findDevice(root, deviceId))?.replicaId).toBe('r1')
  await clearLink(root, deviceId, 'r1')
  expect((await findDevice(root, deviceId))?.replicaId).toBeNull()
  await markLinked(root, { ...link, claimState })
  await clearAllLinks(root)
  expect((await findDevice(root, deviceId))?.replicaId).toBeNull()
  const second = await seedDevice(root, await seedOwner(root))
  await recordHeartbeats(root, [
    { deviceUuid: deviceId, at: at + 10 },
    { deviceUuid: second.deviceUuid, at: at + 11 },
  ])
  expect((await findDevice(root, deviceId))?.lastHeartbeatAt).toBe(at + 10)
  expect((await findDevice(root, second.deviceUuid))?.lastHeartbeatAt).toBe(at + 11)
  const full = { ...claimState, accepting: false, reason: 'capacity' as const }
  await recordClaimState(root, deviceId, full)
  expect((await findDevice(root, deviceId))?.claimState).toEqual(full)
  const stopped = { ...claimState, accepting: false, reason: 'paused' as const, message: 'It\'s "late".' }
  await recordClaimStates(
    root,
    new Map<DeviceUuid, NonNullable<DeviceRow['claimState']>>([
      [deviceId, full],
      [second.deviceUuid, stopped],
    ]),
  )
  expect((await findDevice(root, second.deviceUuid))?.claimState).toEqual(stopped)
  const readiness = { harnesses: { claude: { installed: true, version: '1', signedIn: null, message: null } } }
  await recordReadiness(root, deviceId, readiness, at + 12)
  expect(await findDevice(root, deviceId)).toMatchObject({
    claimState: full,
    providerReadiness: readiness,
    providerReadinessAt: at + 12,
  })
})

onBoth('a new token works beside the old one until it was used', async ({ root }) => {
  const device = await seedDevice(root, await seedOwner(root))
  await setNextToken(root, device.deviceUuid, 'next')
  for (const hash of [device.tokenHash, 'next'])
    expect((await findDeviceByToken(root, hash))?.deviceUuid).toBe(device.deviceUuid)
  await promoteToken(root, device.deviceUuid, 'something else', at + 1)
  expect((await findDeviceByToken(root, device.tokenHash))?.deviceUuid).toBe(device.deviceUuid)
  await promoteToken(root, device.deviceUuid, 'next', at + 1)
  expect(await findDeviceByToken(root, device.tokenHash)).toBeNull()
  expect(await findDeviceByToken(root, 'next')).toMatchObject({ nextTokenHash: null, tokenIssuedAt: at + 1 })
})

onBoth('folders: found until removed; one of a device holds a repo', async ({ root }) => {
  const owner = await seedOwner(root)
  const { publicId } = await seedDevice(root, owner)
  const make = async (shortId: FolderRef, createdAt: number, device = publicId) => {
    const place = { workspaceId: owner.workspaceId, device, displayName: shortId, rootPath: `/${shortId}` }
    await insertFolder(root, { shortId, ...place, createdByUuid: owner.personUuid, createdAt })
  }
  await make(idFrom('fs_a'), at)
  await make(idFrom('fs_b'), at + 1)
  await make(idFrom('fs_c'), at + 2, idFrom<DeviceRef>('dvc_other'))
  const { workspaceId } = owner
  expect(await findFolder(root, workspaceId, idFrom('fs_a'))).toEqual({
    shortId: 'fs_a',
    workspaceId,
    device: publicId,
    displayName: 'fs_a',
    rootPath: '/fs_a',
    repoId: null,
    bindingState: 'active',
    createdByUuid: owner.personUuid,
    removedAt: null,
    createdAt: at,
  })
  expect(await findFolder(root, idFrom('elsewhere'), idFrom('fs_a'))).toBeNull()
  const listed = await listFoldersOfUser(root, workspaceId, owner.personUuid)
  expect(listed.map((folder) => folder.shortId)).toEqual(['fs_c', 'fs_b', 'fs_a'])
  expect(await listFoldersOfUser(root, workspaceId, await seedPerson(root, workspaceId))).toEqual([])
  const onDevice = async (of = workspaceId) =>
    (await listFoldersOfDevice(root, of, publicId)).map((each) => each.shortId)
  expect(await countFoldersOfDevice(root, publicId)).toBe(2)
  expect(await onDevice()).toEqual(['fs_a', 'fs_b'])
  expect(await onDevice(idFrom<WorkspaceUuid>('elsewhere'))).toEqual([])
  expect(await replaceRepo(root, idFrom('fs_a'), idFrom<RepoUuid>('repo'))).toBe(true)
  expect(await replaceRepo(root, idFrom('fs_c'), idFrom<RepoUuid>('repo'))).toBe(true)
  expect(await replaceRepo(root, idFrom('fs_b'), idFrom<RepoUuid>('repo')).catch(databaseTroubleOf)).toBe('duplicate')
  expect((await findFolderByRepo(root, publicId, idFrom('repo')))?.shortId).toBe('fs_a')
  expect(await removeFolder(root, idFrom('fs_a'), at + 3)).toBe(true)
  expect(await removeFolder(root, idFrom('fs_a'), at + 4)).toBe(false)
  expect(await onDevice()).toEqual(['fs_b'])
  expect(await findFolder(root, workspaceId, idFrom('fs_a'))).toBeNull()
  expect(await findFolderByRepo(root, publicId, idFrom('repo'))).toBeNull()
  expect(await replaceRepo(root, idFrom('fs_a'), null)).toBe(false)
  expect(await replaceRepo(root, idFrom('fs_b'), idFrom<RepoUuid>('repo'))).toBe(true)
})
