import { toTimestamp } from '../../shared/api/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import { findDevice, findDeviceByPublicId } from '../resources/devices/store.ts'
import { removeDevice } from '../resources/devices/steps/remove.ts'
import { endCauses } from '../resources/members/steps/end-causes.ts'
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
} from './access-store.ts'
import { OperatorError } from './people.ts'

/** How the operator sees who has access, and ends it. A running server notices within seconds, whoever ends it. */

export interface Removal {
  email: string
  /** Becomes owner where the person is the only one. */
  newOwner: string | null
}

/**
 * Puts a person out: of every workspace, with all tokens, sessions, devices and identities; runs on the devices, and those
 * that they caused, end, and automations on their account are paused. Who they were stays, since history names them, and the operator may add them again.
 */
export async function removeUser(db: Db, world: World, { email, newOwner }: Removal) {
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
    for (const { id } of owned) await replaceMember(db, { workspaceId: id, userId: heir.id, role: 'owner', at })
  const devices = await listKnownDevices(db, { userId: user.id })
  for (const { deviceId } of devices) await endDevice(db, world, deviceId)
  const { runs, automations } = await endCauses(db, { userId: user.id }, world)
  const tokens = await revokeTokensOf(db, user.id, at)
  const sessions = await revokeSessions(db, { userId: user.id }, at)
  await removeSignInsOf(db, user.id)
  const identities = await removeIdentities(db, user.id, null)
  const workspaces = await removeMemberships(db, user.id)
  return {
    userId: user.publicId,
    removed: true as const,
    workspaces,
    devices: devices.length,
    runs,
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

export async function listSessions(db: Db, world: World, email: string | null) {
  const sessions = await listOpenSessions(db, await filterBy(db, email), world.now())
  return {
    sessions: sessions.map(({ id, email: of, createdAt, lastUsedAt, expiresAt }) => ({
      id,
      email: of,
      createdAt: toTimestamp(createdAt),
      lastUsedAt: toTimestamp(lastUsedAt),
      expiresAt: toTimestamp(expiresAt),
    })),
  }
}

/** One by its id, or all of a person. */
export async function endSessions(db: Db, world: World, by: { id: string | null; email: string | null }) {
  if ((by.id === null) === (by.email === null))
    throw new OperatorError('Name a session by its id, or a person by --email.')
  const filter = by.id === null ? await filterBy(db, by.email) : { id: by.id }
  const ended = await revokeSessions(db, filter, world.now())
  if (ended === 0 && by.id !== null) throw new OperatorError('No open session has this id.')
  return { ended }
}

export async function listTokens(db: Db, world: World, email: string | null) {
  const tokens = await listValidTokens(db, await filterBy(db, email), world.now())
  return {
    tokens: tokens.map(({ createdAt, lastUsedAt, expiresAt, ...token }) => ({
      ...token,
      createdAt: toTimestamp(createdAt),
      lastUsedAt: toTimestamp(lastUsedAt),
      expiresAt: toTimestamp(expiresAt),
    })),
  }
}

export async function listDevices(db: Db, email: string | null) {
  return { devices: await listKnownDevices(db, await filterBy(db, email)) }
}

/** By either of its ids. Its runs end, and it is told. */
export async function revokeDevice(db: Db, world: World, id: string) {
  const device = id.startsWith('dvc_') ? await findDeviceByPublicId(db, id) : await findDevice(db, id)
  if (device === null) throw new OperatorError('No device has this id.')
  await endDevice(db, world, device.deviceId)
  return { deviceId: device.deviceId, publicId: device.publicId, revoked: true as const }
}

async function endDevice(db: Db, world: World, deviceId: string): Promise<void> {
  const device = await findDevice(db, deviceId)
  if (device !== null) await removeDevice(db, device, world)
}

async function known(db: Db, email: string): Promise<UserRow> {
  const user = await findUserByEmail(db, email)
  if (user === null) throw new OperatorError(`Nobody has the address ${email}.`)
  return user
}

const filterBy = async (db: Db, email: string | null) => (email === null ? {} : { userId: (await known(db, email)).id })
