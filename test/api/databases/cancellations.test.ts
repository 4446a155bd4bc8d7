import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { realWorld } from '../../../shared/lib/world.ts'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer, type Person } from '../../kit/server.ts'

// Runs that are cancelled by the dozen: the request ends a few, the others end one batch after another. None of them starts
// meanwhile.

const count = 40
/** Runs that one transaction ends. */
const mostRuns = 8

for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let owner: Person
    // oxlint-disable-next-line typescript/no-explicit-any
    let agent: any
    let waiting: string[]
    beforeAll(async () => {
      server = await TestServer.start({ database })
    })
    afterAll(() => server.stop())
    afterEach(() => server.plane.sweeper.jobs?.start())
    beforeEach(async () => {
      owner = await server.addPerson('owner', `busy-${realWorld.uuid().slice(0, 8)}`)
      agent = await server.createAgent({}, owner.token)
      waiting = await queueRuns(count)
    })

    async function queueRuns(amount: number): Promise<string[]> {
      const ids: string[] = []
      for (let n = 0; n < amount; n++) ids.push(await server.startRun(agent.id, { prompt: `Do ${n}` }, owner.token))
      return ids
    }
    const act = (path: string, options: { method?: string; body?: unknown } = {}, token = owner.token) =>
      server.ok(path, { method: 'POST', token, ...options })
    const onWorkspace = (action: string) => act(`/workspaces/${owner.workspaceId}/${action}`)
    const settle = () => server.plane.sweeper.runAll()
    const statesOf = async (ids: readonly string[]): Promise<string[]> => {
      const rows: { status: string; exit_reason: string | null }[] = await server.database
        .root('runs')
        .whereIn('id', [...ids])
        .select('status', 'exit_reason')
      return [...new Set(rows.map((row) => `${row.status} ${row.exit_reason}`))].toSorted()
    }

    /** The runs that each transaction ended. */
    async function endedBy(work: () => Promise<unknown>): Promise<number[]> {
      const counts = new Map<string, number>()
      const watch = ({ sql, __knexTxId: id = 'none' }: { sql: string; __knexTxId?: string }) => {
        if (/^update "?`?runs\b.*\bended_at"? = /i.test(sql)) counts.set(id, (counts.get(id) ?? 0) + 1)
      }
      const { root } = server.database
      root.on('query', watch)
      try {
        await work()
      } finally {
        root.off('query', watch)
      }
      return [...counts.values()]
    }

    const ways: readonly [string, string, () => Promise<unknown>][] = [
      ['pausing the agents', 'cancelled company_paused', () => onWorkspace('pause-agents')],
      ['archiving the workspace', 'cancelled company_paused', () => onWorkspace('archive')],
      [
        'terminating an agent',
        'cancelled agent_paused',
        () => act(`/agents/${agent.id}`, { method: 'PATCH', body: { status: 'terminated' } }),
      ],
      ['deleting an agent', 'failed agent_deleted', () => act(`/agents/${agent.id}`, { method: 'DELETE' })],
    ]
    test.each(ways)('%s ends a few of the runs in a transaction, and all of them', async (_way, state, way) => {
      const counts = await endedBy(async () => {
        await way()
        await settle()
      })
      expect(await statesOf(waiting)).toEqual([state])
      expect(counts.length).toBeGreaterThan(1)
      expect(Math.max(...counts)).toBeLessThanOrEqual(mostRuns)
      expect(await server.database.root('run_cancellations').select('id')).toEqual([])
    })

    test('what was cancelled starts no more, though it was resumed before its turn came; what is new does', async () => {
      await server.plane.sweeper.jobs?.stop()
      await onWorkspace('pause-agents')
      expect((await statesOf(waiting)).length).toBe(2)
      await onWorkspace('resume-agents')
      const device = await FakeDevice.connect(server, { token: owner.token })
      const fresh = await server.startRun(agent.id, { prompt: 'New' }, owner.token)
      const work = await device.take()
      expect(work.runId).toBe(fresh)
      await work.end()
      await settle()
      // Nothing else was offered.
      const later = await server.startRun(agent.id, { prompt: 'Newer' }, owner.token)
      const next = await device.take()
      expect(next.runId).toBe(later)
      server.plane.sweeper.jobs?.start()
      await settle()
      expect(await statesOf(waiting)).toEqual(['cancelled company_paused'])
      expect(await statesOf([fresh, later])).toEqual(['running null', 'succeeded completed'])
      await next.end()
      await device.disconnect()
    })

    test('an assignment that says the same is not folded into a run that is about to end', async () => {
      const assign = () => act(`/agents/${agent.id}/runs`, { body: { source: 'assignment', prompt: 'Same' } })
      const first = await assign()
      expect(await assign()).toEqual({ kind: 'coalesced', coalescedIntoRunPublicId: first.runPublicId })
      await server.plane.sweeper.jobs?.stop()
      await onWorkspace('pause-agents')
      await onWorkspace('resume-agents')
      const second = await assign()
      expect(second.kind).toBe('pending')
      server.plane.sweeper.jobs?.start()
      await settle()
      expect(await statesOf([first.runPublicId])).toEqual(['cancelled company_paused'])
      expect(await statesOf([second.runPublicId])).toEqual(['queued null'])
    })

    test('the runs that somebody caused end when they leave, a few in a transaction', async () => {
      const { slug } = await server.ok('/workspaces', { token: owner.token })
      const member = await server.addPerson('member', slug)
      const theirs: string[] = []
      for (let n = 0; n < count; n++) theirs.push(await server.startRun(agent.id, { prompt: `Do ${n}` }, member.token))
      const counts = await endedBy(async () => {
        await act(`/workspaces/${owner.workspaceId}/leave`, {}, member.token)
        await settle()
      })
      expect([await statesOf(theirs), await statesOf(waiting)]).toEqual([['cancelled interrupted'], ['queued null']])
      expect(Math.max(...counts)).toBeLessThanOrEqual(mostRuns)
    })

    test('two who go on with a cancellation share it', async () => {
      const beside = database === 'postgres' ? await TestServer.start({ beside: server }) : null
      await onWorkspace('pause-agents')
      await Promise.all([settle(), beside?.plane.sweeper.runAll()])
      await expect.poll(() => statesOf(waiting)).toEqual(['cancelled company_paused'])
      await beside?.stop()
    })
  })
