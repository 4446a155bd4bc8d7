import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { hasPostgres } from '../../kit/database.ts'
import { databasesFor } from '../../kit/forms.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { answerNext, makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

const minute = 60_000
const key = () => ({ 'idempotency-key': crypto.randomUUID() })

/** Tests what workflows wait for people about: questions, stalls, and steps whose agents ask. PostgreSQL alone refuses some texts. */
for (const database of databasesFor('postgres'))
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
    const answer = (id: string, given: Record<string, unknown>) =>
      server.call(`/questions/${id}/answer`, { body: { answer: given }, headers: key() })

    it('no zero byte of a program comes into the database, which may refuse it', async () => {
      const source = (title: string) => `export const meta = { name: 'zero', title: '${title}' }\nreturn 1`
      const refused = await server.call('/workflows/records', { body: { source: source('a\\u0000b') } })
      expect(outcomeOf(refused)).toBe('400 workflow_meta_invalid')
      const endOf = async (body: string) => {
        const id = await startFlow(server, await makeWorkflow(server, body))
        await settled(server)
        return readFlow(server, id)
      }
      expect(await endOf(`return 'a\\0b\\ud800'`)).toMatchObject({ status: 'completed', summary: 'a\ufffdb\ufffd' })
      expect(await endOf(`fail('a\\0b')`)).toMatchObject({ status: 'failed', error: { message: 'a\ufffdb' } })
      expect((await endOf(`await agent('x', { agent: 'a\\0b' })`)).summary).toContain('There is no agent a\ufffdb')
      const name = await makeWorkflow(server, `await agent('a\\0b', ${on()}); await ask('c\\0d')`)
      const id = await startFlow(server, name)
      expect(await answerNext(device, 'done')).toBe('a\ufffdb')
      await settled(server)
      expect((await readFlow(server, id)).parkedQuestion.prompt).toBe('c\ufffdd')
    })

    it('a question of the program is answered by a person, moves it and wakes no agent', async () => {
      const name = await makeWorkflow(
        server,
        `await agent('Look', ${on()})
         const text = await ask('How is it?')
         const one = await ask('Which?', { options: ['red', { key: 'b', label: 'Blue' }] })
         const many = await ask('All?', { options: ['x', 'y', 'z'], multiple: true })
         return [text, one, many]`,
      )
      const id = await startFlow(server, name)
      const run = await device.take()
      await run.end('completed')
      await settled(server)
      const parked = (await readFlow(server, id)).parkedQuestion
      expect(parked).toMatchObject({ prompt: 'How is it?', options: null })
      expect(await server.ok(`/questions/${parked.id}`)).toMatchObject({
        askedBy: { type: 'system', id: null },
        runId: run.runId,
        answerMode: 'free_text',
      })
      expect(outcomeOf(await answer(parked.id, { text: 'Fine' }))).toBe('200')
      await settled(server)
      const second = (await readFlow(server, id)).parkedQuestion
      expect(second.options).toEqual([
        { key: 'red', label: 'red' },
        { key: 'b', label: 'Blue' },
      ])
      expect(outcomeOf(await answer(second.id, { selected: ['green'] }))).toBe('400 invalid_option_key')
      await answer(second.id, { selected: ['b'] })
      await settled(server)
      await answer((await readFlow(server, id)).parkedQuestion.id, { selected: ['x', 'z'] })
      await settled(server)
      const ended = await readFlow(server, id)
      expect(ended).toMatchObject({ status: 'completed', parkedQuestion: null })
      expect(JSON.parse(ended.summary)).toEqual(['Fine', 'b', ['x', 'z']])
      expect(ended.steps).toHaveLength(1)
      expect((await server.ok(`/runs?agent=@${agent.slice(1)}&status=queued`)).data).toEqual([])
    })

    it('asks nobody before its first step, and two at once wait for both', async () => {
      const name = await makeWorkflow(
        server,
        `const early = await ask('Now?').catch((error) => error.code)
         await agent('Look', ${on()})
         return [early, ...await Promise.all([ask('One?'), ask('Two?')])]`,
      )
      const id = await startFlow(server, name)
      await answerNext(device, 'x')
      await settled(server)
      const first = (await readFlow(server, id)).parkedQuestion
      expect(first.prompt).toBe('One?')
      await answer(first.id, { text: '1' })
      await settled(server)
      const second = (await readFlow(server, id)).parkedQuestion
      expect(second.prompt).toBe('Two?')
      await answer(second.id, { text: '2' })
      await settled(server)
      expect((await readFlow(server, id)).summary).toBe('["ask_before_step","1","2"]')
    })

    it("a question stands on the task, is answered in its thread, and holds others' runs but not its own steps", async () => {
      const task = await server.ok('/tasks', { body: { title: 'Discuss it', force: true }, headers: key() })
      const name = await makeWorkflow(
        server,
        `await agent('Look', ${on()})
         const [said] = await Promise.all([ask('Go on?', { options: ['yes', 'no'] }), agent('Meanwhile', ${on()})])
         return said`,
      )
      const id = await startFlow(server, name, { taskId: task.id })
      await answerNext(device, 'x')
      expect(await answerNext(device, 'y')).toContain('Meanwhile')
      await settled(server)
      const { id: agentId } = await server.ok(`/agents/${agent}`)
      expect(await server.ok(`/agents/${agentId}/runs`, { body: { taskId: task.id } })).toMatchObject({
        kind: 'not_dispatched',
        reason: 'task_hitl_open',
      })
      const { data } = await server.ok(`/tasks/${task.id}/comments`)
      const shown = data.find((comment: { body: string }) => comment.body.startsWith('Go on?'))
      expect(shown.body).toContain('`yes`')
      const { parkedQuestion } = await readFlow(server, id)
      const { conversationId } = await server.ok(`/questions/${parkedQuestion.id}`)
      const reply = { body: { body: 'Yes', parentMessageId: shown.id }, headers: key() }
      expect((await server.call(`/conversations/${conversationId}/messages`, reply)).status).toBe(201)
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: 'yes' })
    })

    it('open questions are closed when the program ends', async () => {
      const name = await makeWorkflow(server, `await agent('Look', ${on()}); ask('Anybody?').then(log); return 'gone'`)
      const id = await startFlow(server, name)
      await answerNext(device, 'x')
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', parkedQuestion: null })
    })

    /** The agent of a step asks a person, and its run ends for that. */
    async function takeAndAsk(sessionId: string) {
      const run = await device.take()
      await run.events({ kind: 'session', data: { sessionId } })
      const asked = await server.ok('/questions', {
        token: run.token,
        body: { runId: run.runId, prompt: 'Which way?', answerMode: 'free_text' },
        headers: key(),
      })
      await device.next('run.cancel')
      await run.end('question_asked', { sessionId })
      await settled(server)
      return { run, asked }
    }

    it('a step whose agent asks stays open, and the run that the answer wakes is the step', async () => {
      const name = await makeWorkflow(server, `return await agent('Ask me', ${on()})`)
      const id = await startFlow(server, name)
      const { run, asked } = await takeAndAsk('ses-ask')
      expect((await readFlow(server, id)).steps[0]).toMatchObject({ state: 'dispatched', run: { id: run.runId } })
      await server.plane.sweeper.runAll()
      expect((await readFlow(server, id)).steps[0].state).toBe('dispatched')
      await answer(asked.question.id, { text: 'Left' })
      const next = await device.take()
      expect(next.spec.resumeSessionId).toBe('ses-ask')
      await next.events({ kind: 'result', data: { text: 'Went left', isError: false } })
      await next.end('completed')
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({
        status: 'completed',
        summary: 'Went left',
        steps: [{ stepOrdinal: 0, state: 'done', run: { id: next.runId } }],
      })
    })

    it('stalls when results do not reach it, is tried again, stalls again, and is cancelled', async () => {
      const bomb = 'new Uint8Array(1e8)'
      const name = await makeWorkflow(server, `await agent('Look', ${on()})\n${bomb}`)
      const id = await startFlow(server, name)
      await answerNext(device, 'x')
      const sweep = () => server.plane.sweeper.runAll()
      await sweep()
      const stateOf = async () => {
        const { status, steps } = await readFlow(server, id)
        return [status, steps[0].state, steps[0].resumeAttempts]
      }
      const untilStalled = async () => {
        for (const attempts of [1, 2, 3]) {
          server.world.advance(2 * minute)
          await sweep()
          expect(await stateOf()).toEqual(['running', 'resumed', attempts])
        }
        server.world.advance(minute)
        await sweep()
        expect(await stateOf()).toEqual(['running', 'resumed', 3])
        server.world.advance(minute)
        await sweep()
        expect((await stateOf())[0]).toBe('stalled')
      }
      expect(await stateOf()).toEqual(['running', 'resumed', 0])
      await untilStalled()
      const first = await readFlow(server, id)
      expect(first).toMatchObject({
        completedAt: null,
        parkedQuestion: {
          prompt: expect.stringContaining('64 MiB'),
          options: [
            { key: 'retry', label: 'Try again' },
            { key: 'cancel', label: 'Cancel the workflow run' },
          ],
        },
      })
      expect((await server.ok('/workflows/runs?status=stalled')).data[0].id).toBe(id)
      expect(outcomeOf(await answer(first.parkedQuestion.id, { selected: ['retry'] }))).toBe('200')
      await sweep()
      expect(await stateOf()).toEqual(['running', 'resumed', 0])
      await untilStalled()
      const { parkedQuestion } = await readFlow(server, id)
      await answer(parkedQuestion.id, { selected: ['cancel'] })
      await sweep()
      expect(await readFlow(server, id)).toMatchObject({ status: 'failed', summary: 'The run was cancelled.' })
      // Its lease ended while time passed.
      await device.beat()
    })

    it('a step that was answered and cannot go on says why, and not that nobody answered', async () => {
      const other = await server.createAgent({ name: 'Ends early', harness: 'claude' })
      const flowOf = async () =>
        startFlow(
          server,
          await makeWorkflow(
            server,
            `try { await agent('Ask me', { agent: '${other.handle}' }) } catch (e) { return e.code + ': ' + e.message }`,
          ),
        )
      const answered = await flowOf()
      const { asked } = await takeAndAsk('ses-answered')
      const closed = await flowOf()
      const { asked: left } = await takeAndAsk('ses-closed')
      await server.ok(`/agents/${other.id}`, { method: 'PATCH', body: { status: 'terminated' } })
      expect(outcomeOf(await answer(asked.question.id, { text: 'Left' }))).toBe('200')
      await server.plane.waker.sweep()
      await server.plane.sweeper.runAll()
      await settled(server)
      expect(await readFlow(server, answered)).toMatchObject({
        status: 'completed',
        summary: expect.stringMatching(/^agent_inactive: .*answered.* Ends early /),
      })
      await server.ok(`/agents/${other.id}`, { method: 'DELETE' })
      expect(outcomeOf(await answer(left.question.id, { text: 'Left' }))).toBe('409 question_resolved')
      await server.plane.sweeper.runAll()
      await settled(server)
      expect(await readFlow(server, closed)).toMatchObject({
        status: 'completed',
        summary: 'agent_tombstoned: The agent of this step was deleted while it waited for a person.',
      })
    })

    it('a person who leaves ends the workflow runs on their account, and none of others', async () => {
      const leaver = await server.addPerson('member')
      const theirs = await FakeDevice.connect(server, { token: leaver.token })
      const own = await server.createAgent({ name: 'Of one who leaves', harness: 'claude' }, leaver.token)
      const body = `for (const i of [1, 2, 3]) try { await agent('Step ' + i, { agent: '${own.handle}' }) } catch {}
         return 'went on'`
      const name = await makeWorkflow(server, body, { token: leaver.token })
      const id = await startFlow(server, name, {}, leaver.token)
      await theirs.take()
      const ours = await startFlow(server, await makeWorkflow(server, `await agent('Ours', ${on()}); return 'ours'`))
      await server.ok(`/workspaces/${leaver.workspaceId}/leave`, { method: 'POST', token: leaver.token })
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({
        status: 'failed',
        summary: 'The person who started the workflow has left the workspace.',
      })
      expect(
        (await server.ok('/runs?status=queued')).data.map((run: { agentId: string }) => run.agentId),
      ).not.toContain(own.id)
      await answerNext(device, 'x')
      await settled(server)
      expect(await readFlow(server, ours)).toMatchObject({ status: 'completed', summary: 'ours' })
    })

    it('nothing goes on with a step once its workflow is cancelled, though a person answered its agent before', async () => {
      const id = await startFlow(server, await makeWorkflow(server, `return await agent('Ask me', ${on()})`))
      const { run, asked } = await takeAndAsk('ses-late')
      await server.plane.waker.stop()
      await answer(asked.question.id, { text: 'Left' })
      await server.ok(`/workflows/runs/${id}/cancel`, { method: 'POST' })
      server.plane.waker.start()
      await server.plane.waker.sweep()
      expect(await readFlow(server, id)).toMatchObject({ status: 'failed', steps: [{ run: { id: run.runId } }] })
      expect((await server.ok('/runs?status=queued')).data).toEqual([])
    })
  })
