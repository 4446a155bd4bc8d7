import {
  idFrom,
  type CompanyUuid,
  type PersonRef,
  type PersonUuid,
  type WorkspaceRef,
  type WorkspaceUuid,
} from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { findLogin, findRunOfToken, findSession, markLoginUsed } from '../../control-plane/http/caller-store.ts'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import {
  countUsers,
  findRole,
  findUser,
  findUserByEmail,
  findUserByPublicId,
  listUsersByIds,
  insertLoginToken,
  insertUser,
  listAdmins,
  listMembers,
  replaceMember,
  revokeLoginToken,
} from '../../control-plane/resources/members/store.ts'
import {
  clearDefaultDevice,
  findWorkspace,
  findWorkspaceBySlug,
  idleCompactionDefault,
  insertCompany,
  insertWorkspace,
  listAllWorkspaces,
  listWorkspacesOfCompany,
  listMemberships,
  replaceDefaultDevice,
} from '../../control-plane/resources/workspaces/store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedPerson, seedRun, seedWorkspace } from './seed.ts'

onBoth('people and their roles', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  expect(await countUsers(root)).toBe(0)
  const user = {
    id: idFrom<PersonUuid>('u1'),
    publicId: idFrom<PersonRef>('usr_1'),
    name: 'Ada',
    email: 'ada@example.com',
    createdAt: at,
  }
  await insertUser(root, user)
  expect(
    await insertUser(root, { ...user, id: idFrom('u2'), publicId: idFrom('usr_2') }).catch(databaseTroubleOf),
  ).toBe('duplicate')
  expect(await countUsers(root)).toBe(1)
  expect(await findUser(root, idFrom('u1'))).toEqual(user)
  expect(await findUser(root, idFrom('u9'))).toBeNull()
  expect(await findUserByEmail(root, 'ADA@example.com')).toEqual(user)
  expect(await findUserByEmail(root, 'x@example.com')).toBeNull()
  expect(await findUserByPublicId(root, idFrom('usr_1'))).toEqual(user)
  expect(await findUserByPublicId(root, idFrom('usr_9'))).toBeNull()
  expect(await listUsersByIds(root, [idFrom('u9'), idFrom('u1')])).toEqual([user])
  expect(await listUsersByIds(root, [])).toEqual([])
  expect(await findRole(root, workspaceId, idFrom('u1'))).toBeNull()
  await replaceMember(root, { workspaceId, personUuid: idFrom('u1'), role: 'member', at })
  await replaceMember(root, { workspaceId, personUuid: idFrom('u1'), role: 'admin', at: at + 9 })
  expect(await findRole(root, workspaceId, idFrom('u1'))).toBe('admin')
  const second = await seedPerson(root, workspaceId)
  await replaceMember(root, { workspaceId, personUuid: second, role: 'owner', at: at + 1 })
  expect((await listAdmins(root, workspaceId)).toSorted()).toEqual(['u1', second].toSorted())
  const another = await seedWorkspace(root)
  await replaceMember(root, { workspaceId: another, personUuid: idFrom('u1'), role: 'member', at })
  expect(await listAdmins(root, another)).toEqual([])
  const members = await listMembers(root, workspaceId)
  expect(members.map((member) => [member.id, member.role, member.joinedAt])).toEqual(
    [
      ['u1', 'admin', at],
      [second, 'owner', at],
    ].toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
  )
})

onBoth('workspaces with their defaults, memberships and default device', async ({ root }) => {
  await insertCompany(root, { id: 'c', name: 'Company', at })
  const created = {
    id: idFrom<WorkspaceUuid>('w'),
    publicId: idFrom<WorkspaceRef>('ws_1'),
    companyId: idFrom<CompanyUuid>('c'),
    name: 'One',
    slug: 'one',
    issuePrefix: 'ONE',
    at,
  }
  await insertWorkspace(root, created)
  const workspace = await findWorkspace(root, idFrom('w'))
  expect(workspace).toMatchObject({
    slug: 'one',
    status: 'active',
    issueCounter: 0,
    agentsPaused: false,
    oomResume: false,
    sandboxEgress: [],
    cloudEnabled: true,
    isBillingLocked: false,
    mcpServers: null,
    idleCompaction: idleCompactionDefault,
    defaultDevice: null,
  })
  expect(await findWorkspaceBySlug(root, 'one')).toEqual(workspace)
  expect(await findWorkspaceBySlug(root, 'two')).toBeNull()
  expect(await findWorkspace(root, idFrom('x'))).toBeNull()
  const again = insertWorkspace(root, { ...created, id: idFrom('w2'), publicId: idFrom('ws_2') }).catch(
    databaseTroubleOf,
  )
  expect(await again).toBe('duplicate')
  await seedWorkspace(root, 'later')
  expect(await listAllWorkspaces(root, 1)).toHaveLength(1)
  const all = await listAllWorkspaces(root, 5)
  expect(all).toHaveLength(2)
  for (const each of all) expect(await listWorkspacesOfCompany(root, each.companyId)).toContainEqual(each)
  const user = await seedPerson(root, idFrom('w'), 'owner')
  expect(await listMemberships(root, user)).toMatchObject([
    { workspace: { id: 'w' }, companyName: 'Company', role: 'owner' },
  ])
  expect(await replaceDefaultDevice(root, idFrom('w'), idFrom('dvc_a'), at + 1)).toBe(true)
  expect(await replaceDefaultDevice(root, idFrom('w'), idFrom('dvc_a'), at + 2)).toBe(false)
  expect((await findWorkspace(root, idFrom('w')))?.defaultDevice).toBe('dvc_a')
  await clearDefaultDevice(root, idFrom('w'), idFrom('dvc_b'))
  expect((await findWorkspace(root, idFrom('w')))?.defaultDevice).toBe('dvc_a')
  await clearDefaultDevice(root, idFrom('w'), idFrom('dvc_a'))
  expect((await findWorkspace(root, idFrom('w')))?.defaultDevice).toBeNull()
})

onBoth('login tokens, sessions and run tokens lead to their callers', async ({ root }) => {
  const [one, two] = [await seedWorkspace(root), await seedWorkspace(root)]
  const userId = await seedPerson(root, one, 'admin')
  await insertLoginToken(root, { id: 'tok_1', personUuid: userId, workspaceId: one, tokenHash: 'h1', name: 'x', at })
  await insertLoginToken(root, { id: 'tok_2', personUuid: userId, workspaceId: two, tokenHash: 'h2', name: 'x', at })
  expect(await findLogin(root, 'h1')).toMatchObject({
    id: 'tok_1',
    user_id: userId,
    workspace_id: one,
    role: 'admin',
  })
  // A token for a workspace whose member the person is no more.
  expect((await findLogin(root, 'h2'))?.role).toBeNull()
  expect(await findLogin(root, 'h3')).toBeNull()
  await markLoginUsed(root, 'tok_1', at + 1)
  expect((await findLogin(root, 'h1'))?.last_used_at).toBe(at + 1)
  expect(await revokeLoginToken(root, { tokenHash: 'h1' }, at + 2)).toBe('tok_1')
  expect(await revokeLoginToken(root, { id: 'tok_1' }, at + 3)).toBeNull()
  expect(await revokeLoginToken(root, { id: 'tok_2' }, at + 3)).toBe('tok_2')
  expect((await findLogin(root, 'h1'))?.revoked_at).toBe(at + 2)
  await root('dashboard_sessions').insert({
    id: 's',
    user_id: userId,
    token_hash: 'sh',
    created_at: at,
    expires_at: at + 100,
  })
  expect(await findSession(root, { tokenHash: 'sh', workspaceId: null })).toMatchObject({ workspace_id: one })
  expect(await findSession(root, { tokenHash: 'sh', workspaceId: one })).toMatchObject({ role: 'admin' })
  expect(await findSession(root, { tokenHash: 'sh', workspaceId: two })).toMatchObject({ workspace_id: null })
  expect(await findSession(root, { tokenHash: 'no', workspaceId: null })).toBeNull()
  const agent = await seedAgent(root, one, { tokenGeneration: 3 })
  const run = await seedRun(root, agent)
  expect(await findRunOfToken(root, run.id, agent.id)).toMatchObject({
    uuid: agent.uuid,
    workspace_id: one,
    token_generation: 3,
    fence: 0,
    ended_at: null,
  })
  expect(await findRunOfToken(root, run.id, idFrom('agt_0000000000000000'))).toBeNull()
})
