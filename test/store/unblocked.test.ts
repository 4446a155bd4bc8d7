import { expect } from 'vitest'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import { systemActor } from '../../control-plane/resources/tasks/rules.ts'
import { transitionTask } from '../../control-plane/resources/tasks/steps/transition.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedTask, seedWorkspace } from './seed.ts'

onBoth(
  'a task on which hundreds depend wakes each assignee once, with few queries for all of them',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agents = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
    const blocker = await seedTask(root, workspaceId)
    const other = await seedTask(root, workspaceId)
    const waiting = []
    for (let n = 0; n < 450; n++)
      waiting.push(await seedTask(root, workspaceId, { assigneeAgentRef: agents[n % 2]!.id }))
    const link = (taskId: string, on: string) => ({
      task_id: taskId,
      depends_on_task_id: on,
      type: 'blocks',
      created_at: at,
    })
    await root('task_dependencies').insert(waiting.map(({ id }) => link(id, blocker.id)))
    // The first of them still waits for another one.
    await root('task_dependencies').insert(link(waiting[0]!.id, other.id))
    let queries = 0
    root.on('query', ({ sql }: { sql: string }) => {
      // SQLite, which has no way to it, writes one after another, all at the end.
      if (!sql.startsWith('insert into outbox')) queries++
    })
    const move = { task: blocker, to: 'done', reason: null, actor: systemActor, world: realWorld } as const
    await inTransaction(root, (tx) => transitionTask(tx, move), { locks: [workspaceId] })
    expect(queries).toBeLessThan(200)
    const woken: { task_id: string; agent_id: string }[] = await root('wakes').select('task_id', 'agent_id')
    expect(new Set(woken.map((wake) => `${wake.task_id} ${wake.agent_id}`))).toEqual(
      new Set(waiting.slice(1).map((task) => `${task.id} ${task.assigneeAgentRef}`)),
    )
    expect(woken).toHaveLength(449)
    expect(await root('outbox').where({ topic: 'wake.requested' })).toHaveLength(449)
  },
)
