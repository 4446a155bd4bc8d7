import type { DeviceUuid } from '../../shared/lib/ids.ts'
import { toTimestamp } from '../../shared/api/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db, Tx } from '../db/open.ts'
import { findOwnedDevice } from '../resources/devices/lookup.ts'
import { findDevice } from '../resources/devices/store.ts'
import { removeDevice } from '../resources/devices/steps/remove.ts'
import { forgetConnectionsOf } from '../resources/connections/steps/change.ts'
import { endCauses } from '../resources/departures/steps/end-work.ts'
import { findUserByEmail, replaceMember, type UserRow } from '../resources/members/store.ts'
import { removeIdentities } from '../sign-in/oidc/store.ts'
import {
  listKnownDevices,
  listOpenSessions,
  listSolelyOwned,
  listValidTokens,
  removeMemberships,
  removeSignInsOf,
  revokeSessions,
  revokeTokensOf,
  type OpenSessionRow,
  type ValidTokenRow,
} from './access-store.ts'
import { OperatorError } from './people.ts'

// The operator's view of who has access, and ways to end it. A running server notices within seconds, whatever ended
// it.

export interface Removal {
  email: string
  /** Becomes owner of workspaces whose only owner is removed. */
  newOwner: string | null
}

/**
 * Removes a person from every workspace, with all tokens, sessions, devices and identities. Runs on the devices and
 * runs that they caused end, and automations on their account are paused. The user's row stays, since history names it,
 * and the operator may add the person again.
 */
export async function removeUser(db: Tx, world: World, { email, newOwner }: Removal) {
  const user = await known(db, email)
  const owned = await listSolelyOwned(db, user.id)
  const heir = newOwner === null ? null : await known(db, newOwner)
  if (heir?.id === user.id) throw new OperatorError('The new owner is the person who is removed.')
  if (owned.length > 0 && heir === null) {
    const slugs = owned.map(({ slug }) => slug).join(', ')
    throw new OperatorError(`${user.email} is the only owner of ${slugs}. Name another one with --new-owner EMAIL.`)
  }
  const at = world.now()
  if (heir !== null)
    for (const { id } of owned) await replaceMember(db, { workspaceId: id, personUuid: heir.id, role: 'owner', at })
  const devices = await listKnownDevices(db, { personUuid: user.id })
  let onDevices = 0
  for (const { deviceUuid } of devices) onDevices += await endDevice(db, world, deviceUuid)
  const { runs: caused, workflowRuns, automations } = await endCauses(db, { personUuid: user.id }, world)
  const tokens = await revokeTokensOf(db, user.id, at)
  const sessions = await revokeSessions(db, { personUuid: user.id }, at)
  await removeSignInsOf(db, user.id)
  await forgetConnectionsOf(db, { personUuid: user.id }, at)
  const identities = await removeIdentities(db, user.id, null)
  const workspaces = await removeMemberships(db, user.id)
  return {
    userId: user.publicId,
    removed: true as const,
    workspaces,
    devices: devices.length,
    /** The runs on the person's devices, and those elsewhere that the person caused. */
    runs: onDevices + caused,
    workflowRuns,
    automations,
    tokens,
    sessions,
    identities,
  }
}

/** Forgets who the person is at an issuer, so that the next sign-in there with the verified address counts. */
export async function unlinkUser(db: Db, { email, issuer }: { email: string; issuer: string | null }) {
  const user = await known(db, email)
  const identities = await removeIdentities(db, user.id, issuer)
  if (identities === 0) throw new OperatorError(`${user.email} has not signed in at ${issuer ?? 'an issuer'}.`)
  return { userId: user.publicId, identities }
}

const withTimestamps = ({ createdAt, lastUsedAt, expiresAt, ...row }: OpenSessionRow | ValidTokenRow) => ({
  ...row,
  createdAt: toTimestamp(createdAt),
  lastUsedAt: toTimestamp(lastUsedAt),
  expiresAt: toTimestamp(expiresAt),
})

export interface Listed {
  /** null: of everybody. */
  email: string | null
  /** The time (ms) after which what was not used does not work any more; null or left out: it works on. */
  idleMs?: number | null
}

export async function listSessions(db: Db, world: World, listed: Listed) {
  const sessions = await listOpenSessions(db, await usedBy(db, world, listed), world.now())
  return { sessions: sessions.map(withTimestamps) }
}

/** Ends one session by its id, or all of a person. */
export async function endSessions(db: Db, world: World, by: { id: string | null; email: string | null }) {
  if ((by.id === null) === (by.email === null))
    throw new OperatorError('Name a session by its id, or a person by --email.')
  const filter = by.id === null ? await filterBy(db, by.email) : { id: by.id }
  const ended = await revokeSessions(db, filter, world.now())
  if (ended === 0 && by.id !== null) throw new OperatorError('No open session has this id.')
  return { ended }
}

export async function listTokens(db: Db, world: World, listed: Listed) {
  const tokens = await listValidTokens(db, await usedBy(db, world, listed), world.now())
  return { tokens: tokens.map(withTimestamps) }
}

export async function listDevices(db: Db, email: string | null) {
  const devices = await listKnownDevices(db, await filterBy(db, email))
  return { devices: devices.map(({ deviceUuid, ...shown }) => ({ deviceId: deviceUuid, ...shown })) }
}

/** Revokes a device by either of its ids. Its runs end, and it is told. */
export async function revokeDevice(db: Db, world: World, id: string) {
  const device = await findOwnedDevice(db, id)
  if (device === null) throw new OperatorError('No device has this id.')
  await endDevice(db, world, device.deviceUuid)
  return { deviceId: device.deviceUuid, publicId: device.publicId, revoked: true as const }
}

/** Returns the number of runs that ended with it. */
async function endDevice(db: Db, world: World, deviceUuid: DeviceUuid): Promise<number> {
  const device = await findDevice(db, deviceUuid)
  return device === null ? 0 : removeDevice(db, device, world)
}

async function known(db: Db, email: string): Promise<UserRow> {
  const user = await findUserByEmail(db, email)
  if (user === null) throw new OperatorError(`Nobody has the address ${email}.`)
  return user
}

const filterBy = async (db: Db, email: string | null) =>
  email === null ? {} : { personUuid: (await known(db, email)).id }

const usedBy = async (db: Db, world: World, { email, idleMs }: Listed) => ({
  ...(await filterBy(db, email)),
  ...(idleMs != null && { usedSince: world.now() - idleMs }),
})
