import { idFrom, type PersonUuid, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { findSession, markSessionUsed } from '../../control-plane/http/caller-store.ts'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { insertLoginToken, revokeLoginToken, replaceMember } from '../../control-plane/resources/members/store.ts'
import {
  claimGrantDecision,
  claimGrantRedemption,
  claimGuess,
  findDeviceGrant,
  findGrantByUserCode,
  findGrantToPoll,
  insertDeviceGrant,
  removeOldGrants,
  replaceGrantPoll,
  type NewGrant,
} from '../../control-plane/sign-in/device-flow/store.ts'
import {
  claimAttempt,
  findUserOfIdentity,
  insertAttempt,
  insertIdentity,
  removeOldAttempts,
} from '../../control-plane/sign-in/oidc/store.ts'
import {
  claimLink,
  findOpenLink,
  findOpenSession,
  insertLink,
  insertSession,
  removeOldSignIns,
  revokeSession,
} from '../../control-plane/sign-in/store.ts'
import { listLoginTokens, revokeTokenIn } from '../../control-plane/sign-in/token-store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedPerson, seedWorkspace } from './seed.ts'

const newGrant = (id: string, changes: Partial<NewGrant> = {}): NewGrant => ({
  id,
  deviceCodeHash: `${id}-device`,
  userCodeHash: `${id}-user`,
  clientName: 'laptop',
  address: '10.0.0.1',
  intervalMs: 5_000,
  createdAt: at,
  expiresAt: at + 100,
  ...changes,
})

onBoth('a grant of the device flow is found by its codes, polled, decided once and redeemed once', async ({ root }) => {
  await insertDeviceGrant(root, newGrant('g'))
  expect(await insertDeviceGrant(root, newGrant('h', { userCodeHash: 'g-user' })).catch(databaseTroubleOf)).toBe(
    'duplicate',
  )
  const grant = await findDeviceGrant(root, 'g')
  expect(grant).toEqual({
    id: 'g',
    deviceCodeHash: 'g-device',
    userCodeHash: 'g-user',
    clientName: 'laptop',
    address: '10.0.0.1',
    status: 'pending',
    personUuid: null,
    workspaceId: null,
    intervalMs: 5_000,
    lastPolledAt: null,
    createdAt: at,
    expiresAt: at + 100,
  })
  expect(await findGrantByUserCode(root, 'g-user')).toEqual(grant)
  expect(await findGrantByUserCode(root, 'g-device')).toBeNull()
  await root.transaction(async (tx) => {
    expect(await findGrantToPoll(tx, 'g-device')).toEqual(grant)
    expect(await findGrantToPoll(tx, 'g-user')).toBeNull()
    await replaceGrantPoll(tx, 'g', { at: at + 5, intervalMs: 10_000 })
  })
  expect(await findDeviceGrant(root, 'g')).toMatchObject({ lastPolledAt: at + 5, intervalMs: 10_000 })
  expect(await claimGrantRedemption(root, 'g')).toBe(false)
  const decision = { status: 'approved', personUuid: idFrom<PersonUuid>('u'), workspaceId: 'w' } as const
  expect(await claimGrantDecision(root, 'g', { ...decision, at: at + 100 })).toBe(false)
  expect(await claimGrantDecision(root, 'g', { ...decision, at: at + 99 })).toBe(true)
  expect(await claimGrantDecision(root, 'g', { ...decision, status: 'denied', at: at + 99 })).toBe(false)
  expect(await findDeviceGrant(root, 'g')).toMatchObject({ status: 'approved', personUuid: 'u', workspaceId: 'w' })
  const claims = await Promise.all(Array.from({ length: 5 }, () => claimGrantRedemption(root, 'g')))
  expect(claims.filter(Boolean)).toHaveLength(1)
  await removeOldGrants(root, at + 100)
  expect(await findDeviceGrant(root, 'g')).not.toBeNull()
  await removeOldGrants(root, at + 101)
  expect(await findDeviceGrant(root, 'g')).toBeNull()
})

onBoth('entered codes are counted per person and window, also when they come at once', async ({ root }) => {
  const enter = (userId: string, when: number) =>
    claimGuess(root, { personUuid: idFrom(userId), at: when, windowMs: 50 })
  const counts = await Promise.all(Array.from({ length: 8 }, () => enter('u', at)))
  expect(Math.max(...counts)).toBe(8)
  expect(await enter('other', at)).toBe(1)
  expect(await enter('u', at + 49)).toBe(9)
  expect(await enter('u', at + 50)).toBe(1)
  expect(await enter('u', at + 51)).toBe(2)
  await removeOldGrants(root, at + 51)
  expect(await enter('u', at + 52)).toBe(1)
})

onBoth('a session is open until it is revoked or over, and names the workspace it works in', async ({ root }) => {
  const { one, two, userId } = await personOfTwo(root)
  const session = { id: 's', personUuid: userId, workspaceId: two, tokenHash: 'sh', createdAt: at, expiresAt: at + 100 }
  const openAt = (hash: string, now: number, usedSince = 0) => findOpenSession(root, hash, { now, usedSince })
  await insertSession(root, session)
  expect(await openAt('sh', at + 99)).toMatchObject({
    id: 's',
    personUuid: userId,
    workspaceId: two,
    name: 'Somebody',
  })
  expect(await openAt('sh', at + 100)).toBeNull()
  expect(await openAt('no', at)).toBeNull()
  expect(await openAt('sh', at + 50, at)).toBeNull()
  await markSessionUsed(root, 's', at + 1)
  expect(await openAt('sh', at + 50, at)).toMatchObject({ id: 's' })
  const callerIn = async (tokenHash: string, workspaceId: string | null) =>
    (await findSession(root, { tokenHash, workspaceId }))?.workspace_id
  expect(await callerIn('sh', null)).toBe(two)
  expect(await callerIn('sh', one)).toBe(one)
  await insertSession(root, { ...session, id: 's2', tokenHash: 'sh2', workspaceId: null })
  expect(await callerIn('sh2', null)).toBe(one)
  // A workspace the person has left since.
  await insertSession(root, { ...session, id: 's3', tokenHash: 'sh3', workspaceId: idFrom<WorkspaceUuid>('gone') })
  expect(await callerIn('sh3', null)).toBe(one)
  expect(await revokeSession(root, 'sh', at + 1)).toBe(true)
  expect(await revokeSession(root, 'sh', at + 2)).toBe(false)
  expect(await openAt('sh', at + 3)).toBeNull()
  await removeOldSignIns(root, at + 101)
  expect(await root('dashboard_sessions')).toEqual([])
})

onBoth('a link is used once and in time', async ({ root }) => {
  const link = {
    id: 'l',
    tokenHash: 'lh',
    personUuid: idFrom<PersonUuid>('u'),
    workspaceId: null,
    createdAt: at,
    expiresAt: at + 100,
  }
  await insertLink(root, link)
  expect(await findOpenLink(root, 'lh', at + 99)).toEqual(link)
  expect(await findOpenLink(root, 'lh', at + 100)).toBeNull()
  expect(await claimLink(root, 'l', at + 100)).toBe(false)
  const claims = await Promise.all(Array.from({ length: 5 }, () => claimLink(root, 'l', at + 99)))
  expect(claims.filter(Boolean)).toHaveLength(1)
  expect(await findOpenLink(root, 'lh', at + 50)).toBeNull()
  await removeOldSignIns(root, at + 101)
  expect(await root('sign_in_links')).toEqual([])
})

onBoth('a sign-in at the issuer is given once; an identity stays the first person’s', async ({ root }) => {
  const attempt = { stateHash: 'state', browserHash: 'b', codeVerifier: 'v', nonce: 'n', expiresAt: at }
  await insertAttempt(root, attempt)
  const claims = await Promise.all(Array.from({ length: 5 }, () => claimAttempt(root, 'state')))
  expect(claims.filter((claim) => claim !== null)).toEqual([attempt])
  await insertAttempt(root, { ...attempt, stateHash: 'old' })
  await removeOldAttempts(root, at + 1)
  expect(await claimAttempt(root, 'old')).toBeNull()
  const identity = { issuer: 'https://id.example.com', subject: '1' }
  expect(await findUserOfIdentity(root, identity)).toBeNull()
  await insertIdentity(root, { ...identity, personUuid: idFrom('u'), at })
  await insertIdentity(root, { ...identity, personUuid: idFrom('other'), at })
  expect(await findUserOfIdentity(root, identity)).toBe('u')
  expect(await findUserOfIdentity(root, { ...identity, issuer: 'https://other.example.com' })).toBeNull()
})

onBoth('login tokens are listed newest first, without those of others or those over', async ({ root }) => {
  const { one, two, userId } = await personOfTwo(root)
  const other = await seedPerson(root, one)
  const insert = (id: string, changes: object = {}) =>
    insertLoginToken(root, {
      id,
      personUuid: userId,
      workspaceId: one,
      tokenHash: `${id}-hash`,
      name: id,
      at,
      ...changes,
    })
  await insert('a')
  await insert('b')
  await insert('c', { at: at + 1 })
  await insert('elsewhere', { workspaceId: two })
  await insert('others', { personUuid: other })
  await insert('revoked')
  await revokeLoginToken(root, { id: 'revoked' }, at)
  await insert('over')
  await root('login_tokens')
    .where({ id: 'over' })
    .update({ expires_at: at + 10 })
  const list = async (changes: Partial<Parameters<typeof listLoginTokens>[1]> = {}) => {
    const filter = { workspaceId: one, personUuid: userId, now: at + 10, limit: 10, ...changes }
    return (await listLoginTokens(root, filter)).map(({ id }) => id)
  }
  expect(await list()).toEqual(['c', 'b', 'a'])
  expect(await list({ now: at + 9 })).toEqual(['c', 'over', 'b', 'a'])
  expect(await list({ personUuid: null })).toEqual(['c', 'others', 'b', 'a'])
  expect(await list({ limit: 1 })).toEqual(['c', 'b'])
  expect(await list({ before: { createdAt: at, id: 'b' } })).toEqual(['a'])
  const revoke = (id: string, changes: object = {}) =>
    revokeTokenIn(root, { id, personUuid: userId, workspaceId: one, ...changes }, at + 10)
  for (const id of ['others', 'elsewhere', 'over', 'revoked', 'unknown']) expect(await revoke(id)).toBe(false)
  expect(await revoke('a')).toBe(true)
  expect(await revoke('a')).toBe(false)
  expect(await list()).toEqual(['c', 'b'])
})

async function personOfTwo(root: Db) {
  const [one, two] = [await seedWorkspace(root), await seedWorkspace(root)]
  const userId = await seedPerson(root, one)
  await replaceMember(root, { workspaceId: two, personUuid: userId, role: 'member', at: at + 1 })
  return { one, two, userId }
}
