import { idFrom } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  countPlugins,
  findInstalledPlugin,
  insertPlugin,
  listPlugins,
  removePlugin,
  replacePlugin,
} from '../../control-plane/resources/plugins/store.ts'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import { onBoth } from '../kit/database.ts'
import { seedPlugin } from './plugin-rows.ts'
import { at, seedWorkspace } from './seed.ts'

onBoth('a plugin comes back as it was stored, and is changed by one writer at a time', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const stored = await seedPlugin(root, workspaceId)
  for (const reference of [stored.id, stored.name])
    expect(await findInstalledPlugin(root, workspaceId, reference)).toEqual(stored)
  expect(await findInstalledPlugin(root, await seedWorkspace(root), stored.id)).toBeNull()
  const after = { ...stored, enabled: false, notUsed: [] }
  await replacePlugin(root, stored, after)
  expect(await findInstalledPlugin(root, workspaceId, stored.id)).toEqual({ ...after, version: 2 })
  await expect(replacePlugin(root, stored, { ...stored, pluginHash: 'x' })).rejects.toMatchObject({
    code: 'transient_conflict',
  })
  await removePlugin(root, stored.id)
  expect(await countPlugins(root, workspaceId)).toBe(0)
})

onBoth('a name is that of one plugin of a workspace', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const stored = await seedPlugin(root, workspaceId)
  const again = inTransaction(root, (tx) => insertPlugin(tx, { ...stored, id: idFrom('plug_other') }))
  await expect(again).rejects.toThrow(/unique/i)
  await seedPlugin(root, await seedWorkspace(root))
})

onBoth('plugins are listed by each filter, page by page', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const first = await seedPlugin(root, workspaceId, { name: 'first', description: null })
  const second = await seedPlugin(root, workspaceId, { name: 'second', enabled: false, createdAt: at + 1 })
  await seedPlugin(root, await seedWorkspace(root))
  const list = async (filter: object) =>
    (await listPlugins(root, { workspaceId, limit: 10, ...filter })).map(({ id }) => id)
  expect(await list({})).toEqual([second.id, first.id])
  expect(await list({ before: second })).toEqual([first.id])
  expect(await list({ after: first })).toEqual([second.id])
  expect(await list({ limit: 1 })).toEqual([second.id, first.id])
  expect(await list({ enabled: true })).toEqual([first.id])
  expect(await list({ q: 'über' })).toEqual([second.id])
  const { notUsed: _, ...summary } = first
  expect((await listPlugins(root, { workspaceId, limit: 1, before: second }))[0]).toEqual(summary)
})
