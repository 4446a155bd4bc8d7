import { idFrom, type PersonUuid, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import { migrations } from '../../control-plane/db/migrations/index.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { countAgents } from '../../control-plane/resources/agents/store.ts'
import {
  findMemberByReference,
  findRole,
  findUser,
  insertLoginToken,
  removeMember,
  revokeLoginTokensOf,
} from '../../control-plane/resources/members/store.ts'
import { listLiveOfWorkspace } from '../../control-plane/resources/runs/live-store.ts'
import {
  findCompany,
  removeEmptyCompany,
  replaceCompany,
} from '../../control-plane/resources/workspaces/company-store.ts'
import { claimSlug, findSlugOwner, insertSlug } from '../../control-plane/resources/workspaces/slug-store.ts'
import {
  claimRemoved,
  findWorkspace,
  hasWorkspace,
  insertWorkspace,
  markRemoved,
  replaceWorkspace,
  type WorkspaceRow,
} from '../../control-plane/resources/workspaces/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedPerson, seedRun, seedWorkspace, wroteSecond } from './seed.ts'
import { endRun } from '../kit/end-run.ts'

const workspaceOf = async (db: Db, id: WorkspaceUuid): Promise<WorkspaceRow> => (await findWorkspace(db, id))!

onBoth('the settings of a workspace are replaced only from the version that was read', async ({ root }) => {
  const before = await workspaceOf(root, await seedWorkspace(root, 'first'))
  const after: WorkspaceRow = {
    ...before,
    name: 'Renamed',
    slug: 'second',
    description: 'd',
    status: 'archived',
    contextMd: '# c',
    defaultModel: 'm',
    defaultReasoningEffort: 'high',
    defaultMaxTurns: 7,
    backupModel: 'b',
    mcpServers: { files: { url: 'x' } },
    agentsPaused: true,
    idleCompaction: { enabled: true, afterMinutes: 5, minTokens: 9 },
    sandboxSize: 'large',
    monthlyBudgetCents: 9_000_000_000,
    oomResume: true,
    sandboxEgress: ['api.example.com'],
    toolPermissionDefault: 'ask',
    updatedAt: at + 1,
  }
  await replaceWorkspace(root, before, after)
  expect(await findWorkspace(root, before.id)).toEqual({ ...after, version: before.version + 1 })
  await expect(replaceWorkspace(root, before, after)).rejects.toMatchObject(wroteSecond)
  await root.transaction(async (tx) => expect((await findWorkspace(tx, before.id, true))?.name).toBe('Renamed'))
})

onBoth('a slug is one workspace’s for ever', async ({ root }) => {
  const [one, two] = [await seedWorkspace(root, 'one'), await seedWorkspace(root, 'two')]
  expect(await findSlugOwner(root, 'one')).toBe(one)
  expect(await findSlugOwner(root, 'three')).toBeNull()
  expect(await claimSlug(root, { slug: 'one', workspaceId: two, at })).toBe(false)
  expect(await claimSlug(root, { slug: 'uno', workspaceId: one, at })).toBe(true)
  expect(await claimSlug(root, { slug: 'one', workspaceId: one, at })).toBe(true)
  expect(await insertSlug(root, { slug: 'uno', workspaceId: two, at }).catch(databaseTroubleOf)).toBe('duplicate')
  const row = await workspaceOf(root, one)
  await replaceWorkspace(root, row, { ...row, slug: 'uno' })
  const [id, publicId] = [realWorld.uuid(), realWorld.id('ws_')]
  const another = {
    id: idFrom<WorkspaceUuid>(id),
    publicId,
    companyId: row.companyId,
    name: 'x',
    slug: 'one',
    issuePrefix: 'X',
    at,
  }
  expect(await insertWorkspace(root, another).catch(databaseTroubleOf)).toBe('duplicate')
})

onBoth('of several that claim one slug at once, one gets it', async ({ root }) => {
  const claimants = ['w1', 'w2', 'w3', 'w4']
  const won = await Promise.all(
    claimants.map((workspaceId) =>
      root.transaction((tx) => claimSlug(tx, { slug: 'contended', workspaceId: idFrom(workspaceId), at })),
    ),
  )
  expect(won.filter(Boolean)).toHaveLength(1)
  expect(await findSlugOwner(root, 'contended')).toBe(claimants[won.indexOf(true)])
})

onBoth('a company is renamed, and removed with its last workspace', async ({ root }) => {
  const workspace = await workspaceOf(root, await seedWorkspace(root))
  const company = (await findCompany(root, workspace.companyId))!
  await replaceCompany(root, company, { name: 'Acme', at: at + 1 })
  await expect(replaceCompany(root, company, { name: 'Late', at: at + 1 })).rejects.toMatchObject(wroteSecond)
  expect((await findCompany(root, company.id))?.name).toBe('Acme')
  expect(await removeEmptyCompany(root, company.id)).toBe(false)
  expect(await hasWorkspace(root, company.id)).toBe(true)
  await markRemoved(root, workspace, at)
  expect(await hasWorkspace(root, company.id)).toBe(false)
  await root.transaction(async (tx) => expect(await claimRemoved(tx, workspace.id)).toBe(company.id))
  await root('workspaces').where({ id: workspace.id }).delete()
  await root.transaction(async (tx) => expect(await claimRemoved(tx, workspace.id)).toBeNull())
  expect(await removeEmptyCompany(root, company.id)).toBe(true)
  expect(await findCompany(root, company.id)).toBeNull()
})

onBoth('a member leaves with its login tokens of this workspace', async ({ root }) => {
  const [here, there] = [await seedWorkspace(root), await seedWorkspace(root)]
  const userId = await seedPerson(root, here)
  const user = (await findUser(root, userId))!
  expect(await findMemberByReference(root, here, user.publicId)).toEqual(user)
  expect(await findMemberByReference(root, here, userId.toUpperCase())).toEqual(user)
  expect(await findMemberByReference(root, there, user.publicId)).toBeNull()
  expect(await findMemberByReference(root, here, 'usr_0000000000000000')).toBeNull()
  for (const [id, workspaceId] of [
    ['a', here],
    ['b', there],
  ] as const)
    await insertLoginToken(root, { id, personUuid: userId, workspaceId, tokenHash: id, name: 'x', at })
  await revokeLoginTokensOf(root, { workspaceId: here, personUuid: userId }, at + 1)
  const tokens: unknown = await root('login_tokens').orderBy('id').select('id', 'revoked_at')
  expect(tokens).toEqual([
    { id: 'a', revoked_at: at + 1 },
    { id: 'b', revoked_at: null },
  ])
  expect(await removeMember(root, { workspaceId: here, personUuid: userId })).toBe(true)
  expect(await removeMember(root, { workspaceId: here, personUuid: userId })).toBe(false)
  expect(await findRole(root, here, userId)).toBeNull()
})

onBoth('live agents and runs of a workspace are counted and listed', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const userId = await seedPerson(root, workspaceId)
  const agent = await seedAgent(root, workspaceId, { visibility: 'private', ownerUuid: userId })
  await seedAgent(root, workspaceId)
  await seedAgent(root, workspaceId, { deletedAt: at })
  const count = (viewer: Partial<Parameters<typeof countAgents>[2]>) =>
    countAgents(root, workspaceId, { seesAll: false, personUuid: null, agentRef: null, ...viewer })
  expect(await count({ seesAll: true })).toBe(2)
  expect(await count({ personUuid: userId })).toBe(2)
  expect(await count({ agentRef: agent.id })).toBe(2)
  expect(await count({ personUuid: idFrom<PersonUuid>('somebody') })).toBe(1)
  const [live, ended] = [await seedRun(root, agent), await seedRun(root, agent)]
  const ending = { fence: null, exitReason: 'completed', errorMessage: null, at } as const
  await endRun(root, { runId: ended.id, ...ending })
  await seedRun(root, await seedAgent(root, await seedWorkspace(root)))
  expect((await listLiveOfWorkspace(root, workspaceId, 9)).map((run) => run.id)).toEqual([live.id])
})

onBoth('the slugs of workspaces made by an earlier release are reserved by the migration', async ({ root }) => {
  const projects = migrations.find((migration) => migration.name === 'projects')!
  await root.schema.dropTable('project_grants')
  await root.schema.dropTable('projects')
  const workspaceId = await seedWorkspace(root, 'early')
  await root.schema.dropTable('workspace_slugs')
  await root.transaction((tx) => projects.up(tx))
  expect(await findSlugOwner(root, 'early')).toBe(workspaceId)
})
