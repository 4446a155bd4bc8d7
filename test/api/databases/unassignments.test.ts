import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { realWorld } from '../../../shared/lib/world.ts'
import { hasPostgres } from '../../kit/database.ts'
import { TestServer, type Person } from '../../kit/server.ts'

// Deleted agents that had a thousand open tasks: the request takes them off a few, one batch after another off the others.

const count = 1_205
/** Tasks of which one transaction takes an agent off. */
const mostTasks = 100

for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let owner: Person
    // oxlint-disable-next-line typescript/no-explicit-any
    let agent: any
    // oxlint-disable-next-line typescript/no-explicit-any
    let finished: any
    beforeAll(async () => {
      server = await TestServer.start({ database })
    })
    afterAll(() => server.stop())
    afterEach(() => server.plane.sweeper.jobs?.start())
    beforeEach(async () => {
      owner = await server.addPerson('owner', `busy-${realWorld.uuid().slice(0, 8)}`)
      agent = await server.createAgent({ wakeOnAssignment: false }, owner.token)
      finished = await makeTask()
      await act(`/tasks/${finished.id}/transition`, { body: { status: 'done' } })
      await addTasks(await makeTask())
    })

    const act = (path: string, options: { method?: string; body?: unknown } = {}) =>
      server.ok(path, {
        method: 'POST',
        token: owner.token,
        headers: { 'idempotency-key': realWorld.uuid() },
        ...options,
      })
    const makeTask = () =>
      act('/tasks', { body: { title: 'Work', assignee: { type: 'agent', id: agent.id }, force: true } })
    const get = (path: string) => server.ok(path, { token: owner.token })
    const remove = () => act(`/agents/${agent.id}`, { method: 'DELETE' })
    const restore = () => server.call(`/agents/${agent.id}/restore`, { method: 'POST', token: owner.token })
    const settle = () => server.plane.sweeper.runAll()
    const root = () => server.database.root

    /** Others like it, without the pace of requests. */
    async function addTasks({ id }: { id: string }): Promise<void> {
      const row: Record<string, unknown> = await root()('tasks').where({ id }).first()
      const rows = Array.from({ length: count - 1 }, (_, n) => ({ ...row, id: realWorld.id('tsk_'), key: `X-${n}` }))
      await root().batchInsert('tasks', rows, 20)
    }
    const left = async (): Promise<string[]> => root()('tasks').where({ assignee_agent_id: agent.id }).pluck('id')
    /** How often each task of the workspace was unassigned. */
    async function timesUnassigned(): Promise<number[]> {
      const ids = root()('tasks').where({ workspace_id: owner.workspaceId }).select('id')
      const entries = root()('task_activity').where({ kind: 'task.unassigned' }).whereIn('task_id', ids)
      const rows: { n: number | string }[] = await entries.groupBy('task_id').count({ n: '*' })
      return rows.map(({ n }) => Number(n))
    }

    /** The tasks of which each transaction takes an agent off. */
    async function takenOffBy(work: () => Promise<unknown>): Promise<number[]> {
      const counts: number[] = []
      const watch = (response: unknown, { sql }: { sql: string }) => {
        if (!/^update \W?tasks\W? .*\bassignee_agent_id/i.test(sql)) return
        const { changes, rowCount } = response as { changes?: number; rowCount?: number }
        counts.push(changes ?? rowCount ?? Number(response))
      }
      root().on('query-response', watch)
      try {
        await work()
      } finally {
        root().off('query-response', watch)
      }
      return counts
    }

    test('the answer names a thousand, each transaction takes off a hundred, and none is left', async () => {
      let reply: { unassignedTasks: unknown[]; hasMore?: boolean } | undefined
      const counts = await takenOffBy(async () => {
        reply = await remove()
        await settle()
      })
      expect([reply?.unassignedTasks.length, reply?.hasMore]).toEqual([1_000, true])
      expect([Math.max(...counts), counts.reduce((sum, each) => sum + each)]).toEqual([mostTasks, count])
      expect(await left()).toEqual([finished.id])
      const times = await timesUnassigned()
      expect([times.length, new Set(times)]).toEqual([count, new Set([1])])
      expect(await root()('unassignments').select('agent_id')).toEqual([])
    })

    test('what a stop cuts short goes on; the agent is restored only then, and keeps what it is given anew', async () => {
      await server.plane.sweeper.jobs?.stop()
      await remove()
      expect((await left()).length).toBe(count - mostTasks + 1)
      expect(await restore()).toMatchObject({ status: 503, body: { error: { code: 'transient_conflict' } } })
      server.plane.sweeper.jobs?.start()
      await settle()
      expect(await restore()).toMatchObject({ status: 200, body: { deletedAt: null } })
      const fresh = await makeTask()
      await settle()
      expect(new Set(await left())).toEqual(new Set([finished.id, fresh.id]))
    })

    test('who was given a task meanwhile keeps it', async () => {
      await server.plane.sweeper.jobs?.stop()
      await remove()
      const other = await server.createAgent({ wakeOnAssignment: false }, owner.token)
      const [id] = (await left()).filter((each) => each !== finished.id)
      await act(`/tasks/${id}/assign`, { body: { type: 'agent', id: other.id } })
      server.plane.sweeper.jobs?.start()
      await settle()
      expect(await left()).toEqual([finished.id])
      expect((await get(`/tasks/${id}`)).assignee).toEqual({ type: 'agent', id: other.id })
    })

    // On SQLite one process has the database.
    if (database === 'postgres')
      test('two replicas share the batches, and each task is taken off once', async () => {
        const beside = await TestServer.start({ beside: server })
        await remove()
        await Promise.all([settle(), beside.plane.sweeper.runAll()])
        await expect.poll(left).toEqual([finished.id])
        const times = await timesUnassigned()
        expect([times.length, new Set(times)]).toEqual([count, new Set([1])])
        await beside.stop()
      })
  })
