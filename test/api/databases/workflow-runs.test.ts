import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { hasPostgres } from '../../kit/database.ts'
import { databasesFor } from '../../kit/forms.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { answerNext, makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

/** Runs programs of a server. */
interface Engine {
  run: (name: string, input: object, ...rest: unknown[]) => Promise<unknown>
}
const engineOf = ({ plane }: TestServer) => (plane as unknown as { engine: Engine }).engine

/** Runs of workflows, with a device that answers as the test says; workflow-deaths.test.ts has a walk on PostgreSQL in the short form. */
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

    it('a program leads an agent from its start to its end', async () => {
      const name = await makeWorkflow(
        server,
        `phase('Say'); log('begins')
         const one = await agent('Say hello', ${on("label: 'hello'")})
         const two = await agent('Now say ' + one + ' to ' + input.who, ${on()})
         return two`,
        { meta: { inputs: [{ key: 'who', required: true }] } },
      )
      const started = await server.call('/workflows/runs', { body: { workflow: name, input: { who: 'Ann' } } })
      expect(started).toMatchObject({
        status: 201,
        body: { object: 'workflow_run', workflow: name, status: 'running', taskId: null, input: { who: 'Ann' } },
      })
      expect(started.body.steps).toBeUndefined()
      const { id } = started.body
      const first = await device.take()
      expect(first.spec.prompt).toBe('Say hello')
      expect(await server.ok(`/runs/${first.runId}`)).toMatchObject({ triggerSource: 'workflow_step' })
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({
        status: 'running',
        log: ['begins'],
        steps: [
          {
            stepOrdinal: 0,
            state: 'dispatched',
            label: 'hello',
            phase: 'Say',
            run: { id: first.runId, status: 'running' },
            agent: { handle: agent },
            resumeAttempts: 0,
            pendingApproval: null,
            gate: null,
            advancedAt: null,
          },
        ],
      })
      await first.events({ kind: 'result', data: { text: 'hello', isError: false } })
      await first.end('completed')
      expect(await answerNext(device, 'done')).toBe('Now say hello to Ann')
      await settled(server)
      const ended = await readFlow(server, id)
      expect(ended).toMatchObject({ status: 'completed', summary: 'done', error: null, task: null })
      expect(ended.completedAt).not.toBeNull()
      expect(ended.steps.map((step: { state: string }) => step.state)).toEqual(['done', 'done'])
    })

    it('steps at once are runs at once, and each comes once', async () => {
      const name = await makeWorkflow(
        server,
        `return await parallel([1, 2, 3].map((n) => () => agent('Part ' + n, ${on()})))`,
      )
      const id = await startFlow(server, name)
      const runs = [await device.take(), await device.take(), await device.take()]
      for (const run of runs.toReversed()) {
        await run.events({ kind: 'result', data: { text: run.spec.prompt.toUpperCase(), isError: false } })
        await run.end('completed')
      }
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({
        status: 'completed',
        summary: '["PART 1","PART 2","PART 3"]',
      })
      expect((await server.ok(`/runs?agent=@${agent.slice(1)}&limit=100`)).data.length).toBeGreaterThanOrEqual(3)
    })

    it('a step that fails rejects with why, and an uncaught failure ends the run with its line', async () => {
      const caught = await makeWorkflow(
        server,
        `try { await agent('Break', ${on()}) } catch (e) { return [e.name, e.code, e.exitReason, e.runId] }`,
      )
      const id = await startFlow(server, caught)
      const run = await device.take()
      await run.end('error', { message: 'It broke.' })
      await settled(server)
      const { summary } = await readFlow(server, id)
      expect(JSON.parse(summary)).toEqual(['StepError', 'error', 'error', run.runId])
      const uncaught = await makeWorkflow(server, `const a = 1\nawait agent('Break', ${on()})`)
      const second = await startFlow(server, uncaught)
      await (await device.take()).end('error', { message: 'It broke.' })
      await settled(server)
      expect(await readFlow(server, second)).toMatchObject({
        status: 'failed',
        summary: 'StepError: It broke.',
        error: { message: 'StepError: It broke.', line: 3 },
      })
    })

    it('a step that cannot be started has failed at once, and the program goes on', async () => {
      const name = await makeWorkflow(
        server,
        `const codes = []
         for (const options of [{}, { agent: '@nobody' }, ${on("continues: 'x'")}, ${on("schema: { type: 'nothing' }")}])
           await agent('x', options).catch((error) => codes.push(error.code))
         await checks({ branch: 'a', repo: 'a/b' }).catch((error) => codes.push(error.code))
         return codes.join()`,
      )
      const id = await startFlow(server, name)
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({
        status: 'completed',
        // Of this server no GitHub is known.
        summary: 'no_agent,agent_not_found,unknown_label,schema_invalid,github_not_installed',
      })
    })

    it('a private agent does steps for its owner alone, by whichever name it is called', async () => {
      const made = await server.createAgent({ name: 'Hidden', harness: 'claude', visibility: 'private' })
      const names = [made.id, made.handle, made.name]
      const name = await makeWorkflow(
        server,
        `const codes = []
         for (const called of ${JSON.stringify(names)})
           await agent('x', { agent: called }).then(() => codes.push('done'), (error) => codes.push(error.code))
         return codes.join()`,
      )
      const { token } = await server.addPerson('member')
      const refused = await startFlow(server, name, {}, token)
      await settled(server)
      expect((await readFlow(server, refused)).summary).toBe(names.map(() => 'agent_not_found').join())
      const own = await startFlow(server, name)
      for (const _ of names) {
        await settled(server)
        await answerNext(device, 'x')
      }
      await settled(server)
      expect((await readFlow(server, own)).summary).toBe('done,done,done')
    })

    it('a step with a schema returns the output that its run recorded, one without it fails', async () => {
      const schema = "schema: { type: 'object', required: ['n'], properties: { n: { type: 'number' } } }"
      const name = await makeWorkflow(
        server,
        `const { n } = await agent('Count', ${on(schema)})
         const other = await agent('Count again', ${on(schema)}).catch((error) => error.code)
         return n + 1 + other`,
      )
      const id = await startFlow(server, name)
      const run = await device.take()
      expect(run.spec.prompt).toContain('svc run output --schema output')
      const record = (data: unknown) =>
        server.call('/runs/current/output', { token: run.token, body: { schema: 'output', data } })
      expect(outcomeOf(await record({ n: 'two' }))).toBe('422 run_output.invalid')
      expect(outcomeOf(await record({ n: 2 }))).toBe('200')
      await run.end('completed')
      await answerNext(device, '{"n":3}')
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: '3output_missing' })
    })

    it('a step goes on with the session of an earlier one when it says so, and else begins anew', async () => {
      const name = await makeWorkflow(
        server,
        `await agent('One', ${on("label: 'a'")})
         await agent('Two', ${on()})
         await agent('Three', ${on("continues: 'a'")})`,
      )
      const id = await startFlow(server, name)
      const one = await device.take()
      await one.events({ kind: 'session', data: { sessionId: 'ses-one' } })
      await one.end('completed', { sessionId: 'ses-one' })
      const two = await device.take()
      expect(two.spec.resumeSessionId).toBeNull()
      await two.end('completed', { sessionId: 'ses-two' })
      const three = await device.take()
      expect(three.spec.resumeSessionId).toBe('ses-one')
      await three.end('completed')
      await settled(server)
      expect((await readFlow(server, id)).status).toBe('completed')
      expect(await server.ok(`/runs/${three.runId}`)).toMatchObject({ parentRunId: one.runId })
    })

    it('the mode of a workflow makes its steps stricter, never looser', async () => {
      const mode = async (own: string, toolPermissionMode: string) => {
        const { handle } = await server.createAgent({ harness: 'claude', toolPermissionMode: own })
        const name = await makeWorkflow(server, `await agent('x', { agent: '${handle}' })`)
        const id = await startFlow(server, name, { toolPermissionMode })
        const run = await device.take()
        await run.end('completed')
        await settled(server)
        return [run.spec.permissions.defaultMode, (await readFlow(server, id)).toolPermissionMode]
      }
      expect(await mode('full', 'ask')).toEqual(['ask', 'ask'])
      expect(await mode('full', 'full')).toEqual(['full', 'full'])
      expect(await mode('strict', 'full')).toEqual(['strict', 'full'])
    })

    it('a step works on the task of its run, unless it says that it has none', async () => {
      const { id: taskId, key } = await server.ok('/tasks', {
        body: { title: 'Paint it' },
        headers: { 'idempotency-key': crypto.randomUUID() },
      })
      const name = await makeWorkflow(
        server,
        `await agent('Look', ${on()}); await agent('Alone', ${on('task: null')}); return input.taskRef`,
        { meta: { inputs: [{ key: 'taskRef', kind: 'task' }] } },
      )
      const id = await startFlow(server, name, { taskId: key })
      const first = await device.take()
      const made = await server.ok('/tasks', {
        token: first.token,
        body: { title: 'Found on the way', force: true },
        headers: { 'idempotency-key': crypto.randomUUID() },
      })
      expect(made.workflowRef).toBe(id.replace('flr_', 'wf_'))
      expect(first.spec.prompt).toMatch(/^Look\n\nTask .*Paint it/)
      await first.end('completed')
      expect(await answerNext(device, 'x')).toBe('Alone')
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({ summary: taskId, task: { id: taskId, title: 'Paint it' } })
    })

    it('is cancelled with what is open of it, by whoever started it and by admins', async () => {
      const name = await makeWorkflow(server, `await parallel([() => agent('a', ${on()}), () => agent('b', ${on()})])`)
      const member = await server.addPerson('member')
      const id = await startFlow(server, name)
      const [a, b] = [await device.take(), await device.take()]
      const cancel = (token?: string) =>
        server.call(`/workflows/runs/${id}/cancel`, { method: 'POST', ...(token !== undefined && { token }) })
      expect(outcomeOf(await cancel(member.token))).toBe('403 not_permitted')
      await settled(server)
      expect((await cancel()).body).toMatchObject({ status: 'failed', summary: 'The run was cancelled.' })
      for (const run of [a, b]) {
        await device.next('run.cancel')
        await run.end('interrupted')
      }
      await settled(server)
      const ended = await readFlow(server, id)
      expect(ended.steps.map((step: { run: { exitReason: string } }) => step.run.exitReason)).toEqual([
        'interrupted',
        'interrupted',
      ])
      expect(outcomeOf(await cancel())).toBe('422 invalid_status_transition')
    })

    it('fails at its start when its first run goes beyond the limits of the engine', async () => {
      const name = await makeWorkflow(server, 'for (;;) {}')
      const engine = engineOf(server)
      const { run } = engine
      // Its time is over sooner than it says.
      engine.run = (job, input, ...rest) => run.call(engine, job, { ...input, replayMs: 50 }, ...rest)
      const id = await startFlow(server, name)
      await settled(server)
      engine.run = run
      expect(await readFlow(server, id)).toMatchObject({
        status: 'failed',
        summary: 'The program took more than 2 s of processor time.',
      })
    })

    it('ends with a sentence when a result takes more than 64 KiB', async () => {
      const id = await startFlow(
        server,
        await makeWorkflow(server, `await agent('Talk', ${on()}); await agent('More', ${on()})`),
      )
      await answerNext(device, '\n'.repeat(65_536))
      await answerNext(device, 'x'.repeat(65_537))
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({
        status: 'failed',
        summary: 'The result of step 1 takes more than 64 KiB.',
      })
    })

    it('waits while the agents of the workspace are paused, and goes on when they are resumed', async () => {
      const owner = await server.addPerson('owner', database === 'sqlite' ? 'pausing' : 'pausing-too')
      const { workspaceId, token } = owner
      const worker = await server.createAgent({ name: 'Pauser', harness: 'claude' }, token)
      const own = await FakeDevice.connect(server, { token })
      const body = `const first = await agent('One', { agent: '${worker.id}' })
        return first + ' ' + (await agent('Two', { agent: '${worker.id}' }))`
      const id = await startFlow(server, await makeWorkflow(server, body, { token }), {}, token)
      const first = await own.take()
      const act = (action: string) => server.ok(`/workspaces/${workspaceId}/${action}`, { method: 'POST', token })
      const statuses = async (...ids: string[]) => {
        await settled(server)
        const runs = await Promise.all(ids.map((flow) => server.ok(`/workflows/runs/${flow}`, { token })))
        return runs.map(({ status }) => status)
      }
      await act('pause-agents')
      await first.events({ kind: 'result', data: { text: '1', isError: false } })
      await first.end('completed')
      const later = await startFlow(server, await makeWorkflow(server, 'return 1', { token }), {}, token)
      for (let minutes = 0; minutes < 30; minutes += 5) {
        server.world.advance(5 * 60_000)
        await server.plane.sweeper.runAll()
      }
      expect(await statuses(id, later)).toEqual(['running', 'running'])
      await act('resume-agents')
      await own.disconnect()
      const again = await FakeDevice.connect(server, { identity: own.identity, token })
      expect(await answerNext(again, '2')).toBe('Two')
      expect(await statuses(id, later)).toEqual(['completed', 'completed'])
      expect((await server.ok(`/workflows/runs/${id}`, { token })).summary).toBe('1 2')
      await again.disconnect()
      // Its lease ended while time passed.
      await device.beat()
    })

    it('begins when the agents are resumed after a long pause, and starts no step of a program that ran as they were paused', async () => {
      const owner = await server.addPerson('owner', database === 'sqlite' ? 'halting' : 'halting-too')
      const { workspaceId, token } = owner
      const worker = await server.createAgent({ name: 'Halter', harness: 'claude' }, token)
      const act = (action: string) => server.ok(`/workspaces/${workspaceId}/${action}`, { method: 'POST', token })
      const flow = async (id: string) => {
        await settled(server)
        return server.ok(`/workflows/runs/${id}`, { token })
      }
      const begin = async (body: string) => startFlow(server, await makeWorkflow(server, body, { token }), {}, token)
      const { advancer, sweeper } = server.plane
      await act('pause-agents')
      const late = await begin('return 1')
      await settled(server)
      server.world.advance(11 * 60_000)
      // The message of the resuming is lost.
      await advancer.stop()
      await act('resume-agents')
      await sweeper.runAll()
      advancer.start()
      expect(await flow(late)).toMatchObject({ status: 'completed', summary: '1' })
      const engine = engineOf(server)
      const { run } = engine
      engine.run = async (...args) => {
        const replayed = await run.apply(engine, args)
        if (args[0] === 'replay') await act('pause-agents')
        return replayed
      }
      const id = await begin(`return await agent('x', { agent: '${worker.id}' })`)
      const paused = await flow(id)
      engine.run = run
      expect(paused).toMatchObject({ status: 'running', steps: [] })
      await act('resume-agents')
      expect(await flow(id)).toMatchObject({ status: 'running', steps: [{ state: 'dispatched' }] })
      await device.beat()
    })

    it('keeps the program it began with, and ends though its workflow is retired', async () => {
      const name = await makeWorkflow(server, `await agent('x', ${on()}); return 'old'`)
      const id = await startFlow(server, name)
      const run = await device.take()
      const source = `export const meta = { name: '${name}', title: 'New' }\nreturn 'new'`
      await server.ok(`/workflows/records/${name}`, { method: 'PATCH', body: { source } })
      await server.ok(`/workflows/records/${name}`, { method: 'DELETE' })
      await run.end('completed')
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: 'old' })
      const again = await server.call('/workflows/runs', { body: { workflow: name } })
      expect(outcomeOf(again)).toBe('400 validation_error')
    })

    it('fails once it has waited for nothing for 10 minutes', async () => {
      const id = await startFlow(server, await makeWorkflow(server, 'await new Promise(() => {})'))
      await settled(server)
      server.world.advance(10 * 60_000 - 1_000)
      await server.plane.sweeper.runAll()
      expect((await readFlow(server, id)).status).toBe('running')
      server.world.advance(2_000)
      await server.plane.sweeper.runAll()
      expect(await readFlow(server, id)).toMatchObject({
        status: 'failed',
        summary: expect.stringContaining('waits for nothing'),
      })
    })

    it('lists its runs newest first, by status and by workflow', async () => {
      const name = await makeWorkflow(server, 'return input.n', { meta: { inputs: [{ key: 'n', kind: 'number' }] } })
      const ids: string[] = []
      for (const n of [1, 2, 3]) ids.unshift(await startFlow(server, name, { input: { n } }))
      await settled(server)
      const page = await server.ok(`/workflows/runs?workflow=${name}&limit=2`)
      expect(page.data.map((run: { id: string }) => run.id)).toEqual(ids.slice(0, 2))
      expect(page.data[0]).toMatchObject({ summary: '3', steps: [] })
      const rest = await server.ok(`/workflows/runs?workflow=${name}&cursor=${page.nextCursor}`)
      expect(rest.data.map((run: { id: string }) => run.id)).toEqual(ids.slice(2))
      expect((await server.ok(`/workflows/runs?workflow=${name}&status=failed`)).data).toEqual([])
      const { data } = await server.ok('/workflows/records?limit=100')
      expect(data.find((row: { name: string }) => row.name === name)).toMatchObject({
        runCount: 3,
        lastRun: { id: ids[0], status: 'completed' },
      })
    })
  })
