import { idFrom } from '../../../shared/lib/ids.ts'
import { advance, type AdvanceDependencies } from '../../../control-plane/workflows/advance/advance.ts'
import { HandedCalls } from '../../../control-plane/workflows/advance/handed-calls.ts'
import type { EnginePool } from '../../../control-plane/workflows/engine/pool.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { dieAtWrite, removeDeaths, setUpDeaths } from '../../kit/dying-writes.ts'
import { databasesFor } from '../../kit/forms.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'
import { makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

// What is left of an advance that dies at each of its writes in turn: nothing, and the next one does all of it once. PostgreSQL
// takes no write after one that failed, so SQLite alone shows one that goes on all the same; file-deaths.test.ts has both.

for (const database of databasesFor('sqlite'))
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let device: FakeDevice
    let agent: string
    beforeAll(async () => {
      server = await TestServer.start({ database })
      device = await FakeDevice.connect(server)
      agent = (await server.createAgent({ name: 'Worker', harness: 'claude' })).handle as string
      await setUpDeaths(server.database.root, database)
    })
    afterAll(async () => {
      await removeDeaths(server.database.root, database)
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
        await dieAtWrite(root, deaths + 1)
        advancer.start()
        await advancer.idle()
        await advancer.stop()
        await dieAtWrite(root, 0)
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

    it('an advance that another one overtook while its program ran leaves the journal as that one wrote it', async () => {
      const { root } = server.database
      const [one, two] = [`agent('One', { agent: '${agent}' })`, `agent('Two', { agent: '${agent}' })`]
      const id = await startFlow(server, await makeWorkflow(server, `return await Promise.all([${one}, ${two}])`))
      const [first, second] = [await device.take(), await device.take()]
      const { advancer } = server.plane
      await advancer.idle()
      await advancer.stop()
      const { options } = advancer as unknown as { options: AdvanceDependencies & { engine: EnginePool } }
      const ran = Promise.withResolvers<void>()
      const mayGoOn = Promise.withResolvers<void>()
      const engine: AdvanceDependencies['engine'] = {
        async run(...given) {
          const answer = await options.engine.run(...given)
          ran.resolve()
          await mayGoOn.promise
          return answer
        },
      }
      await second.end('completed')
      const overtaken = advance(idFrom(id), { ...options, engine, handedCalls: new HandedCalls() })
      await ran.promise
      await first.end('completed')
      expect(await advance(idFrom(id), { ...options, handedCalls: new HandedCalls() })).toBe('moved')
      const journal = () => root('workflow_calls').where({ workflow_run_id: id }).orderBy('seq').select()
      const written = await journal()
      mayGoOn.resolve()
      expect(await overtaken).toBe('somebody else was first')
      expect(await journal()).toEqual(written)
      expect((await readFlow(server, id)).status).toBe('completed')
      advancer.start()
    })
  })
