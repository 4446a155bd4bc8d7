import { idFrom, type SandboxId } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import {
  deleteSandboxDevice,
  exchangeToken,
  findDevice,
  findDeviceByToken,
  listDevicesOfUser,
  listDevicesOfWorkspace,
  listPlacesOfWorkspace,
  renewFirstToken,
} from '../../control-plane/resources/devices/store.ts'
import {
  countSandboxesOfEngine,
  engineAwayMs,
  engineNameOf,
  findCloudRoom,
  findSandbox,
  findSandboxOfRun,
  takesOverVolume,
  insertSandbox,
  isVolumeNeeded,
  listLeftVolumes,
  listSandboxes,
  listSandboxesOfEngine,
  listWorkspacesWaitingForCloud,
  recordEngine,
  replaceSandbox,
  volumeOf,
} from '../../control-plane/resources/sandboxes/store.ts'
import { addNetwork, listNetwork } from '../../control-plane/resources/sandboxes/network-store.ts'
import {
  deleteWarm,
  findWarm,
  insertWarm,
  isWarmVolume,
  keepWarm,
  listWarmOfEngine,
  replaceWarm,
  takeWarm,
  warmNameOf,
  type WarmRow,
} from '../../control-plane/resources/sandboxes/warm-store.ts'
import { networkLimits } from '../../shared/runs/network.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { sandboxRow } from './sandbox-rows.ts'
import { at, seedAgent, seedDevice, seedPerson, seedRun, seedWorkspace } from './seed.ts'

onBoth('a run has one sandbox at a time, which is changed by one writer at a time', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const row = sandboxRow(workspaceId)
  await insertSandbox(root, row)
  expect(await findSandbox(root, row.id)).toEqual(row)
  expect(engineNameOf(row)).toBe(`svc-${row.runId}-1`)
  // Its own, unless it goes on with that of another one.
  expect(volumeOf(row)).toBe(engineNameOf(row))
  expect(volumeOf({ ...row, volume: 'svc-run-0' })).toBe('svc-run-0')
  const second = sandboxRow(workspaceId, { runId: row.runId, fence: 2, createdAt: at + 1 })
  await expect(inTransaction(root, (tx) => insertSandbox(tx, second))).rejects.toThrow(/unique/i)
  expect(await replaceSandbox(root, row, { state: 'creating', folder: '/x', stateAt: at + 1 })).toBe(true)
  expect(await replaceSandbox(root, row, { state: 'ended' })).toBe(false)
  const now = (await findSandbox(root, row.id))!
  expect(now).toEqual({ ...row, state: 'creating', folder: '/x', stateAt: at + 1, version: 2 })
  await replaceSandbox(root, now, { removedAt: at + 2 })
  await insertSandbox(root, second)
  expect(await findSandboxOfRun(root, row.runId)).toEqual(second)
  expect(await listSandboxesOfEngine(root, 'engine')).toEqual([second])
  expect(await listSandboxesOfEngine(root, 'another')).toEqual([])
  const listed = (withRemoved: boolean) => listSandboxes(root, { workspaceId, withRemoved, limit: 10 })
  expect(await listed(false)).toEqual([second])
  expect((await listed(true)).map(({ id }) => id)).toContain(second.id)
  expect((await listed(true)).length).toBeGreaterThan(1)
  expect(await listSandboxes(root, { workspaceId: idFrom('another'), withRemoved: true, limit: 10 })).toEqual([])
})

onBoth('room is what an engine that is ready has left, in all and of the workspace', async ({ root }) => {
  const [one, two] = [await seedWorkspace(root), await seedWorkspace(root)]
  expect(await findCloudRoom(root, one, at)).toBeNull()
  const engine = { id: 'engine', kind: 'docker', most: 3, mostOfWorkspace: 2, readyAt: at }
  await recordEngine(root, engine)
  expect(await findCloudRoom(root, one, at)).toBe(2)
  await insertSandbox(root, sandboxRow(one))
  await insertSandbox(root, sandboxRow(one, { state: 'ended' }))
  await insertSandbox(root, sandboxRow(one, { removedAt: at }))
  expect([await findCloudRoom(root, one, at), await findCloudRoom(root, two, at)]).toEqual([0, 1])
  // Fewer than there are.
  await recordEngine(root, { ...engine, most: 1 })
  expect(await findCloudRoom(root, two, at)).toBe(0)
  expect(await findCloudRoom(root, one, at + engineAwayMs)).toBeNull()
})

onBoth('what a run asked for is added up by host, within a bounded number of rows', async ({ root }) => {
  const counted = { decision: 'allowed', requests: 2, bytesSent: 3_000_000_000, bytesReceived: 5, firstAt: at } as const
  const add = (hosts: readonly string[], lastAt: number) =>
    inTransaction(root, (tx) =>
      addNetwork(
        tx,
        idFrom('run_1'),
        hosts.map((host) => ({ ...counted, host, lastAt })),
      ),
    )
  await add(['b.example', 'a.example'], at + 2)
  await add(['b.example'], at + 1)
  expect(await listNetwork(root, idFrom('run_1'))).toEqual([
    { ...counted, runId: 'run_1', host: 'a.example', lastAt: at + 2 },
    {
      ...counted,
      runId: 'run_1',
      host: 'b.example',
      requests: 4,
      bytesSent: 6_000_000_000,
      bytesReceived: 10,
      lastAt: at + 2,
    },
  ])
  await add(
    Array.from({ length: networkLimits.hosts + 50 }, (_, n) => `h${n}.example`),
    at,
  )
  const rows = await listNetwork(root, idFrom('run_1'))
  expect(rows.length).toBe(networkLimits.hosts + 1)
  expect(rows.reduce((sum, { requests }) => sum + requests, 0)).toBe(6 + 2 * (networkLimits.hosts + 50))
  expect(await listNetwork(root, idFrom('run_2'))).toEqual([])
})

onBoth('only runs of the cloud that wait want a sandbox', async ({ root }) => {
  const [one, two] = [await seedWorkspace(root), await seedWorkspace(root)]
  await seedRun(root, await seedAgent(root, one))
  await seedRun(root, await seedAgent(root, two), { environmentType: 'cloud' })
  expect(await listWorkspacesWaitingForCloud(root)).toEqual([two])
})

onBoth('a sandbox is a device to the link alone, and its first token is good for one link', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const userId = await seedPerson(root, workspaceId)
  const laptop = await seedDevice(root, { workspaceId, personUuid: userId })
  const sandbox = await seedDevice(
    root,
    { workspaceId, personUuid: userId },
    { sandboxId: idFrom<SandboxId>('sbx_1'), tokenHash: 'first' },
  )
  const ids = (rows: readonly { deviceUuid: string }[]) => rows.map(({ deviceUuid }) => deviceUuid).toSorted()
  expect(ids(await listDevicesOfWorkspace(root, workspaceId))).toEqual([laptop.deviceUuid])
  expect(ids(await listDevicesOfUser(root, workspaceId, userId))).toEqual([laptop.deviceUuid])
  expect(ids(await listPlacesOfWorkspace(root, workspaceId))).toEqual(ids([laptop, sandbox]))
  const row = (await findDeviceByToken(root, 'first'))!
  await exchangeToken(root, row, { tokenHash: 'second', at })
  expect(await findDeviceByToken(root, 'first')).toBeNull()
  const linked = (await findDeviceByToken(root, 'second'))!
  // Exchanged in the very millisecond in which it was made, it counts as exchanged all the same.
  expect(linked.tokenIssuedAt).toBeGreaterThan(linked.createdAt)
  await renewFirstToken(root, linked, 'third')
  expect(await findDeviceByToken(root, 'third')).toMatchObject({ tokenIssuedAt: linked.createdAt })
  await deleteSandboxDevice(root, laptop.deviceUuid)
  await deleteSandboxDevice(root, sandbox.deviceUuid)
  expect([await findDevice(root, laptop.deviceUuid), await findDevice(root, sandbox.deviceUuid)]).toMatchObject([
    {},
    null,
  ])
})

onBoth('a volume is left until another sandbox goes on with it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const before = sandboxRow(workspaceId, { leavesVolume: true, outOfMemory: true })
  await insertSandbox(root, before)
  expect(await listLeftVolumes(root, 'engine')).toEqual([])
  await replaceSandbox(root, before, { removedAt: at + 1 })
  expect((await listLeftVolumes(root, 'engine')).map(({ id }) => id)).toEqual([before.id])
  expect(await listLeftVolumes(root, 'another engine')).toEqual([])
  const volume = volumeOf(before)
  const isNeeded = () => isVolumeNeeded(root, volume)
  expect(await isNeeded()).toBe(true)
  const next = sandboxRow(workspaceId, { volume, size: 'medium' })
  await insertSandbox(root, next)
  const removed = (await findSandbox(root, before.id))!
  await replaceSandbox(root, removed, { leavesVolume: false })
  expect(await isNeeded()).toBe(true)
  // It works with that of the one before, and never had one of its own.
  expect(await isVolumeNeeded(root, engineNameOf(next))).toBe(false)
  await replaceSandbox(root, next, { removedAt: at + 2 })
  expect(await isNeeded()).toBe(false)
  const own = sandboxRow(workspaceId)
  await insertSandbox(root, own)
  expect(await isVolumeNeeded(root, volumeOf(own))).toBe(true)
  for (const foreign of ['svc-run_0000000000000000-1', 'somebody-elses', ''])
    expect(await isVolumeNeeded(root, foreign)).toBe(false)
})

const warmRow = (changes: Partial<WarmRow> = {}): WarmRow => ({
  id: realWorld.id('sbx_'),
  engineId: 'engine',
  device: realWorld.id('dvc_'),
  deviceUuid: idFrom(crypto.randomUUID()),
  madeOf: 'now',
  image: 'sha256:1',
  folder: '/x',
  state: 'ready',
  stateAt: at,
  keptAt: at,
  version: 1,
  createdAt: at,
  ...changes,
})

onBoth('what is made ahead is given to one run, or retired, and never both', async ({ root }) => {
  const [old, young] = [warmRow(), warmRow({ createdAt: at + 1 })]
  const others = [
    warmRow({ state: 'making' }),
    warmRow({ state: 'retiring' }),
    warmRow({ madeOf: 'before' }),
    warmRow({ engineId: 'another' }),
  ]
  for (const row of [young, old, ...others]) await insertWarm(root, row)
  expect(await listWarmOfEngine(root, 'another')).toEqual([others[3]])
  expect((await listWarmOfEngine(root, 'engine')).at(-1)).toEqual(young)
  const take = () => inTransaction(root, (tx) => takeWarm(tx, { engineId: 'engine', madeOf: 'now' }))
  expect(await take()).toEqual(old)
  expect(await findWarm(root, old.id)).toBeNull()
  // Retired by somebody who has seen it before it was taken.
  expect(await replaceWarm(root, old, { state: 'retiring' })).toBe(false)
  expect(await replaceWarm(root, young, { state: 'retiring' })).toBe(true)
  expect(await take()).toBeNull()
  expect(await deleteWarm(root, young)).toBe(false)
  expect(await deleteWarm(root, (await findWarm(root, young.id))!)).toBe(true)
  await keepWarm(root, { engineId: 'engine', madeOf: 'before' }, at + 9)
  const kept = (await listWarmOfEngine(root, 'engine')).filter(({ keptAt }) => keptAt === at + 9)
  expect(kept.map(({ id }) => id)).toEqual([others[2]!.id])
})

onBoth(
  'a volume that was made ahead is kept while it waits, with its run, and for the run after that',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const waiting = warmRow()
    const name = warmNameOf(waiting.id)
    expect(await isVolumeNeeded(root, name)).toBe(false)
    await insertWarm(root, waiting)
    expect([await isWarmVolume(root, name), await isVolumeNeeded(root, name)]).toEqual([true, true])
    await deleteWarm(root, waiting)
    const row = sandboxRow(workspaceId, { id: waiting.id, container: name, volume: name })
    await insertSandbox(root, row)
    expect([engineNameOf(row), volumeOf(row), takesOverVolume(row)]).toEqual([name, name, false])
    expect(await isVolumeNeeded(root, name)).toBe(true)
    expect(await countSandboxesOfEngine(root, 'engine')).toBe(1)
    await replaceSandbox(root, row, { removedAt: at, leavesVolume: true })
    expect(await countSandboxesOfEngine(root, 'engine')).toBe(0)
    expect(await isVolumeNeeded(root, name)).toBe(true)
    await replaceSandbox(root, (await findSandbox(root, row.id))!, { leavesVolume: false })
    expect(await isVolumeNeeded(root, name)).toBe(false)
    // The second of three leaves what the first one made to the third.
    const second = sandboxRow(workspaceId, { volume: 'svc-run_first-1', removedAt: at, leavesVolume: true })
    expect(takesOverVolume(second)).toBe(true)
    await insertSandbox(root, second)
    expect(await isVolumeNeeded(root, 'svc-run_first-1')).toBe(true)
  },
)
