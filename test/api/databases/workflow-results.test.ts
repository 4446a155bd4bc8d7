import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { databasesFor } from '../../kit/forms.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

// What steps come to: the outputs that their runs record, and why they failed.

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

    describe('a step that failed says why, and so does the log, where', () => {
      const errorsOf = async (id: string, token?: string) => {
        const call = token === undefined ? {} : { token }
        const { steps } = await server.ok(`/workflows/runs/${id}`, call)
        return steps.map(({ error }: { error: unknown }) => error)
      }

      it('the program passes over refusals', async () => {
        const idle = (await server.createAgent({ name: 'Idler' })) as { handle: string; id: string }
        await server.ok(`/agents/${idle.id}`, { method: 'PATCH', body: { status: 'terminated' } })
        const id = await start(`
          await parallel([
            () => agent('a', { agent: '${idle.handle}', label: 'review\\n2' }),
            () => agent('b', { agent: '@nobody' }),
            () => agent('c', ${on("schema: { type: 'none' }")}),
            () => gate(['true'], { agent: '${idle.handle}', label: 'test' }),
          ])
          await pipeline([1], () => agent('d', ${on("continues: 'none'")}))
          log('over')
          return 'all'`)
        await settled(server)
        const codes = ['agent_inactive', 'agent_not_found', 'schema_invalid', 'agent_inactive', 'unknown_label']
        const flow = await readFlow(server, id)
        expect(flow).toMatchObject({ status: 'completed', summary: 'all' })
        expect(flow.steps).toMatchObject(codes.map((code) => ({ state: 'done', run: null, error: { code } })))
        expect(flow.steps[0].error.message).toBe('Idler is terminated; only an active agent takes wakes.')
        expect(flow.log.toSorted()).toEqual([
          'Step 0 "review\\n2" failed: agent_inactive',
          'Step 1 failed: agent_not_found',
          'Step 2 failed: schema_invalid',
          'Step 3 "test" failed: agent_inactive',
          'Step 4 failed: unknown_label',
          'over',
        ])
      })

      it('its run failed, and none of those that came to a value', async () => {
        const id = await start(`
          await agent('a', ${on()})
          await agent('b', ${on()}).catch(() => null)
          await checks({ branch: 'x', repo: 'acme/x' }).catch(() => null)`)
        await (await device.take()).end('completed')
        await (await device.take()).end('timeout')
        await settled(server)
        expect(await errorsOf(id)).toEqual([null, { code: 'timeout', message: expect.any(String) }])
        expect((await readFlow(server, id)).log).toEqual([
          'Step 1 failed: timeout',
          'checks failed: github_not_installed',
        ])
      })

      it('but to nobody who does not see its agent', async () => {
        const member = await server.addPerson('member')
        const hidden = (await server.createAgent({ name: 'Hidden', visibility: 'private' })) as { id: string }
        await server.ok(`/agents/${hidden.id}`, { method: 'PATCH', body: { status: 'terminated' } })
        const id = await start(`await agent('a', { agent: '${hidden.id}' }).catch(() => null)`)
        await settled(server)
        expect(await errorsOf(id)).toMatchObject([{ code: 'agent_inactive' }])
        expect(await errorsOf(id, member.token)).toEqual([null])
        const seen = await server.ok(`/workflows/runs/${id}`, { token: member.token })
        expect(JSON.stringify(seen)).not.toContain('Hidden')
      })
    })
  })
