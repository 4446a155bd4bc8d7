import type { RunId } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { linkLimits, type CloseName } from '../../shared/device/limits.ts'
import type { DeviceMessage, ServerMessage } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { finishRun } from '../run/endings/end-run.ts'
import { startOn, takeBackOffer } from '../run/offers/lease.ts'
import { livenessOf } from '../resources/devices/rules.ts'
import {
  exchangeToken,
  findDeviceByToken,
  markLinked,
  promoteToken,
  setNextToken,
  type DeviceRow,
} from '../resources/devices/store.ts'
import { listLiveOfDevice } from '../resources/runs/live-store.ts'
import { placeOfDevice } from '../run/places/places.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import { hashToken, newToken } from '../http/token-hash.ts'
import { reconcile, type Reconciliation } from './reconcile.ts'
import { inTransaction, publish } from '../db/transaction.ts'

type Hello = DeviceMessage & { type: 'hello' }

/** Finds the device that says hello, or the close code if it may not. Writes nothing. */
export async function authenticate(
  root: Knex,
  hello: Hello,
  now: number,
): Promise<{ ok: true; device: DeviceRow } | { ok: false; close: CloseName }> {
  if (hello.protocol !== linkLimits.protocol) return { ok: false, close: 'protocol_unsupported' }
  const device = await findDeviceByToken(root, hashToken(hello.token))
  if (!device || device.publicId !== hello.publicId) return { ok: false, close: 'auth_failed' }
  if (device.removedAt !== null) return { ok: false, close: 'revoked' }
  if (livenessOf(device, now) === 'retired') return { ok: false, close: 'retired' }
  return { ok: true, device }
}

export interface Admitted {
  welcome: ServerMessage & { type: 'welcome' }
  outcome: Reconciliation
}

export interface ToAdmit {
  device: DeviceRow
  hello: Hello
  /** The device's live runs in the database when its hello came. */
  before: readonly RunRow[]
  linkId: string
}

export interface AdmitFacts {
  replicaId: string
  world: World
  heartbeatMs: number
  leaseMs: number
}

/** Says whether neither side knows of a run: such devices of a workspace may be admitted together. */
export const isIdle = ({ hello, before }: Pick<ToAdmit, 'hello' | 'before'>): boolean =>
  hello.runs.length === 0 && before.length === 0

/**
 * Admits devices of one workspace in one transaction: records their links, rotates old tokens, and reconciles the runs of both sides.
 * Each answer is null when the device was removed or connected anew since it was authenticated.
 */
export async function admitDevices(
  root: Knex,
  devices: readonly [ToAdmit, ...ToAdmit[]],
  facts: AdmitFacts,
): Promise<(Admitted | null)[]> {
  const admit = async (tx: Tx) => {
    const admitted: (Admitted | null)[] = []
    for (const each of devices) admitted.push(await admitDevice(tx, each, facts))
    return admitted
  }
  return inTransaction(root, admit, { locks: [devices[0].device.workspaceId] })
}

async function admitDevice(
  tx: Tx,
  { device, hello, before, linkId }: ToAdmit,
  { replicaId, world, heartbeatMs, leaseMs }: AdmitFacts,
): Promise<Admitted | null> {
  const now = world.now()
  const { version, platform, hostname, claimState } = hello
  const link = { deviceUuid: device.deviceUuid, replicaId, linkId, version, platform, hostname, claimState, at: now }
  const linked = await markLinked(tx, link)
  if (!linked) return null
  const newToken = await rotate(tx, device, hashToken(hello.token), world)
  const outcome = await settle(tx, { device, hello, before, world })
  await publish(tx, {
    topic: 'device.changed',
    key: device.publicId,
    payload: { workspaceId: device.workspaceId },
    at: now,
  })
  return {
    outcome,
    welcome: {
      type: 'welcome',
      deviceId: device.deviceUuid,
      displayName: device.displayName,
      heartbeatMs,
      leaseMs,
      serverTime: now,
      capacity: device.maxConcurrent,
      remoteControlRevoked: device.remoteControlRevokedAt !== null,
      runs: outcome.verdicts,
      newToken,
    },
  }
}

const leaseOf = ({ id, fence, leaseState }: RunRow) => `${id}/${fence}/${leaseState}`

/** The new token works beside the old one until it is used once, so a lost welcome costs nothing. */
async function rotate(tx: Tx, device: DeviceRow, usedHash: string, world: World): Promise<string | null> {
  if (device.nextTokenHash === usedHash) {
    await promoteToken(tx, device.deviceUuid, usedHash, world.now())
    return null
  }
  if (placeOfDevice(device).exchangesFirstToken && device.tokenIssuedAt === device.createdAt) {
    const token = newToken(world, 'svc_dev_')
    await exchangeToken(tx, device, { tokenHash: hashToken(token), at: world.now() })
    return token
  }
  if (world.now() - device.tokenIssuedAt < linkLimits.tokenRotateMs) return null
  const token = newToken(world, 'svc_dev_')
  await setNextToken(tx, device.deviceUuid, hashToken(token))
  return token
}

async function settle(
  tx: Tx,
  input: { device: DeviceRow; hello: Hello; before: readonly RunRow[]; world: World },
): Promise<Reconciliation> {
  const { device, hello, before, world } = input
  const now = world.now()
  const rows = new Map<RunId, RunRow>()
  for (const known of hello.runs) {
    const run = await findRun(tx, known.runId)
    if (run && run.workspaceId === device.workspaceId) rows.set(run.id, run)
  }
  // A hello that waited (for another replica, or a lock) does not know the runs that the device was given meanwhile
  // over another link.
  const given = new Set(before.map(leaseOf))
  const held = (await listLiveOfDevice(tx, device.publicId)).filter((run) => given.has(leaseOf(run)))
  const outcome = reconcile({ device: device.publicId, known: hello.runs, rows, held })
  for (const { id: runId, fence } of outcome.claim)
    await startOn(tx, { runId, fence, device: device.publicId, at: now, world })
  for (const run of outcome.withdraw) await takeBackOffer(tx, run, { at: now, why: 'lost_by_device' })
  const how = outcome.lost.length === 0 ? null : await placeOfDevice(device).howLost(tx, device)
  for (const run of outcome.lost)
    await finishRun(tx, run, { type: 'missing_on_device', fence: run.fence, ...how!, at: now, world })
  return outcome
}
