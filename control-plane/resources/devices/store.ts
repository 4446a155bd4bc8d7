import { z } from 'zod'
import { runsByChoices, type RunsBy } from '../../../shared/api/devices.ts'
import {
  claimState,
  providerReadiness,
  type ClaimState,
  type ProviderReadiness,
} from '../../../shared/device/protocol.ts'
import { int, json, nullableJson, nullableText, nullableTime, text, time, toJson } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { columnsOf, command, query } from '../../db/statement.ts'

const row = z
  .object({
    device_id: text,
    public_id: text,
    workspace_id: text,
    user_id: text,
    display_name: text,
    hostname: nullableText,
    platform: nullableText,
    version: nullableText,
    max_concurrent: int,
    token_hash: text,
    next_token_hash: nullableText,
    token_issued_at: time,
    last_heartbeat_at: nullableTime,
    provider_readiness: json(z.union([providerReadiness, z.object({}).strict()])),
    provider_readiness_at: nullableTime,
    claim_state: nullableJson(claimState),
    runs_by: z.enum(runsByChoices),
    remote_control_revoked_at: nullableTime,
    replica_id: nullableText,
    link_instance: nullableText,
    removed_at: nullableTime,
    row_version: int,
    created_at: time,
    updated_at: time,
  })
  .transform((r) => ({
    deviceId: r.device_id,
    publicId: r.public_id,
    workspaceId: r.workspace_id,
    userId: r.user_id,
    displayName: r.display_name,
    hostname: r.hostname,
    platform: r.platform,
    version: r.version,
    maxConcurrent: r.max_concurrent,
    tokenHash: r.token_hash,
    nextTokenHash: r.next_token_hash,
    tokenIssuedAt: r.token_issued_at,
    lastHeartbeatAt: r.last_heartbeat_at,
    providerReadiness: r.provider_readiness,
    providerReadinessAt: r.provider_readiness_at,
    claimState: r.claim_state,
    runsBy: r.runs_by,
    remoteControlRevokedAt: r.remote_control_revoked_at,
    replicaId: r.replica_id,
    linkId: r.link_instance,
    removedAt: r.removed_at,
    rowVersion: r.row_version,
    createdAt: r.created_at,
    updatedAt: r.updated_at,
  }))
export type DeviceRow = z.infer<typeof row>

const select = `select ${columnsOf(row)} from devices`
const byDeviceId = query(`${select} where device_id = ? and removed_at is null`, row)
const byPublicId = query(`${select} where public_id = ? and removed_at is null`, row)
const byPublicIds = query(`${select} where public_id in ? order by created_at`, row)
const byToken = query(`${select} where token_hash = ? or next_token_hash = ?`, row)
const ofWorkspace = query(`${select} where workspace_id = ? and removed_at is null`, row)

export interface NewDevice {
  deviceId: string
  publicId: string
  workspaceId: string
  userId: string
  displayName: string
  hostname: string | null
  platform: string | null
  version: string | null
  maxConcurrent: number
  runsBy: RunsBy
  remoteControlRevokedAt: number | null
  tokenHash: string
  at: number
}

export async function insertDevice(db: Db, device: NewDevice): Promise<void> {
  await db('devices').insert({
    device_id: device.deviceId,
    public_id: device.publicId,
    workspace_id: device.workspaceId,
    user_id: device.userId,
    display_name: device.displayName,
    hostname: device.hostname,
    platform: device.platform,
    version: device.version,
    max_concurrent: device.maxConcurrent,
    runs_by: device.runsBy,
    remote_control_revoked_at: device.remoteControlRevokedAt,
    token_hash: device.tokenHash,
    token_issued_at: device.at,
    provider_readiness: '{}',
    created_at: device.at,
    updated_at: device.at,
  })
}

/** A device that was not removed, by its connection id. */
export async function findDevice(db: Db, deviceId: string): Promise<DeviceRow | null> {
  return byDeviceId.first(db, [deviceId])
}

/** A device that was not removed, by its durable id. */
export async function findDeviceByPublicId(db: Db, publicId: string): Promise<DeviceRow | null> {
  return byPublicId.first(db, [publicId])
}

/** The device with this id even if it was removed since: names in old runs. */
export async function findDeviceEver(db: Db, publicId: string): Promise<DeviceRow | null> {
  const rows: unknown[] = await db('devices').where({ public_id: publicId }).orderBy('created_at', 'desc')
  const devices = rows.map((value) => row.parse(value))
  return devices.find((device) => device.removedAt === null) ?? devices[0] ?? null
}

/** By the hash of its token, or of the token it was given last and has not used yet; also removed ones. */
export async function findDeviceByToken(db: Db, tokenHash: string): Promise<DeviceRow | null> {
  return byToken.first(db, [tokenHash, tokenHash])
}

export async function listDevicesOfUser(db: Db, workspaceId: string, userId: string): Promise<DeviceRow[]> {
  const rows: unknown[] = await db('devices')
    .where({ workspace_id: workspaceId, user_id: userId })
    .whereNull('removed_at')
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'device_id', order: 'desc' },
    ])
  return rows.map((value) => row.parse(value))
}

export async function listDevicesByPublicId(db: Db, publicIds: readonly string[]): Promise<DeviceRow[]> {
  return publicIds.length === 0 ? [] : byPublicIds.list(db, [publicIds])
}

/** Devices of a workspace that were not removed. */
export async function listDevicesOfWorkspace(db: Db, workspaceId: string): Promise<DeviceRow[]> {
  const rows = await ofWorkspace.list(db, [workspaceId])
  // Sorting a few rows here costs less than having it planned.
  return rows.toSorted((a, b) => (a.deviceId < b.deviceId ? -1 : 1))
}

/** Fields a person or the device itself changes; compare-and-set on the row's version. */
export async function replaceDevice(
  db: Db,
  device: DeviceRow,
  changes: Partial<
    Pick<
      DeviceRow,
      | 'displayName'
      | 'hostname'
      | 'maxConcurrent'
      | 'runsBy'
      | 'remoteControlRevokedAt'
      | 'removedAt'
      | 'platform'
      | 'version'
    >
  > & { at: number },
): Promise<boolean> {
  const next = { ...device, ...changes }
  const changed = await db('devices')
    .where({ device_id: device.deviceId, row_version: device.rowVersion })
    .whereNull('removed_at')
    .update({
      display_name: next.displayName,
      hostname: next.hostname,
      platform: next.platform,
      version: next.version,
      max_concurrent: next.maxConcurrent,
      runs_by: next.runsBy,
      remote_control_revoked_at: next.remoteControlRevokedAt,
      removed_at: next.removedAt,
      row_version: device.rowVersion + 1,
      updated_at: changes.at,
    })
  return changed === 1
}

export interface LinkUp {
  deviceId: string
  replicaId: string
  /** Of this link alone: a daemon that reconnects has another one. */
  linkId: string
  at: number
  version: string
  platform: string
  hostname: string
  claimState: ClaimState
}

/** False when the device was removed. */
export async function markLinked(db: Db, link: LinkUp): Promise<boolean> {
  const marked = await db('devices')
    .where({ device_id: link.deviceId })
    .whereNull('removed_at')
    .update({
      replica_id: link.replicaId,
      link_instance: link.linkId,
      last_heartbeat_at: link.at,
      version: link.version,
      platform: link.platform,
      hostname: link.hostname,
      claim_state: toJson(link.claimState),
      updated_at: link.at,
    })
  return marked === 1
}

/** The link is gone; another link of the same device is not touched. */
export async function markUnlinked(db: Db, link: { deviceId: string; linkId: string }) {
  await db('devices').where({ device_id: link.deviceId, link_instance: link.linkId }).update({ replica_id: null })
}

const beat = command('update devices set last_heartbeat_at = ? where device_id in ?')

export async function recordHeartbeats(db: Db, beats: readonly { deviceId: string; at: number }[]): Promise<void> {
  // Grouped by time: all heartbeats of one second cost one statement.
  const byTime = Map.groupBy(beats, (each) => each.at)
  for (const [at, group] of byTime) {
    const devices = group.map((each) => each.deviceId)
    await beat(db, [at, devices])
  }
}

export async function recordClaimState(db: Db, deviceId: string, state: ClaimState): Promise<void> {
  await db('devices')
    .where({ device_id: deviceId })
    .update({ claim_state: toJson(state) })
}

export async function recordReadiness(db: Db, deviceId: string, readiness: ProviderReadiness, at: number) {
  await db('devices')
    .where({ device_id: deviceId })
    .update({ provider_readiness: toJson(readiness), provider_readiness_at: at })
}

/** A new token beside the old one: both work until the new one was used. */
export async function setNextToken(db: Db, deviceId: string, nextTokenHash: string): Promise<void> {
  await db('devices').where({ device_id: deviceId }).update({ next_token_hash: nextTokenHash })
}

/** The device used its new token: the old one is no longer valid. */
export async function promoteToken(db: Db, deviceId: string, tokenHash: string, at: number): Promise<void> {
  await db('devices')
    .where({ device_id: deviceId, next_token_hash: tokenHash })
    .update({ token_hash: tokenHash, next_token_hash: null, token_issued_at: at })
}

/** The replica no longer holds a link of the device. */
export async function clearLink(db: Db, deviceId: string, replicaId: string): Promise<void> {
  await db('devices').where({ device_id: deviceId, replica_id: replicaId }).update({ replica_id: null })
}

/** Forgets all links: for the start of a server that shares its database with no other. */
export async function clearAllLinks(db: Db): Promise<void> {
  await db('devices').whereNotNull('replica_id').update({ replica_id: null })
}
