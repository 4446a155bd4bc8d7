import { idFrom, type AgentUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import {
  countProjects,
  findProject,
  hasGrant,
  insertGrant,
  insertProject,
  isPrefixTaken,
  listGrants,
  listProjects,
  removeGrant,
  replaceProject,
  type ProjectRow,
} from '../../control-plane/resources/projects/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, projectRow, seedAgent, seedPerson, seedWorkspace, wroteSecond } from './seed.ts'

onBoth(
  'a project comes back as it was stored, and is replaced only from the version that was read',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const project = projectRow(workspaceId, {
      name: 'Größe 测试',
      description: 'd\n"q"',
      prefix: 'WEB',
      leadAgentUuid: idFrom<AgentUuid>(realWorld.uuid()),
      ownerUuid: await seedPerson(root, workspaceId),
      visibility: 'private',
      repoUrl: 'https://example.com/x.git',
    })
    await insertProject(root, project)
    expect(await findProject(root, workspaceId, project.id)).toEqual(project)
    expect(await findProject(root, await seedWorkspace(root), project.id)).toBeNull()
    const changed: ProjectRow = {
      ...project,
      name: 'Other',
      status: 'completed',
      leadAgentUuid: null,
      deletedAt: at + 5,
      updatedAt: at + 5,
    }
    await replaceProject(root, project, changed)
    expect(await findProject(root, workspaceId, project.id)).toEqual({ ...changed, version: 2 })
    await expect(replaceProject(root, project, { ...project })).rejects.toMatchObject(wroteSecond)
  },
)

onBoth(
  'a prefix is one project’s in its workspace, also once it is deleted; having none is no prefix',
  async ({ root }) => {
    const [one, two] = [await seedWorkspace(root), await seedWorkspace(root)]
    await insertProject(root, projectRow(one, { prefix: 'AB', deletedAt: at }))
    expect(await isPrefixTaken(root, one, 'AB')).toBe(true)
    expect(await isPrefixTaken(root, two, 'AB')).toBe(false)
    expect(await insertProject(root, projectRow(one, { prefix: 'AB' })).catch(databaseTroubleOf)).toBe('duplicate')
    await insertProject(root, projectRow(two, { prefix: 'AB' }))
    await insertProject(root, projectRow(one))
    await insertProject(root, projectRow(one))
  },
)

onBoth('lists page newest first and filter by status, lead and text', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const lead = idFrom<AgentUuid>(realWorld.uuid())
  const rows = [
    projectRow(workspaceId, { name: 'One%hundred', createdAt: at + 1 }),
    projectRow(workspaceId, { description: 'Sells Shoes', status: 'archived', createdAt: at + 2 }),
    projectRow(workspaceId, { leadAgentUuid: lead, prefix: 'SHOP', createdAt: at + 3 }),
    projectRow(workspaceId, { deletedAt: at, createdAt: at + 4 }),
  ]
  for (const row of rows) await insertProject(root, row)
  await insertProject(root, projectRow(await seedWorkspace(root)))
  const listed = async (filter: Partial<Parameters<typeof listProjects>[1]>) =>
    (await listProjects(root, { workspaceId, limit: 25, ...filter })).map((row) =>
      rows.findIndex((r) => r.id === row.id),
    )
  expect(await listed({})).toEqual([2, 1, 0])
  expect(await listed({ limit: 1 })).toEqual([2, 1])
  expect(await listed({ before: { createdAt: at + 2, id: rows[1]!.id } })).toEqual([0])
  expect(await listed({ withDeleted: true })).toEqual([3, 2, 1, 0])
  expect(await listed({ statuses: [], withDeleted: true })).toEqual([3])
  expect(await listed({ statuses: ['archived'] })).toEqual([1])
  expect(await listed({ leadAgentUuid: lead })).toEqual([2])
  expect(await listed({ q: 'E%H' })).toEqual([0])
  expect(await listed({ q: 'sh' })).toEqual([2, 1])
  expect(await listed({ q: 'nothing' })).toEqual([])
})

const spellings: readonly [name: string, finds: readonly string[], not: readonly string[]][] = [
  ['Überprüfung der Öfen', ['überPRÜFUNG', 'ÖFEN', 'öfen', 'ü'], ['uberprufung', 'überprüfungen']],
  ['Straße', ['STRAßE', 'ß'], ['strasse']],
  ['Отчёт за март', ['отчЁТ', 'МАРТ', 'ёт за м'], ['отчет']],
  ['Η ΟΔΟΣ', ['οδος', 'οδοσ', 'ΟΔΟΣ'], ['οδο ς']],
  ['測試 Ärger.*', ['測試', 'ärger.', 'Ä', 'R.*'], ['ärger?', '試測']],
  ['50% Öl_(x)\\', ['ÖL_(X)\\', '% ö'], ['ÖL%x', 'öl__x']],
]

onBoth('a text is found whatever the case of its letters, on each database and in each script', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  for (const [name] of spellings) await insertProject(root, projectRow(workspaceId, { name }))
  const found = async (q: string) => (await listProjects(root, { workspaceId, limit: 25, q })).map((row) => row.name)
  for (const [name, finds, not] of spellings) {
    for (const q of finds) expect(await found(q), q).toContain(name)
    for (const q of not) expect(await found(q), q).not.toContain(name)
  }
})

onBoth('a private project is listed and counted for whom it is', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const owner = { personUuid: await seedPerson(root, workspaceId) }
  const other = { personUuid: await seedPerson(root, workspaceId) }
  const [lead, let_, stranger] = [
    await seedAgent(root, workspaceId),
    await seedAgent(root, workspaceId),
    await seedAgent(root, workspaceId),
  ].map((agent) => ({ agentRef: agent.id, agentUuid: agent.uuid }))
  const hidden = projectRow(workspaceId, {
    visibility: 'private',
    ownerUuid: owner.personUuid,
    leadAgentUuid: lead!.agentUuid,
  })
  await insertProject(root, hidden)
  await insertProject(root, projectRow(workspaceId))
  await insertGrant(root, { projectId: hidden.id, agentRef: let_!.agentRef, createdAt: at })
  await insertGrant(root, { projectId: hidden.id, agentRef: let_!.agentRef, createdAt: at + 1 })
  expect(await hasGrant(root, hidden.id, let_!.agentRef)).toBe(true)
  expect(await hasGrant(root, hidden.id, lead!.agentRef)).toBe(false)
  expect(await listGrants(root, hidden.id)).toEqual([{ projectId: hidden.id, agentRef: let_!.agentRef, createdAt: at }])
  for (const viewer of [null, owner, lead!, let_!]) {
    expect(await countProjects(root, workspaceId, viewer)).toBe(2)
    expect(await listProjects(root, { workspaceId, visibleTo: viewer, limit: 5 })).toHaveLength(2)
  }
  for (const viewer of [other, stranger!]) {
    expect(await countProjects(root, workspaceId, viewer)).toBe(1)
    expect(await listProjects(root, { workspaceId, visibleTo: viewer, limit: 5 })).toHaveLength(1)
  }
  for (const grantedTo of [lead!, let_!])
    expect(await listProjects(root, { workspaceId, grantedTo, limit: 5 })).toMatchObject([{ id: hidden.id }])
  expect(await listProjects(root, { workspaceId, grantedTo: stranger!, limit: 5 })).toEqual([])
  expect(await removeGrant(root, hidden.id, let_!.agentRef)).toBe(true)
  expect(await removeGrant(root, hidden.id, let_!.agentRef)).toBe(false)
  expect(await listGrants(root, hidden.id)).toEqual([])
})
