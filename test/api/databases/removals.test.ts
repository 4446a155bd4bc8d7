import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { realWorld } from '../../../shared/lib/world.ts'
import { closeCodes } from '../../../shared/device/limits.ts'
import type { Db } from '../../../control-plane/db/open.ts'
import { ownedTables } from '../../../control-plane/sweeps/removal-store.ts'
import { hasPostgres } from '../../kit/database.ts'
import { dieAtWrite, removeDeaths, setUpDeaths } from '../../kit/dying-writes.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { at, seedAgent, seedRun } from '../../store/seed.ts'

// What is large is gone at once and goes in batches: each transaction is short, whoever reads meanwhile sees nothing of it, and
// what is killed in between goes on.

/** Rows that one transaction may remove: as many as stand in removal-store.ts, and those of the statement that passes it. */
const mostRows = 2_300

for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let beside: TestServer | null = null
    beforeAll(async () => {
      server = await TestServer.start({ database })
      if (database === 'postgres') beside = await TestServer.start({ beside: server })
    })
    afterAll(async () => {
      await beside?.stop()
      await server.stop()
    })
    const planes = () => [server.plane, ...(beside === null ? [] : [beside.plane])]
    const holdJobs = async () => {
      for (const plane of planes()) await plane.sweeper.jobs?.stop()
    }
    const goOn = () => planes().forEach((plane) => plane.sweeper.jobs?.start())
    const root = () => server.database.root

    const remove = async (person: Person) => {
      const { name } = await server.ok('/workspaces', { token: person.token })
      const path = `/workspaces/${person.workspaceId}`
      return server.call(path, { method: 'DELETE', body: { confirmName: name }, token: person.token })
    }
    const isLeft = async ({ workspaceId }: Person) =>
      (await root()('workspaces').where({ id: workspaceId }).first('id')) !== undefined

    /** Rows that each transaction removed. */
    async function removedBy(act: () => Promise<void>): Promise<number[]> {
      const counts = new Map<string, number>()
      const watch = (response: unknown, { sql, __knexTxId: id = 'none' }: { sql: string; __knexTxId?: string }) => {
        if (!/^delete /i.test(sql)) return
        const { changes, rowCount } = response as { changes?: number; rowCount?: number }
        counts.set(id, (counts.get(id) ?? 0) + (changes ?? rowCount ?? Number(response)))
      }
      const roots = [root(), ...(beside === null ? [] : [beside.database.root])]
      for (const each of roots) each.on('query-response', watch)
      await act()
      for (const each of roots) each.off('query-response', watch)
      return [...counts.values()]
    }

    describe('a workspace', () => {
      let owner: Person
      beforeEach(async () => {
        owner = await server.addPerson('owner', `gone-${realWorld.uuid().slice(0, 8)}`)
      })
      afterEach(() => goOn())

      test('with much in it goes in bounded transactions, and nothing is left', async () => {
        await fill(root(), owner.workspaceId, 4_000)
        const before = await countsOf(root())
        const counts = await removedBy(async () => {
          expect((await remove(owner)).status).toBe(200)
          await Promise.all(planes().map((plane) => plane.sweeper.runAll()))
          await expect.poll(() => isLeft(owner)).toBe(false)
        })
        const after = await countsOf(root())
        expect(before - after).toBeGreaterThan(12_000)
        expect(Math.max(...counts)).toBeLessThan(mostRows)
        for (const table of ['runs', 'tasks', 'messages', 'task_activity'])
          expect([table, await ofWorkspace(root(), table, owner.workspaceId)]).toEqual([table, 0])
      })

      test('holds nobody up who works elsewhere', async () => {
        await fill(root(), owner.workspaceId, 2_000)
        const agent = await server.createAgent()
        await remove(owner)
        const all = await rowsOf(root(), owner)
        let written = 0
        let isBetween = false
        while (await isLeft(owner)) {
          await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { description: `${written++}` } })
          const left = await rowsOf(root(), owner)
          isBetween ||= left > 0 && left < all
        }
        // One transaction for all would have let them in before it and after it alone.
        expect(isBetween).toBe(true)
      })

      test('is seen by nobody while its rows are there', async () => {
        const { slug, name } = await server.ok('/workspaces', { token: owner.token })
        const { token } = owner
        const agent = await server.createAgent({}, token)
        const device = await FakeDevice.connect(server, { token })
        const away = await enrol(server, { token })
        const run = await server.startRun(agent.id, {}, token)
        const work = await device.take()
        const waiting = await server.startRun(agent.id, {}, token)
        const hook = await server.ok('/automations', {
          token,
          body: { name: 'h', prompt: 'p', agentId: agent.id, trigger: { type: 'webhook' } },
        })
        const cron = await server.ok('/automations', {
          token,
          body: {
            name: 'c',
            prompt: 'p',
            agentId: agent.id,
            trigger: { type: 'schedule', cron: '* * * * *', timezone: 'UTC' },
          },
        })
        await holdJobs()
        const runsOf = () => ofWorkspace(root(), 'runs', owner.workspaceId)
        expect((await remove(owner)).body.billing.companyDeleted).toBe(true)
        expect([await isLeft(owner), await runsOf()]).toEqual([true, 2])
        for (const each of [token, work.token, await server.runToken(waiting)])
          expect(outcomeOf(await server.call('/workspaces', { token: each }))).toBe('401 auth_invalid')
        expect(closeCodes.auth_failed.code).toBe(await (await FakeDevice.open(server, away)).closed)
        const hookPath = new URL(hook.webhookUrl ?? hook.trigger.url ?? 'http://x/').pathname.replace(/^\/api\/v1/, '')
        expect(outcomeOf(await server.call(hookPath, { token: null, body: {} }))).toBe('404 automation_not_found')
        expect(outcomeOf(await server.call(`/workspaces/by-slug/${slug}`))).toBe('404 resource_not_found')
        expect((await server.call('/workspaces', { body: { name, slug } })).status).toBe(409)
        await expect(server.addPerson('owner', slug)).rejects.toThrow('reserved')
        // Nothing of it acts any more.
        server.world.advance(3 * 12_000)
        await server.plane.sweeper.runAll()
        expect(await runsOf()).toBe(2)
        expect(cron.id).toMatch(/./)
        goOn()
        for (const plane of planes()) await plane.sweeper.runAll()
        await expect.poll(() => isLeft(owner)).toBe(false)
        expect(await device.closed).toBe(closeCodes.revoked.code)
        expect([await runsOf(), run]).toEqual([0, run])
      })

      test('goes on where a batch died at a write, and when its server was stopped', async () => {
        await fill(root(), owner.workspaceId, 60)
        await holdJobs()
        await remove(owner)
        await setUpDeaths(root(), database)
        try {
          for (const nth of [1, 2, 7, 20, 55, 150]) {
            await dieAtWrite(root(), nth)
            goOn()
            await server.plane.sweeper.runAll()
            await holdJobs()
          }
          await dieAtWrite(root(), 0)
        } finally {
          await removeDeaths(root(), database)
        }
        goOn()
        await Promise.all(planes().map((plane) => plane.sweeper.runAll()))
        await expect.poll(() => isLeft(owner)).toBe(false)
        expect(await ofWorkspace(root(), 'tasks', owner.workspaceId)).toBe(0)
        expect(await root()('run_frames').where('run_id', 'like', `${owner.workspaceId}%`)).toEqual([])
      })
    })

    test('a conversation with thousands of messages is gone at once, and goes in bounded transactions', async () => {
      const { id } = await server.ok('/conversations', {
        body: { kind: 'channel', title: 'Long' },
        headers: keyed(),
      })
      await fillConversation(root(), id, 4_000)
      await holdJobs()
      const counts = await removedBy(async () => {
        expect(
          (await server.call(`/conversations/${id}/delete`, { method: 'POST', headers: keyed() })).status,
        ).toBeLessThan(300)
        expect(outcomeOf(await server.call(`/conversations/${id}`))).toBe('404 conversation_not_found')
        expect(outcomeOf(await server.call(`/conversations/${id}/messages`))).toBe('404 conversation_not_found')
        const { data } = await server.ok('/conversations')
        expect(data.map((each: { id: string }) => each.id)).not.toContain(id)
        goOn()
        await Promise.all(planes().map((plane) => plane.sweeper.runAll()))
      })
      expect(await root()('messages').where({ conversation_id: id }).first('id')).toBeUndefined()
      expect(await root()('conversations').where({ id }).first('id')).toBeUndefined()
      expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(4_000)
      expect(Math.max(...counts)).toBeLessThan(mostRows)
    })
  })

const keyed = () => ({ 'idempotency-key': crypto.randomUUID() })

const countOf = async (db: Db, table: string): Promise<number> => {
  const counted: unknown = await db(table).count({ n: '*' }).first()
  return Number((counted as { n: unknown }).n)
}

async function countsOf(db: Db): Promise<number> {
  let sum = 0
  for (const table of ownedTables) sum += await countOf(db, table)
  return sum
}

async function rowsOf(db: Db, { workspaceId }: Person): Promise<number> {
  const tables = ['runs', 'tasks', 'messages', 'task_activity']
  const counts = await Promise.all(tables.map((table) => ofWorkspace(db, table, workspaceId)))
  return counts.reduce((sum, count) => sum + count, 0)
}

async function ofWorkspace(db: Db, table: string, workspaceId: string): Promise<number> {
  const rows = db(table)
  if (table === 'messages') void rows.where('conversation_id', 'like', `${workspaceId}%`)
  else if (table === 'task_activity') void rows.where('task_id', 'like', `${workspaceId}%`)
  else void rows.where({ workspace_id: workspaceId })
  const counted: unknown = await rows.count({ n: '*' }).first()
  return Number((counted as { n: unknown }).n)
}

async function inChunks(db: Db, table: string, rows: Record<string, unknown>[]): Promise<void> {
  for (let from = 0; from < rows.length; from += 500) await db(table).insert(rows.slice(from, from + 500))
}

const message = (conversationId: string, seq: number) => ({
  id: `${conversationId}-${seq}`,
  conversation_id: conversationId,
  seq,
  author_type: 'system',
  body: 'Words that somebody said.',
  source: 'in_app',
  mentions: '[]',
  attachment_ids: '[]',
  created_at: at,
  updated_at: at,
})

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

async function fillConversation(db: Db, id: string, count: number): Promise<void> {
  await inChunks(
    db,
    'messages',
    numbers(count).map((n) => message(id, n + 1)),
  )
}

/** Work of long ago: so many tasks with what happened to each, so many ended runs with frames, so many messages. */
async function fill(db: Db, workspaceId: WorkspaceUuid, count: number): Promise<void> {
  const agent = await seedAgent(db, workspaceId)
  const { id: first } = await seedRun(db, agent)
  const run = (await db('runs').where({ id: first }).first()) as Record<string, unknown>
  await db('runs').where({ id: first }).update({ ended_at: at, status: 'succeeded', exit_reason: 'completed' })
  const idOf = (kind: string, n: number) => `${workspaceId}-${kind}-${n}`
  const ended = { ...run, ended_at: at, status: 'succeeded', exit_reason: 'completed' }
  await inChunks(
    db,
    'runs',
    numbers(count / 4).map((n) => ({ ...ended, id: idOf('run', n) })),
  )
  await inChunks(
    db,
    'run_frames',
    numbers(count / 4).map((n) => ({
      run_id: idOf('run', n),
      fence: 1,
      first_seq: 1,
      last_seq: 1,
      sha256: 'x',
      body: Buffer.alloc(2_000, n),
      received_at: at,
    })),
  )
  await inChunks(
    db,
    'tasks',
    numbers(count).map((n) => ({
      id: idOf('task', n),
      workspace_id: workspaceId,
      key: `X-${n}`,
      title: 't',
      title_words: 't',
      status: 'open',
      priority: 'normal',
      created_by_type: 'system',
      created_at: at,
      updated_at: at,
    })),
  )
  await inChunks(
    db,
    'task_activity',
    numbers(count).map((n) => ({
      id: idOf('activity', n),
      task_id: idOf('task', n),
      source: 'activity',
      kind: 'k',
      actor_type: 'system',
      data: '{}',
      created_at: at,
    })),
  )
  await db('conversations').insert({
    id: idOf('conversation', 0),
    workspace_id: workspaceId,
    kind: 'channel',
    created_by_type: 'system',
    created_at: at,
    updated_at: at,
  })
  await fillConversation(db, idOf('conversation', 0), count)
}
