import type { DeviceRef, DeviceUuid, PersonUuid, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { runsByChoices } from '../../../shared/api/devices.ts'
import {
  claimState,
  providerReadiness,
  type ClaimState,
  type ProviderReadiness,
} from '../../../shared/device/protocol.ts'
import { flag, int, json, nullableJson, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { deviceRef, deviceUuid, personUuid, sandboxId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { expectOnlyWriter, table, type RowOf } from '../../db/table.ts'
import { inKeptWorkspace } from '../../db/removed.ts'
import { command } from '../../db/statement.ts'
import { personOf } from './rules.ts'

const devices = table(
  'devices',
  {
    deviceUuid,
    publicId: deviceRef,
    workspaceId: workspaceUuid,
    personUuid,
    displayName: text,
    hostname: nullableText,
    /** A person set the host name; what the device calls itself does not replace it. */
    isHostnameSet: flag,
    platform: nullableText,
    version: nullableText,
    maxConcurrent: int,
    tokenHash: text,
    nextTokenHash: nullableText,
    tokenIssuedAt: time,
    lastHeartbeatAt: nullableTime,
    providerReadiness: json(z.union([providerReadiness, z.object({}).strict()])),
    providerReadinessAt: nullableTime,
    claimState: nullableJson(claimState),
    runsBy: z.enum(runsByChoices),
    remoteControlRevokedAt: nullableTime,
    replicaId: nullableText,
    /** Unique to one link: a daemon that reconnects has another one. */
    linkId: nullableText,
    /** `sbx_...` of a sandbox, which takes one run; null: the device of a person. */
    sandboxId: sandboxId.nullable(),
    removedAt: nullableTime,
    rowVersion: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { deviceUuid: 'device_id', personUuid: 'user_id', linkId: 'link_instance' } },
)
export type DeviceRow = RowOf<typeof devices>

const byDeviceId = devices.query('where device_id = ? and removed_at is null')
const byPublicId = devices.query('where public_id = ? and removed_at is null')
const byPublicIds = devices.query('where public_id in ? order by created_at')
const byToken = devices.query(`where (token_hash = ? or next_token_hash = ?) and ${inKeptWorkspace('devices')}`)
const ofWorkspace = devices.query('where workspace_id = ? and removed_at is null')
const isOfPerson = (device: DeviceRow) => personOf(device) !== null

type IdentityFields = 'deviceUuid' | 'publicId' | 'workspaceId' | 'personUuid' | 'displayName' | 'tokenHash'
type HostFields = 'hostname' | 'platform' | 'version'
type SettingFields = 'isHostnameSet' | 'maxConcurrent' | 'runsBy' | 'remoteControlRevokedAt'
export type NewDevice = Pick<DeviceRow, IdentityFields | HostFields | SettingFields> &
  Partial<Pick<DeviceRow, 'sandboxId'>> & { at: number }

export async function insertDevice(db: Db, device: NewDevice): Promise<void> {
  const { at, ...given } = device
  await devices.insert(db, { ...given, tokenIssuedAt: at, providerReadiness: {}, createdAt: at, updatedAt: at })
}

/** A device that was not removed, by its connection id. */
export async function findDevice(db: Db, deviceUuid: DeviceUuid): Promise<DeviceRow | null> {
  return byDeviceId.first(db, [deviceUuid])
}

/** A device that was not removed, by its durable id. */
export async function findDeviceByPublicId(db: Db, publicId: DeviceRef): Promise<DeviceRow | null> {
  return byPublicId.first(db, [publicId])
}

/** The device with this id, even if it was removed since; for names in old runs. */
export async function findDeviceEver(db: Db, publicId: DeviceRef): Promise<DeviceRow | null> {
  const known = await devices.list(devices.from(db).where({ public_id: publicId }).orderBy('created_at', 'desc'))
  return known.find((device) => device.removedAt === null) ?? known[0] ?? null
}

/** Finds a device by the hash of its token, or of the new token that it has not used yet; includes removed ones. */
export async function findDeviceByToken(db: Db, tokenHash: string): Promise<DeviceRow | null> {
  return byToken.first(db, [tokenHash, tokenHash])
}

export async function listDevicesOfUser(
  db: Db,
  workspaceId: WorkspaceUuid,
  personUuid: PersonUuid,
): Promise<DeviceRow[]> {
  return devices.list(
    devices
      .from(db)
      .where({ workspace_id: workspaceId, user_id: personUuid })
      .whereNull('removed_at')
      .whereNull('sandbox_id')
      .orderByRaw('created_at desc, device_id desc'),
  )
}

export async function listDevicesByPublicId(db: Db, publicIds: readonly DeviceRef[]): Promise<DeviceRow[]> {
  return publicIds.length === 0 ? [] : byPublicIds.list(db, [publicIds])
}

/** Devices of people in a workspace that were not removed. */
export async function listDevicesOfWorkspace(db: Db, workspaceId: WorkspaceUuid): Promise<DeviceRow[]> {
  return (await listPlacesOfWorkspace(db, workspaceId)).filter(isOfPerson)
}

/** Lists devices of people and the sandboxes of cloud runs, those that were not removed. */
export async function listPlacesOfWorkspace(db: Db, workspaceId: WorkspaceUuid): Promise<DeviceRow[]> {
  const rows = await ofWorkspace.list(db, [workspaceId])
  // Sorting a few rows here is cheaper than planning it in the query.
  return rows.toSorted((a, b) => (a.deviceUuid < b.deviceUuid ? -1 : 1))
}

/** Writes fields that a person or the device itself changes, by compare-and-set on the row's version. */
export async function replaceDevice(
  db: Db,
  device: DeviceRow,
  changes: Partial<Pick<DeviceRow, 'displayName' | 'removedAt' | HostFields | SettingFields>> & { at: number },
): Promise<void> {
  const { at, ...fields } = changes
  const { deviceUuid, rowVersion } = device
  const changed = await devices.update(
    db,
    { deviceUuid, rowVersion, removedAt: null },
    { ...fields, rowVersion: rowVersion + 1, updatedAt: at },
  )
  expectOnlyWriter(changed)
}

/**
 * Stores the device's new link and what its hello says; a host name that a person set stays. Returns false when the device was
 * removed.
 */
export async function markLinked(
  db: Db,
  link: Pick<DeviceRow, 'deviceUuid' | 'replicaId' | 'linkId' | 'claimState' | HostFields> & { at: number },
): Promise<boolean> {
  const { deviceUuid, at, hostname, ...fields } = link
  const marked = await devices.update(
    db,
    { deviceUuid, removedAt: null },
    { ...fields, lastHeartbeatAt: at, updatedAt: at },
  )
  if (marked === 1) await devices.update(db, { deviceUuid, isHostnameSet: false }, { hostname })
  return marked === 1
}

/** Records that the link is gone; another link of the same device is not touched. */
export async function markUnlinked(db: Db, link: { deviceUuid: DeviceUuid; linkId: string }) {
  await db('devices').where({ device_id: link.deviceUuid, link_instance: link.linkId }).update({ replica_id: null })
}

const beat = command('update devices set last_heartbeat_at = ? where device_id in ?')

export async function recordHeartbeats(
  db: Db,
  beats: readonly { deviceUuid: DeviceUuid; at: number }[],
): Promise<void> {
  // Grouped by time, so that all heartbeats of one second take one statement.
  const byTime = Map.groupBy(beats, (each) => each.at)
  for (const [at, group] of byTime) {
    const devices = group.map((each) => each.deviceUuid)
    await beat(db, [at, devices])
  }
}

export async function recordClaimState(db: Db, deviceUuid: DeviceUuid, state: ClaimState): Promise<void> {
  await devices.update(db, { deviceUuid }, { claimState: state })
}

const allClaim = command(
  `with given (device_id text, claim_state text) as ? update devices set claim_state = given.claim_state
   from given where devices.device_id is given`,
)

/** Records the claim states of several devices. */
export async function recordClaimStates(db: Db, states: ReadonlyMap<DeviceUuid, ClaimState>): Promise<void> {
  const rows = [...states].map(([deviceUuid, claimState]) => devices.toColumns({ deviceUuid, claimState }))
  await allClaim(db, [JSON.stringify(rows)])
}

export async function recordReadiness(db: Db, deviceUuid: DeviceUuid, readiness: ProviderReadiness, at: number) {
  await devices.update(db, { deviceUuid }, { providerReadiness: readiness, providerReadinessAt: at })
}

/** Stores a new token beside the old one; both work until the new one is used. */
export async function setNextToken(db: Db, deviceUuid: DeviceUuid, nextTokenHash: string): Promise<void> {
  await db('devices').where({ device_id: deviceUuid }).update({ next_token_hash: nextTokenHash })
}

/** Called when the device used its new token: the old one becomes invalid. */
export async function promoteToken(db: Db, deviceUuid: DeviceUuid, tokenHash: string, at: number): Promise<void> {
  await db('devices')
    .where({ device_id: deviceUuid, next_token_hash: tokenHash })
    .update({ token_hash: tokenHash, next_token_hash: null, token_issued_at: at })
}

/** Gives a sandbox a token for one link again, in place of all that it had. */
export async function renewFirstToken(db: Db, { deviceUuid, createdAt }: DeviceRow, tokenHash: string): Promise<void> {
  await devices.update(db, { deviceUuid }, { tokenHash, nextTokenHash: null, tokenIssuedAt: createdAt })
}

/** Never a device of a person. */
export async function deleteSandboxDevice(db: Db, deviceUuid: DeviceUuid): Promise<void> {
  await db('devices').where({ device_id: deviceUuid }).whereNotNull('sandbox_id').delete()
}

/** Stores a new token in place of the one that was used, which is invalid at once. */
export async function exchangeToken(
  db: Db,
  { deviceUuid, createdAt }: DeviceRow,
  { tokenHash, at }: { tokenHash: string; at: number },
): Promise<void> {
  const tokenIssuedAt = Math.max(at, createdAt + 1)
  await devices.update(db, { deviceUuid }, { tokenHash, nextTokenHash: null, tokenIssuedAt })
}

/** Records that the replica no longer holds a link of the device. */
export async function clearLink(db: Db, deviceUuid: DeviceUuid, replicaId: string): Promise<void> {
  await db('devices').where({ device_id: deviceUuid, replica_id: replicaId }).update({ replica_id: null })
}

/** Forgets all links, at the start of a server that shares its database with no other. */
export async function clearAllLinks(db: Db): Promise<void> {
  await db('devices').whereNotNull('replica_id').update({ replica_id: null })
}
