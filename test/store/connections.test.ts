import { expect } from 'vitest'
import {
  claimSignIn,
  findSignIn,
  putSignIn,
  removeSignIn,
  removeSignInsOfUser,
} from '../../control-plane/resources/connections/sign-in-store.ts'
import {
  claimRenewal,
  countConnections,
  findConnection,
  findConnectionById,
  findSameConnection,
  listActiveConnections,
  listConnections,
  listConnectionsOfService,
  listLapsedConnections,
  recordConnectionUse,
  releaseRenewal,
  removeConnection,
  removeConnectionsOfUser,
  replaceConnection,
  storeRenewed,
} from '../../control-plane/resources/connections/store.ts'
import {
  findConnectionClient,
  findNewestConnectionClient,
  type ConnectionClientRow,
} from '../../control-plane/resources/connections/own/client-store.ts'
import {
  claimWithdrawal,
  hasWithdrawals,
  listDueWithdrawals,
  queueWithdrawals,
  removeWithdrawal,
} from '../../control-plane/resources/connections/withdrawal-store.ts'
import { listConnectionsForRun } from '../../control-plane/resources/connections/for-runs.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { seedConnection, seedConnectionClient, seedSignIn } from './connection-rows.ts'
import { at, seedPerson, seedWorkspace } from './seed.ts'

onBoth('a connection comes back as it was stored, and is changed by one writer at a time', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const stored = await seedConnection(root, workspaceId, { grantedScopes: ['a b'], fieldNames: ['apiKey'] })
  expect(await findConnection(root, workspaceId, stored.id)).toEqual(stored)
  expect(await findConnectionById(root, stored.id)).toEqual(stored)
  expect(await findConnection(root, await seedWorkspace(root), stored.id)).toBeNull()
  const after = { ...stored, status: 'revoked' as const, credential: null }
  await replaceConnection(root, stored, after)
  expect(await findConnection(root, workspaceId, stored.id)).toEqual({ ...after, version: 2 })
  await expect(replaceConnection(root, stored, after)).rejects.toMatchObject({ code: 'transient_conflict' })
  await recordConnectionUse(root, stored.id, at + 5)
  expect(await findConnection(root, workspaceId, stored.id)).toMatchObject({ lastUsedAt: at + 5 })
  await removeConnection(root, stored.id)
  expect(await findConnectionById(root, stored.id)).toBeNull()
})

onBoth('there is one connection to a service with the same owner and label', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const own = await seedPerson(root, workspaceId)
  const row = await seedConnection(root, workspaceId, { accountLabel: 'team' })
  const mine = await seedConnection(root, workspaceId, { accountLabel: 'team', ownerUuid: own })
  await expect(seedConnection(root, workspaceId, { accountLabel: 'team' })).rejects.toThrow(/unique/i)
  await expect(seedConnection(root, workspaceId, { accountLabel: 'team', ownerUuid: own })).rejects.toThrow(/unique/i)
  const { serviceId, accountLabel } = row
  const of = { workspaceId, serviceId, accountLabel }
  expect(await findSameConnection(root, { ...of, ownerUuid: null })).toEqual(row)
  expect(await findSameConnection(root, { ...of, ownerUuid: own })).toEqual(mine)
  expect(await findSameConnection(root, { ...of, ownerUuid: null, accountLabel: '' })).toBeNull()
  const other = await seedConnection(root, workspaceId, { accountLabel: 'b' })
  await seedConnection(root, workspaceId, { serviceId: 'other' })
  const all = await listConnectionsOfService(root, workspaceId, serviceId)
  expect(all.map(({ id }) => id)).toEqual([row.id, mine.id, other.id].toSorted())
  expect(await listConnectionsOfService(root, await seedWorkspace(root), serviceId)).toEqual([])
})

onBoth(
  'a client is of one issuer and workspace, and the newest that still works is used for more sign-ins',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const [issuer, redirectUri] = ['https://id.example.com', 'https://svc.example.com/callback']
    const store = (clientId: string, changes: Partial<ConnectionClientRow> = {}) =>
      seedConnectionClient(root, workspaceId, { issuer, redirectUri, clientId, ...changes })
    const first = await store('first')
    await store('ended', { createdAt: at + 9, secretExpiresAt: at + 10 })
    await store('elsewhere', { createdAt: at + 9, redirectUri: 'https://old.example.com/callback' })
    const ofPerson = await store('typed', { source: 'person', clientSecret: null, clientAuth: null })
    const newest = (source: 'person' | 'registration', of: object = {}) =>
      findNewestConnectionClient(root, { workspaceId, issuer, source, redirectUri, now: at + 10, ...of })
    expect(await newest('registration')).toEqual(first)
    expect(await newest('person')).toEqual(ofPerson)
    expect(await newest('registration', { issuer: 'https://id.example.com/' })).toBeNull()
    expect(await newest('registration', { workspaceId: await seedWorkspace(root) })).toBeNull()
    const again = await store('first', { createdAt: at + 1 })
    expect(await findConnectionClient(root, { workspaceId, issuer, clientId: 'first' })).toEqual(again)
    expect(await findConnectionClient(root, { workspaceId, issuer, clientId: 'other' })).toBeNull()
  },
)

onBoth('lists have what the caller sees, by what it is by now', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const own = await seedPerson(root, workspaceId)
  const labels = ['Zebra', 'apple', 'ähnlich'].map((each) => each.toLowerCase())
  const [z, a, u] = await Promise.all(
    labels.map((sortLabel, n) =>
      seedConnection(root, workspaceId, { sortLabel, createdAt: at + n, lastUsedAt: n * 3 }),
    ),
  )
  const mine = await seedConnection(root, workspaceId, { ownerUuid: own, createdAt: at + 9, sortLabel: 'x' })
  const lapsed = await seedConnection(root, workspaceId, {
    status: 'pending',
    lapsesAt: at + 10,
    createdAt: at - 1,
    sortLabel: 'y',
  })
  const base = { workspaceId, now: at + 10 }
  const ids = async (more: object) =>
    (await listConnections(root, { ...base, sort: 'created_desc', limit: 10, ...more })).map(({ id }) => id)
  expect(await ids({})).toEqual([mine.id, u!.id, a!.id, z!.id, lapsed.id])
  expect(await ids({ visibleTo: null })).toEqual([u!.id, a!.id, z!.id, lapsed.id])
  expect(await ids({ visibleTo: own, sort: 'label_asc' })).toEqual([a!.id, mine.id, lapsed.id, z!.id, u!.id])
  expect(await ids({ sort: 'label_asc', after: ['apple', a!.id], limit: 1 })).toEqual([mine.id, lapsed.id])
  expect(await ids({ status: 'expired' })).toEqual([lapsed.id])
  expect(await ids({ status: 'pending' })).toEqual([])
  expect(await ids({ status: 'pending', now: at + 9 })).toEqual([lapsed.id])
  expect(await ids({ q: a!.accountLabel })).toEqual([a!.id])
  expect(await ids({ serviceId: 'other' })).toEqual([])
  expect(await countConnections(root, { ...base, visibleTo: null })).toBe(4)
  const active = await listActiveConnections(root, { ...base, visibleTo: null })
  expect(active.map(({ id }) => id)).toEqual([a!.id, z!.id, u!.id])
  const ofRun = await listConnectionsForRun(root, { workspaceId, agentOwnerUuid: own }, at + 10)
  expect(ofRun.map(({ id }) => id)).toEqual([a!.id, mine.id, z!.id, u!.id])
  const due = (await listLapsedConnections(root, { before: at + 10, limit: 1_000 })).map(({ id }) => id)
  expect(due).toContain(lapsed.id)
  expect((await listLapsedConnections(root, { before: at + 9, limit: 1_000 })).map(({ id }) => id)).not.toContain(
    lapsed.id,
  )
})

onBoth('one renews a token at a time, and stores in place of what was renewed alone', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const row = await seedConnection(root, workspaceId)
  const claim = { id: row.id, credentialVersion: 1, now: at, until: at + 10 }
  expect(await claimRenewal(root, { ...claim, by: 'a' })).toBe(true)
  expect(await claimRenewal(root, { ...claim, by: 'b' })).toBe(false)
  await releaseRenewal(root, row.id, 'b')
  expect(await claimRenewal(root, { ...claim, by: 'b' })).toBe(false)
  await releaseRenewal(root, row.id, 'a')
  expect(await claimRenewal(root, { ...claim, by: 'b' })).toBe(true)
  expect(await claimRenewal(root, { ...claim, by: 'c', now: at + 10, until: at + 20 })).toBe(true)
  const renewed = { credential: Buffer.from('next'), expiresAt: at + 99, lapsesAt: null, grantedScopes: [] }
  expect(await storeRenewed(root, row, renewed)).toBe(true)
  expect(await storeRenewed(root, row, renewed)).toBe(false)
  expect(await claimRenewal(root, { ...claim, by: 'd', now: at + 30 })).toBe(false)
  const after = await findConnectionById(root, row.id)
  expect(after).toMatchObject({
    credentialVersion: 2,
    credential: renewed.credential,
    expiresAt: at + 99,
    renewedBy: null,
  })
  await replaceConnection(root, after!, { ...after!, status: 'revoked' })
  expect(await storeRenewed(root, after!, renewed)).toBe(false)
})

onBoth('a connection has one sign-in, whose state is claimed once', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const row = await seedConnection(root, workspaceId)
  const first = await seedSignIn(root, row)
  const second = { ...first, stateHash: realWorld.uuid() }
  await putSignIn(root, second)
  expect(await findSignIn(root, first.stateHash)).toBeNull()
  expect(await claimSignIn(root, second.stateHash, at)).toBe(true)
  expect(await claimSignIn(root, second.stateHash, at)).toBe(false)
  expect(await findSignIn(root, second.stateHash)).toEqual({ ...second, claimedAt: at })
  await removeSignIn(root, row.id)
  expect(await findSignIn(root, second.stateHash)).toBeNull()
})

onBoth("a person's own connections in a workspace are removed with their sign-ins", async ({ root }) => {
  const [workspaceId, elsewhere] = [await seedWorkspace(root), await seedWorkspace(root)]
  const userId = await seedPerson(root, workspaceId)
  const mine = await seedConnection(root, workspaceId, { ownerUuid: userId })
  const signIn = await seedSignIn(root, mine)
  const others = [await seedConnection(root, workspaceId), await seedConnection(root, elsewhere, { ownerUuid: userId })]
  await removeSignInsOfUser(root, { workspaceId, personUuid: userId })
  await removeConnectionsOfUser(root, { workspaceId, personUuid: userId })
  expect([await findSignIn(root, signIn.stateHash), await findConnectionById(root, mine.id)]).toEqual([null, null])
  for (const { id } of others) expect(await findConnectionById(root, id)).not.toBeNull()
})

onBoth(
  'tokens of connections that go are kept for their providers, and asked about by one at a time',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const own = await seedPerson(root, workspaceId)
    const mine = await seedConnection(root, workspaceId, { ownerUuid: own })
    const key = await seedConnection(root, workspaceId, { ownerUuid: own, authKind: 'api_key' })
    const shared = await seedConnection(root, workspaceId)
    await queueWithdrawals(root, { personUuid: own }, at)
    expect((await findConnectionById(root, mine.id))!.credential).toBeNull()
    expect((await findConnectionById(root, key.id))!.credential).not.toBeNull()
    expect((await findConnectionById(root, shared.id))!.credential).not.toBeNull()
    const [row, ...others] = await listDueWithdrawals(root, { now: at, limit: 9 })
    const { id: connectionId, serviceId, credential } = mine
    const id = `${connectionId}:1`
    const queued = { id, connectionId, workspaceId, serviceId, credential, tries: 0, dueAt: at }
    expect([row, others]).toEqual([queued, []])
    expect(await claimWithdrawal(root, row!, at + 5)).toBe(true)
    expect(await claimWithdrawal(root, row!, at + 5)).toBe(false)
    expect(await listDueWithdrawals(root, { now: at + 4, limit: 9 })).toEqual([])
    await queueWithdrawals(root, { workspaceId }, at)
    expect((await listDueWithdrawals(root, { now: at + 5, limit: 9 })).map((each) => each.id)).toEqual([
      `${shared.id}:1`,
      id,
    ])
    await removeWithdrawal(root, id)
    expect(await hasWithdrawals(root, workspaceId)).toBe(true)
    await removeWithdrawal(root, `${shared.id}:1`)
    expect(await hasWithdrawals(root, workspaceId)).toBe(false)
  },
)
