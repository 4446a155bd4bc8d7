import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { loadServices } from '../../control-plane/catalog/services.ts'
import { connectionsOfAgent } from '../../control-plane/resources/connections/agent-connections.ts'
import { mcpServersOfAgent } from '../../control-plane/resources/connections/joined-servers.ts'
import {
  countMcpServers,
  findMcpServer,
  insertMcpServer,
  listMcpServers,
  listMcpServersForAgent,
  listMcpServersOfPlugin,
  listMcpServersOfPlugins,
  listRuleNames,
  removeMcpServer,
  replaceMcpServer,
  type McpServerRow,
} from '../../control-plane/resources/mcp-servers/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import { onBoth } from '../kit/database.ts'
import { mcpServerRow } from './mcp-server-rows.ts'
import { seedConnection } from './connection-rows.ts'
import { seedPlugin } from './plugin-rows.ts'
import { seedAgent, seedPerson, seedWorkspace } from './seed.ts'

async function seed(db: Db, workspaceId: WorkspaceUuid, change: Partial<McpServerRow> = {}): Promise<McpServerRow> {
  const row = mcpServerRow(workspaceId, change)
  await insertMcpServer(db, row)
  return row
}

onBoth('a server comes back as it was stored, and is changed by one writer at a time', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const stored = await seed(root, workspaceId)
  expect(await findMcpServer(root, workspaceId, stored.id)).toEqual(stored)
  expect(await findMcpServer(root, await seedWorkspace(root), stored.id)).toBeNull()
  const after = { ...stored, server: { type: 'stdio' as const, command: 'x', args: ['a'], env: { A: 'b' } } }
  await replaceMcpServer(root, stored, after)
  expect(await findMcpServer(root, workspaceId, stored.id)).toEqual({ ...after, version: 2 })
  await expect(replaceMcpServer(root, stored, { ...stored, name: 'x' })).rejects.toMatchObject({
    code: 'transient_conflict',
  })
  await removeMcpServer(root, stored.id)
  expect(await countMcpServers(root, { workspaceId })).toBe(0)
})

onBoth(
  'a name is that of one server of the workspace, and of one of each agent, however it is written',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const named = (change: Partial<McpServerRow>) => mcpServerRow(workspaceId, { name: 'My-Docs', ...change })
    await insertMcpServer(root, named({}))
    await insertMcpServer(root, named({ agentRef: agent.id }))
    for (const agentId of [null, agent.id]) {
      const again = inTransaction(root, (tx) => insertMcpServer(tx, named({ agentRef: agentId, name: 'my_docs' })))
      await expect(again).rejects.toThrow(/unique/i)
    }
    await insertMcpServer(root, mcpServerRow(await seedWorkspace(root), { name: 'My-Docs' }))
  },
)

onBoth('those of an agent are listed for whoever sees the agent, until it is deleted', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [open, hidden] = [
    await seedAgent(root, workspaceId),
    await seedAgent(root, workspaceId, { visibility: 'private' }),
  ]
  const [ofAll, ofOpen, ofHidden] = [
    await seed(root, workspaceId, { createdAt: 1 }),
    await seed(root, workspaceId, { createdAt: 2, agentRef: open.id }),
    await seed(root, workspaceId, { createdAt: 3, agentRef: hidden.id }),
  ]
  const ids = (rows: readonly McpServerRow[]) => rows.map(({ id }) => id)
  const listed = async (filter: object) => ids(await listMcpServers(root, { workspaceId, limit: 10, ...filter }))
  expect(await listed({})).toEqual([ofHidden.id, ofOpen.id, ofAll.id])
  expect(await listed({ agentRef: null })).toEqual([ofAll.id])
  const stranger = { personUuid: null, agentRef: open.id }
  expect(await listed({ visibleTo: stranger })).toEqual([ofOpen.id, ofAll.id])
  expect(await listed({ visibleTo: stranger, agentRef: hidden.id })).toEqual([])
  expect(await listed({ limit: 1, before: ofHidden })).toEqual([ofOpen.id, ofAll.id])
  expect(await countMcpServers(root, { workspaceId, visibleTo: stranger })).toBe(2)
  expect(ids(await listMcpServersForAgent(root, workspaceId, open.id))).toEqual([ofAll.id, ofOpen.id])
  await root('agents').where({ id: hidden.id }).update({ deleted_at: 1 })
  expect(await listed({})).toEqual([ofOpen.id, ofAll.id])
})

onBoth(
  'connections of the owner, and those that an admin or the owner signed in to, are servers of runs',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const owner = await seedPerson(root, workspaceId)
    const [admin, colleague] = [await seedPerson(root, workspaceId, 'admin'), await seedPerson(root, workspaceId)]
    const agent = await seedAgent(root, workspaceId, { ownerUuid: owner })
    const seedOf = (accountLabel: string, createdAt: number, changes: object) =>
      seedConnection(root, workspaceId, { serviceId: 'deepwiki', accountLabel, createdAt, ...changes })
    const [ofAdmin, ofOwner, own] = [
      await seedOf('b', 1, { connectedByUuid: admin }),
      await seedOf('a', 2, { connectedByUuid: owner }),
      await seedOf('c', 3, { ownerUuid: owner, connectedByUuid: owner }),
    ]
    const refused = [
      await seedOf('d', 4, { connectedByUuid: colleague }),
      await seedOf('e', 5, { connectedByUuid: null }),
    ]
    await seedOf('f', 6, { connectedByUuid: admin, status: 'expired' })
    await seedOf('g', 7, { ownerUuid: colleague, connectedByUuid: colleague })
    await seedOf('h', 8, { connectedByUuid: admin, serviceId: 'left-the-catalog' })
    const found = await connectionsOfAgent(root, agent, { services: loadServices(null), now: 10 })
    const ids = (of: typeof found.given) => of.map(({ row }) => row.id)
    expect(ids(found.given)).toEqual([own.id, ofAdmin.id, ofOwner.id])
    expect(ids(found.refused)).toEqual(refused.map(({ id }) => id))
    await seed(root, workspaceId, {
      name: 'named',
      server: { type: 'http', url: 'https://x', connectionId: ofAdmin.id },
    })
    const joined = await mcpServersOfAgent(root, agent, { workspace: { mcpServers: {} }, connections: found.given })
    expect(
      Object.entries(joined).map(([name, server]) => [name, (server as { connectionId: string }).connectionId]),
    ).toEqual([
      ['named', ofAdmin.id],
      ['deepwiki', own.id],
      ['deepwiki-a', ofOwner.id],
    ])
  },
)

onBoth("an agent's own server wins over the workspace's, and that over the one in its setting", async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const at = (url: string) => ({ server: { type: 'http' as const, url } })
  await seed(root, workspaceId, { name: 'a-b', agentRef: agent.id, ...at('https://own') })
  await seed(root, workspaceId, { name: 'A_B', ...at('https://all') })
  await seed(root, workspaceId, { name: 'c', ...at('https://all') })
  const mcpServers = { a_b: { url: 'x' }, C: { url: 'x' }, d: { url: 'x' }, 'no name': 1 }
  expect(await mcpServersOfAgent(root, agent, { workspace: { mcpServers }, connections: [] })).toEqual({
    'a-b': { type: 'http', url: 'https://own' },
    c: { type: 'http', url: 'https://all' },
    d: { url: 'x' },
    'no name': 1,
  })
})

onBoth(
  'what a plugin brings is had while the plugin is on, after all that the workspace has itself',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const [on, off] = [
      await seedPlugin(root, workspaceId),
      await seedPlugin(root, workspaceId, { name: 'off', enabled: false }),
    ]
    const at = (url: string) => ({ server: { type: 'http' as const, url } })
    const second = await seed(root, workspaceId, {
      name: 'plugin-b',
      pluginId: on.id,
      nameInPlugin: 'b',
      ...at('https://b'),
    })
    const first = await seed(root, workspaceId, {
      name: 'plugin-a',
      pluginId: on.id,
      nameInPlugin: 'a',
      ...at('https://a'),
    })
    await seed(root, workspaceId, { name: 'plugin-off', pluginId: off.id, nameInPlugin: 'off', ...at('https://off') })
    await seed(root, workspaceId, { name: 'plugin_b', agentRef: agent.id, ...at('https://own') })
    const joined = (mcpServers: Record<string, unknown> | null) =>
      mcpServersOfAgent(root, agent, { workspace: { mcpServers }, connections: [] })
    expect(await joined({ 'Plugin-A': { url: 'x' } })).toEqual({
      plugin_b: { type: 'http', url: 'https://own' },
      'Plugin-A': { url: 'x' },
    })
    expect(await joined(null)).toEqual({
      plugin_b: { type: 'http', url: 'https://own' },
      'plugin-a': { type: 'http', url: 'https://a' },
    })
    expect(await listMcpServersOfPlugin(root, on.id)).toEqual([first, second])
    expect((await listMcpServersOfPlugins(root, workspaceId)).length).toBe(2)
    expect(await listMcpServersOfPlugins(root, await seedWorkspace(root))).toEqual([])
    expect((await listRuleNames(root, workspaceId)).toSorted()).toEqual(['plugin_a', 'plugin_b', 'plugin_off'])
    expect(await countMcpServers(root, { workspaceId, isOfPlugin: false })).toBe(1)
    expect(await countMcpServers(root, { workspaceId, isOfPlugin: true })).toBe(3)
    const again = inTransaction(root, (tx) => insertMcpServer(tx, mcpServerRow(workspaceId, { name: 'PLUGIN-A' })))
    await expect(again).rejects.toThrow(/unique/i)
  },
)
