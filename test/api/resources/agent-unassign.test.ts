import { expect, test } from 'vitest'
import { agentLifecycleHandlers } from '../../../control-plane/resources/agents/handlers/lifecycle.ts'
import { findAgent } from '../../../control-plane/resources/agents/store.ts'
import { loadCatalog } from '../../../control-plane/catalog/catalog.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { openSqlite } from '../../kit/database.ts'
import { seedAgent, seedPerson, seedWorkspace } from '../../store/seed.ts'

test('whoever keeps tasks is asked within the deletion of an agent, and says which tasks it was taken off', async () => {
  const database = openSqlite()
  const { root } = database
  try {
    const workspaceId = await seedWorkspace(root)
    const userId = await seedPerson(root, workspaceId, 'owner')
    const agent = await seedAgent(root, workspaceId)
    const task = { id: 'tsk_0000000000000000', key: 'ABC-1', title: 'Build' }
    const seen: unknown[] = []
    const deps = { catalog: loadCatalog(null), leaseMs: 1, bus: { poke: () => undefined } }
    const [remove] = agentLifecycleHandlers(
      deps as unknown as Parameters<typeof agentLifecycleHandlers>[0],
      async (db, { agent: deleted }) => {
        seen.push(deleted.id, (await findAgent(db, deleted.id))?.deletedAt, db.isTransaction)
        return { tasks: [task], hasMore: false }
      },
    )
    const caller = {
      kind: 'person',
      via: 'login_token',
      personUuid: userId,
      personRef: 'usr_x',
      workspaceId,
      role: 'owner',
    }
    const input = { caller, params: { agentId: agent.id }, query: {}, body: undefined, afterCommit: () => undefined }
    const reply = await root.transaction((db) =>
      remove!.handler({ ...input, db, world: realWorld, log: silentLog } as never),
    )
    expect(reply).toMatchObject({ agent: { id: agent.id }, unassignedTasks: [task] })
    expect(seen).toEqual([agent.id, expect.any(Number), true])
  } finally {
    await database.close()
  }
})
