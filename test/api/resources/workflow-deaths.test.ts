import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { hasPostgres } from '../../kit/database.ts'
import { TestServer } from '../../kit/server.ts'
import { makeWorkflow, readFlow, settled, startFlow } from './workflows-kit.ts'

/**
 * What is left of an advance that dies at each of its writes in turn: nothing, and the next one does all of it once. A trigger on
 * every table counts the writes down, and breaks the transaction with the one at which it comes to nothing.
 */

const tablesOf = async (root: Knex, isSqlite: boolean): Promise<string[]> => {
  const rows: { name: string }[] = isSqlite
    ? await root('sqlite_master').where({ type: 'table' }).whereRaw("name not like 'sqlite%'").select('name')
    : await root('pg_tables').whereRaw('schemaname = current_schema()').select({ name: 'tablename' })
  return rows.map(({ name }) => name).filter((name) => name !== 'death')
}

async function setUp(root: Knex, isSqlite: boolean): Promise<void> {
  const tables = await tablesOf(root, isSqlite)
  await root.raw('create table death (writes integer not null)')
  await root('death').insert({ writes: 0 })
  if (!isSqlite)
    await root.raw(`create function count_down() returns trigger language plpgsql as $$
      declare left_over integer;
      begin
        update death set writes = writes - 1 returning writes into left_over;
        if left_over = 0 then raise exception 'dies here'; end if;
        return null;
      end $$`)
  for (const table of tables)
    for (const event of ['insert', 'update', 'delete']) {
      const name = `death_${event}_${table}`
      await root.raw(
        isSqlite
          ? `create trigger ${name} after ${event} on ${table} begin
               update death set writes = writes - 1;
               select raise(abort, 'dies here') from death where writes = 0;
             end`
          : `create trigger ${name} after ${event} on ${table} for each row execute function count_down()`,
      )
    }
}

async function cleanUp(root: Knex, isSqlite: boolean): Promise<void> {
  for (const table of await tablesOf(root, isSqlite))
    for (const event of ['insert', 'update', 'delete'])
      await root.raw(`drop trigger if exists death_${event}_${table}${isSqlite ? '' : ` on ${table}`}`)
  if (!isSqlite) await root.raw('drop function if exists count_down')
  await root.raw('drop table if exists death')
}

for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    const isSqlite = database === 'sqlite'
    let server: TestServer
    let device: FakeDevice
    let agent: string
    beforeAll(async () => {
      server = await TestServer.start({ database })
      device = await FakeDevice.connect(server)
      agent = (await server.createAgent({ name: 'Worker', harness: 'claude' })).handle as string
      await setUp(server.database.root, isSqlite)
    })
    afterAll(async () => {
      await cleanUp(server.database.root, isSqlite)
      await device.disconnect()
      await server.stop()
    })

    it('each call of a program is written down and started once, whichever write was the last', async () => {
      const { root } = server.database
      const schema = "{ type: 'object' }"
      const name = await makeWorkflow(
        server,
        `await agent('First', { agent: '${agent}' })
         await parallel([
           () => agent('Two', { agent: '${agent}', schema: ${schema} }),
           () => agent('Three', { agent: '@nobody' }),
           () => gate(['make'], { agent: '${agent}' }),
           () => ask('Which?', { options: ['a', 'b'] }),
         ])`,
        { meta: { toolPermissionMode: 'full' } },
      )
      const id = await startFlow(server, name)
      const first = await device.take()
      await server.plane.advancer.idle()
      const count = async (table: string) =>
        Number((await root(table).where({ workflow_run_id: id }).count({ count: '*' }))[0]!['count'])
      const stateOf = async () => ({
        handed: await root('workflow_calls')
          .where({ workflow_run_id: id })
          .orderBy('seq')
          .select('seq', 'handed_order'),
        runs: await count('runs'),
        questions: await count('questions'),
        flow: await root('workflow_runs').where({ id }).select('version', 'status'),
      })
      const { advancer } = server.plane
      await advancer.stop()
      await first.end('completed')
      const before = await stateOf()
      let deaths = 0
      for (;;) {
        await root('death').update({ writes: deaths + 1 })
        advancer.start()
        await advancer.idle()
        await advancer.stop()
        await root('death').update({ writes: 0 })
        const after = await stateOf()
        if (after.flow[0].version !== before.flow[0].version) break
        expect(after).toEqual(before)
        deaths++
      }
      expect(deaths).toBeGreaterThan(10)
      expect(await stateOf()).toMatchObject({
        handed: [0, null, 0, null, null].map((_, seq) => ({ seq, handed_order: seq === 0 ? 0 : null })),
        runs: 3,
        questions: 1,
      })
      advancer.start()
      await advancer.idle()
      const started = [await device.take(), await device.take()]
      expect(started.map(({ spec }) => spec.prompt.split('\n')[0]).toSorted((a, b) => (a! < b! ? -1 : 1))).toEqual([
        'Gate: make',
        'Two',
      ])
      for (const run of started) await run.end('completed')
      const [{ id: question }] = await root('questions').where({ workflow_run_id: id }).select('id')
      const answer = { body: { answer: { selected: ['a'] } }, headers: { 'idempotency-key': crypto.randomUUID() } }
      await server.ok(`/questions/${question}/answer`, answer)
      await settled(server)
      const ended = await readFlow(server, id)
      expect(ended).toMatchObject({ status: 'completed', steps: [{}, {}, {}, {}] })
      expect(device.pending.filter((type) => type === 'run.offer')).toEqual([])
    })
  })
