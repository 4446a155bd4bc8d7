import { expect } from 'vitest'
import { migrations } from '../../control-plane/db/migrations/index.ts'
import { listApprovals } from '../../control-plane/resources/approvals/store.ts'
import {
  closePlatformChange,
  findPlatformChange,
  insertPlatformChange,
  listPlatformChanges,
} from '../../control-plane/resources/platform-changes/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedWorkspace } from './seed.ts'

const id = (prefix: string) => realWorld.id(prefix)

onBoth('a stored write keeps what came of it, and is closed once', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const change = {
    id: id('apr_'),
    workspaceId,
    agentId: id('agt_'),
    runId: id('run_'),
    routeId: 'agents.create',
    params: { agentId: 'x' },
    body: { name: 'n', deep: [1, null] },
    createdAt: at,
  }
  await insertPlatformChange(root, change)
  expect(await findPlatformChange(root, workspaceId, change.id)).toEqual({ ...change, status: 'pending', result: null })
  const close = { id: change.id, status: 'approved', result: { status: 201, body: { id: 'agt_1' } } } as const
  expect(await closePlatformChange(root, close)).toBe(true)
  expect(await closePlatformChange(root, { ...close, status: 'rejected' })).toBe(false)
  expect(await listPlatformChanges(root, [change.id, 'apr_x'])).toMatchObject([
    { status: 'approved', result: close.result },
  ])
  expect(await listPlatformChanges(root, [])).toEqual([])
})

onBoth('writes that waited before there were approvals get theirs by the migration', async ({ root }) => {
  const gates = migrations.find((migration) => migration.name === 'gates')!
  for (const table of ['approvals', 'questions', 'secret_grants', 'secrets']) await root.schema.dropTable(table)
  await root.schema.alterTable('platform_changes', (t) => {
    t.dropColumn('result')
  })
  try {
    const workspaceId = await seedWorkspace(root)
    const changes = ['pending', 'pending', 'rejected'].map((status) => ({
      id: id('apr_'),
      workspace_id: workspaceId,
      agent_id: id('agt_'),
      run_id: id('run_'),
      route_id: 'agents.create',
      params: '{}',
      body: '{"name":"x"}',
      status,
      created_at: at,
    }))
    await root('platform_changes').insert(changes)
    await root.transaction((tx) => gates.up(tx))
    const listed = await listApprovals(root, { workspaceId, limit: 5 })
    expect(listed.map((approval) => approval.id).toSorted()).toEqual(
      changes
        .slice(0, 2)
        .map((row) => row.id)
        .toSorted(),
    )
    expect(listed[0]).toMatchObject({ trigger: 'platform_change', status: 'open', assignedType: null, createdAt: at })
  } finally {
    if (!(await root.schema.hasTable('approvals'))) await root.transaction((tx) => gates.up(tx))
  }
})
