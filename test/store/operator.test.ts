import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { findLogin } from '../../control-plane/http/caller-store.ts'
import { hashToken } from '../../control-plane/http/token-hash.ts'
import { firstStart } from '../../control-plane/operator/first-start.ts'
import { addUser, createToken, OperatorError, revokeToken } from '../../control-plane/operator/people.ts'
import { findRole, findUserByEmail } from '../../control-plane/resources/members/store.ts'
import { findWorkspaceBySlug } from '../../control-plane/resources/workspaces/store.ts'
import { realWorld as world } from '../../shared/lib/world.ts'
import { hasPostgres, onBoth, openPostgres } from '../kit/database.ts'

onBoth('the first start makes a person, a company and a workspace, once', async ({ root }) => {
  const first = await root.transaction((tx) => firstStart(tx, world))
  expect(first).toMatchObject({
    userId: expect.stringMatching(/^usr_/),
    token: expect.stringMatching(/^svc_pat_[0-9A-Za-z]{43}$/),
  })
  expect(await findLogin(root, hashToken(first!.token))).toMatchObject({
    workspace_id: first!.workspaceId,
    role: 'owner',
  })
  expect(await root.transaction((tx) => firstStart(tx, world))).toBeNull()
  expect(await root('companies')).toHaveLength(1)
})

test.skipIf(!hasPostgres())('replicas that start at once on an empty database make one person', async () => {
  const database = await openPostgres()
  const starts = Array.from({ length: 4 }, () => database.root.transaction((tx) => firstStart(tx, world)))
  const made = (await Promise.all(starts)).filter((result) => result !== null)
  expect(made).toHaveLength(1)
  await database.close()
})

onBoth('a person is added to a workspace, which is made when it does not exist', async ({ root }) => {
  const add = (input: Partial<Parameters<typeof addUser>[2]>) =>
    addUser(root, world, { name: 'Ada', email: 'Ada@Example.com', role: 'admin', workspace: null, ...input })
  const first = await add({})
  expect(first.workspace).toBe('main')
  const user = (await findUserByEmail(root, 'ada@example.com'))!
  expect(await findRole(root, first.workspaceId, user.id)).toBe('admin')
  const again = await add({ role: 'member' })
  expect(again).toMatchObject({ userId: first.userId, workspaceId: first.workspaceId })
  expect(again.token).not.toBe(first.token)
  expect(await findRole(root, first.workspaceId, user.id)).toBe('member')
  const second = await add({ workspace: 'blue-team' })
  expect(second.workspaceId).not.toBe(first.workspaceId)
  expect(await findWorkspaceBySlug(root, 'blue-team')).toMatchObject({ name: 'Blue Team', issuePrefix: 'BLU' })
  expect(await findRole(root, second.workspaceId, user.id)).toBe('admin')
  await expect(add({})).rejects.toThrow(/several workspaces/)
  await expect(add({ workspace: 'Blue Team' })).rejects.toThrow(OperatorError)
  await expect(add({ email: 'nonsense', workspace: 'main' })).rejects.toThrow(/email address/)
  await expect(add({ name: ' ', workspace: 'main' })).rejects.toThrow(/name/)
})

onBoth(
  'without a role, one is owner of what is made, member of what is there, and else what one was',
  async ({ root }) => {
    const add = (email: string, role: 'admin' | null) =>
      addUser(root, world, { name: 'Ada', email, role, workspace: 'blue-team' })
    const roleOf = async ({ workspaceId }: { workspaceId: WorkspaceUuid }, email: string) =>
      findRole(root, workspaceId, (await findUserByEmail(root, email))!.id)
    const first = await add('ada@example.com', null)
    expect(await roleOf(first, 'ada@example.com')).toBe('owner')
    await add('eve@example.com', null)
    expect(await roleOf(first, 'eve@example.com')).toBe('member')
    await add('eve@example.com', 'admin')
    for (const email of ['ada@example.com', 'eve@example.com']) await add(email, null)
    expect(await roleOf(first, 'ada@example.com')).toBe('owner')
    expect(await roleOf(first, 'eve@example.com')).toBe('admin')
  },
)

onBoth('tokens are given and revoked by id and by themselves', async ({ root }) => {
  const person = { name: 'Ada', email: 'ada@example.com', role: 'member' as const }
  const { workspaceId } = await addUser(root, world, { ...person, workspace: 'one' })
  const two = await addUser(root, world, { ...person, workspace: 'two' })
  const give = (workspace: string | null) =>
    createToken(root, world, { email: 'ada@example.com', workspace, name: 'laptop' })
  expect((await give('one')).workspaceId).toBe(workspaceId)
  expect((await give(two.workspaceId)).workspaceId).toBe(two.workspaceId)
  const token = await give(null)
  await expect(give('three')).rejects.toThrow(/no workspace/)
  await addUser(root, world, { ...person, email: 'eve@example.com', workspace: 'three' })
  await expect(give('three')).rejects.toThrow(/not a member/)
  await expect(createToken(root, world, { email: 'x@example.com', workspace: null, name: null })).rejects.toThrow(
    /Nobody/,
  )
  expect(await revokeToken(root, world, token.token)).toEqual({ tokenId: token.tokenId, revoked: true })
  await expect(revokeToken(root, world, token.tokenId)).rejects.toThrow(OperatorError)
  const other = await give('one')
  expect(await revokeToken(root, world, other.tokenId)).toEqual({ tokenId: other.tokenId, revoked: true })
  await expect(revokeToken(root, world, 'svc_pat_unknown')).rejects.toThrow(OperatorError)
})
