import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { databasesFor } from '../../kit/forms.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

/** What steps come to: the outputs that their runs record, and why they failed. */

for (const database of databasesFor('sqlite'))
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let device: FakeDevice
    let agent: string
    beforeAll(async () => {
      server = await TestServer.start({ database })
      device = await FakeDevice.connect(server)
      agent = (await server.createAgent({ name: 'Worker', harness: 'claude' })).handle as string
    })
    afterAll(async () => {
      await device.disconnect()
      await server.stop()
    })
    const on = (more = '') => `{ agent: '${agent}'${more === '' ? '' : `, ${more}`} }`
    const start = async (body: string) => startFlow(server, await makeWorkflow(server, body))
    const keyed = () => ({ headers: { 'idempotency-key': crypto.randomUUID() } })

    describe('an output that names no schema', () => {
      const schema = "schema: { type: 'object', required: ['n'], properties: { n: { type: 'number' } } }"
      const record = (run: FakeRun, data: unknown) =>
        server.call('/runs/current/output', { token: run.token, body: { data } })
      /** What does not fit is refused with what is wrong, and what fits is the step's. */
      const counts = async (run: FakeRun) => {
        const refused = await record(run, { n: 'two' })
        expect([outcomeOf(refused), refused.body.error.param]).toEqual(['422 run_output.invalid', 'data.n'])
        expect(refused.body.error.message).toBe('data.n must be number (schema output).')
        expect(outcomeOf(await record(run, { n: 2 }))).toBe('200')
        expect(outcomeOf(await record(run, null))).toBe('422 run_output.invalid')
        expect(await server.ok(`/runs/${run.runId}/output`)).toMatchObject({ schema: 'output', data: { n: 2 } })
        await run.end('completed')
        await settled(server)
      }

      it('is held to that of the step', async () => {
        const id = await start(`return (await agent('Count', ${on(schema)})).n`)
        await counts(await device.take())
        expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: '2' })
      })

      it('is held to it when an answer woke the step anew', async () => {
        const id = await start(`return (await agent('Count', ${on(schema)})).n`)
        const asking = await device.take()
        const body = { runId: asking.runId, prompt: 'What?', answerMode: 'free_text' }
        const { question } = await server.ok('/questions', { token: asking.token, body, ...keyed() })
        await device.next('run.cancel')
        await asking.end('question_asked')
        await server.ok(`/questions/${question.id}/answer`, { body: { answer: { text: 'Stars' } }, ...keyed() })
        await counts(await device.take())
        expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: '2' })
      })

      it('is any JSON of a step that asks for none, also after one that did', async () => {
        const id = await start(
          `await agent('Count', ${on(`${schema}, label: 'count'`)}); return await agent('Say', ${on("continues: 'count'")})`,
        )
        await counts(await device.take())
        const run = await device.take()
        expect(outcomeOf(await record(run, 'anything'))).toBe('200')
        expect(await server.ok(`/runs/${run.runId}/output`)).toMatchObject({ schema: null, data: 'anything' })
        await run.end('completed')
        await settled(server)
        expect((await readFlow(server, id)).status).toBe('completed')
      })
    })
  })
