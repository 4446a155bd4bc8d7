import { idFrom, type DeviceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { hashToken } from '../../control-plane/http/token-hash.ts'
import {
  endSessions,
  listDevices,
  listSessions,
  listTokens,
  removeUser,
  revokeDevice,
  unlinkUser,
} from '../../control-plane/operator/access.ts'
import {
  listKnownDevices,
  listOpenSessions,
  listSolelyOwned,
  listValidTokens,
  removeMemberships,
  removeSignInsOf,
  revokeSessions,
  revokeTokensOf,
} from '../../control-plane/operator/access-store.ts'
import { durationMs } from '../../control-plane/operator/duration.ts'
import { addUser, createToken, OperatorError, revokeToken } from '../../control-plane/operator/people.ts'
import { findLogin, markSessionUsed } from '../../control-plane/http/caller-store.ts'
import { insertDevice } from '../../control-plane/resources/devices/store.ts'
import { findRole, findUserByEmail } from '../../control-plane/resources/members/store.ts'
import { hasIdentity, insertIdentity, lockUser, removeIdentities } from '../../control-plane/sign-in/oidc/store.ts'
import { insertLink, insertSession } from '../../control-plane/sign-in/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { realWorld as world } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'

const issuer = 'https://issuer.example.com'

/** A person with one of everything by which somebody has access. */
async function personWithAll(root: Db, email: string, workspace = 'main') {
  const added = await addUser(root, world, { name: 'Ada', email, role: 'owner', workspace })
  const { id: userId } = (await findUserByEmail(root, email))!
  const at = world.now()
  const common = { personUuid: userId, workspaceId: added.workspaceId, at }
  const signIn = { ...common, tokenHash: email, createdAt: at, expiresAt: at + 60_000 }
  await insertSession(root, { ...signIn, id: world.id('ses_') })
  await insertLink(root, { ...signIn, id: world.id('lnk_') })
  await insertIdentity(root, { issuer, subject: email, personUuid: userId, at })
  const device = { deviceUuid: idFrom<DeviceUuid>(world.uuid()), publicId: world.id('dvc_'), displayName: 'laptop' }
  await insertDevice(root, {
    ...common,
    ...device,
    hostname: null,
    isHostnameSet: false,
    platform: null,
    version: null,
    maxConcurrent: 1,
    runsBy: 'members',
    remoteControlRevokedAt: null,
    tokenHash: device.publicId,
  })
  return {
    ...added,
    userId,
    device,
    sessionOf: async () => (await listOpenSessions(root, { personUuid: userId }, world.now()))[0],
  }
}

onBoth('a person who is removed has nothing left, and may come again', async ({ root }) => {
  const ada = await personWithAll(root, 'ada@example.com')
  const bob = await personWithAll(root, 'bob@example.com')
  const removed = await root.transaction((tx) => removeUser(tx, world, { email: 'Ada@example.com', newOwner: null }))
  expect(removed).toMatchObject({ removed: true, workspaces: 1, devices: 1, tokens: 1, sessions: 1, identities: 1 })
  expect(await findRole(root, ada.workspaceId, ada.userId)).toBeNull()
  expect((await findLogin(root, hashToken(ada.token)))?.revoked_at).not.toBeNull()
  expect([
    await listTokens(root, world, { email: 'ada@example.com' }),
    await listSessions(root, world, { email: 'ada@example.com' }),
  ]).toEqual([{ tokens: [] }, { sessions: [] }])
  expect(await listDevices(root, 'ada@example.com')).toEqual({ devices: [] })
  expect(await root('sign_in_links').where({ user_id: ada.userId })).toEqual([])
  // The other one has all of it still.
  expect((await listDevices(root, null)).devices).toMatchObject([
    { publicId: bob.device.publicId, email: 'bob@example.com' },
  ])
  expect((await listTokens(root, world, { email: null })).tokens).toMatchObject([{ email: 'bob@example.com' }])
  expect(await bob.sessionOf()).toMatchObject({ email: 'bob@example.com' })
  const again = await addUser(root, world, { name: 'Ada', email: 'ada@example.com', role: null, workspace: 'main' })
  expect([await findRole(root, again.workspaceId, ada.userId), again.token === ada.token]).toEqual(['member', false])
})

onBoth('who is removed loses the tokens that still worked, and no others are counted', async ({ root }) => {
  const { userId } = await personWithAll(root, 'ada@example.com')
  const past = { ...world, now: () => world.now() - 7_200_000 }
  const grant = { email: 'ada@example.com', workspace: null, name: null, lifeMs: 3_600_000 }
  const over = await createToken(root, past, grant)
  expect((await listTokens(root, world, { email: null })).tokens).toHaveLength(1)
  expect(await revokeTokensOf(root, userId, world.now())).toBe(1)
  await expect(revokeToken(root, world, over.token)).rejects.toThrow(/No valid login token/)
})

onBoth('sessions and tokens that were unused for too long are not listed', async ({ root }) => {
  await personWithAll(root, 'ada@example.com')
  const later = { ...world, now: () => world.now() + 30_000 }
  const idleMs = 20_000
  expect((await listSessions(root, later, { email: null })).sessions).toHaveLength(1)
  expect((await listSessions(root, later, { email: null, idleMs })).sessions).toEqual([])
  expect((await listTokens(root, later, { email: null })).tokens).toHaveLength(1)
  expect((await listTokens(root, later, { email: null, idleMs })).tokens).toEqual([])
})

onBoth('the last owner of a workspace is removed only with another one named', async ({ root }) => {
  const ada = await personWithAll(root, 'ada@example.com')
  const second = await personWithAll(root, 'ada@example.com', 'second').catch(() => null)
  expect(second).toBeNull()
  await addUser(root, world, { name: 'Bob', email: 'bob@example.com', role: 'member', workspace: 'main' })
  const remove = (newOwner: string | null) =>
    root.transaction((tx) => removeUser(tx, world, { email: 'ada@example.com', newOwner }))
  expect(await listSolelyOwned(root, ada.userId)).toMatchObject([{ slug: 'main' }, { slug: 'second' }])
  await expect(remove(null)).rejects.toThrow(/only owner of main, second/)
  await expect(remove('ada@example.com')).rejects.toThrow(OperatorError)
  await expect(remove('nobody@example.com')).rejects.toThrow(/Nobody/)
  expect(await findRole(root, ada.workspaceId, ada.userId)).toBe('owner')
  await remove('bob@example.com')
  const bob = (await findUserByEmail(root, 'bob@example.com'))!
  expect(await findRole(root, ada.workspaceId, bob.id)).toBe('owner')
})

onBoth('sessions, devices and identities are ended one by one', async ({ root }) => {
  const ada = await personWithAll(root, 'ada@example.com')
  const { id } = (await ada.sessionOf())!
  await markSessionUsed(root, id, world.now())
  expect((await listSessions(root, world, { email: null })).sessions).toMatchObject([
    { id, lastUsedAt: expect.any(String) },
  ])
  await expect(endSessions(root, world, { id: null, email: null })).rejects.toThrow(/Name a session/)
  await expect(endSessions(root, world, { id: 'ses_no', email: null })).rejects.toThrow(/No open session/)
  expect(await endSessions(root, world, { id, email: null })).toEqual({ ended: 1 })
  expect(await endSessions(root, world, { id: null, email: 'ada@example.com' })).toEqual({ ended: 0 })
  expect(await revokeDevice(root, world, ada.device.publicId)).toMatchObject({ revoked: true })
  await expect(revokeDevice(root, world, ada.device.deviceUuid)).rejects.toThrow(/No device/)
  expect(await hasIdentity(root, { issuer, personUuid: ada.userId })).toBe(true)
  await expect(unlinkUser(root, { email: 'ada@example.com', issuer: 'https://other' })).rejects.toThrow(/not signed in/)
  expect(await unlinkUser(root, { email: 'ada@example.com', issuer })).toMatchObject({ identities: 1 })
  expect(await hasIdentity(root, { issuer, personUuid: ada.userId })).toBe(false)
})

onBoth('of one person only', async ({ root }) => {
  const [ada, bob] = [await personWithAll(root, 'ada@example.com'), await personWithAll(root, 'bob@example.com')]
  const now = world.now()
  const { userId } = ada
  await root.transaction((tx) => lockUser(tx, userId))
  expect([await revokeSessions(root, { personUuid: userId }, now), await revokeTokensOf(root, userId, now)]).toEqual([
    1, 1,
  ])
  expect([await removeMemberships(root, userId), await removeIdentities(root, userId, null)]).toEqual([1, 1])
  await removeSignInsOf(root, userId)
  expect(await root('sign_in_links')).toHaveLength(1)
  expect(await listKnownDevices(root, { personUuid: userId })).toMatchObject([{ publicId: ada.device.publicId }])
  expect(await listValidTokens(root, { personUuid: bob.userId }, now)).toHaveLength(1)
  expect(await listValidTokens(root, { personUuid: userId }, now)).toEqual([])
})

onBoth('a token ends by itself when it was made so', async ({ root }) => {
  await addUser(root, world, { name: 'Ada', email: 'ada@example.com', role: null, workspace: 'main' })
  const made = await createToken(root, world, {
    email: 'ada@example.com',
    workspace: null,
    name: 'short',
    lifeMs: durationMs('12h'),
  })
  const { expires_at: expiresAt } = (await findLogin(root, hashToken(made.token)))!
  expect(Math.abs(expiresAt! - world.now() - 12 * 3_600_000)).toBeLessThan(60_000)
  for (const wrong of ['', '0d', '12', 'd', '1y', '12h ']) expect(() => durationMs(wrong)).toThrow(/no duration/)
  expect([durationMs('30d'), durationMs('2w')]).toEqual([30 * 86_400_000, 14 * 86_400_000])
})

onBoth('the only owner of a workspace stays its owner', async ({ root }) => {
  const add = (email: string, role: 'owner' | 'member') =>
    addUser(root, world, { name: 'Ada', email, role, workspace: 'alone' })
  const { workspaceId } = await add('ada@example.com', 'owner')
  await expect(add('ada@example.com', 'member')).rejects.toThrow('ada@example.com is the only owner of alone')
  await add('bob@example.com', 'owner')
  await add('ada@example.com', 'member')
  const roleOf = async (email: string) => findRole(root, workspaceId, (await findUserByEmail(root, email))!.id)
  expect([await roleOf('ada@example.com'), await roleOf('bob@example.com')]).toEqual(['member', 'owner'])
})
