import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { databasesFor } from '../../kit/forms.ts'
import { TestServer } from '../../kit/server.ts'
import { makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

// Steps of workflows on tasks that somebody finished, before the workflow began or while it works.

for (const database of databasesFor('sqlite'))
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let device: FakeDevice
    let agent: string
    let workflow: string
    beforeAll(async () => {
      server = await TestServer.start({ database })
      device = await FakeDevice.connect(server)
      agent = (await server.createAgent({ name: 'Worker', harness: 'claude' })).handle as string
      const one = (label: string) => `await agent('${label}', { agent: '${agent}', label: '${label}' })`
      workflow = await makeWorkflow(server, `${one('first')}; ${one('second')}; return 'both'`)
    })
    afterAll(async () => {
      await device.disconnect()
      await server.stop()
    })

    const keyed = () => ({ headers: { 'idempotency-key': crypto.randomUUID() } })
    const makeTask = async (): Promise<{ id: string; key: string }> =>
      server.ok('/tasks', { body: { title: 'Paint it', force: true }, ...keyed() })
    const statusOf = async (id: string) => (await server.ok(`/tasks/${id}`)).status as string
    /** By the owner, or by the run whose token it is. */
    const move = (id: string, status: string, { token, reason }: { token?: string; reason?: string } = {}) =>
      server.ok(`/tasks/${id}/transition`, {
        body: { status, reason },
        ...keyed(),
        ...(token !== undefined && { token }),
      })
    const end = async (run: FakeRun) => {
      await run.end('completed')
      await settled(server)
    }
    /** Starts both steps' workflow on a task, and returns its id with the first run. */
    const begin = async (taskId: string) => {
      const id = await startFlow(server, workflow, { taskId })
      return { id, first: await device.take() }
    }

    it.each(['done', 'cancelled'])('a step that says that the task is %s ends no other step', async (status) => {
      const task = await makeTask()
      const { id, first } = await begin(task.id)
      await move(task.id, status, { token: first.token })
      await end(first)
      await end(await device.take())
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: 'both' })
      expect(await statusOf(task.id)).toBe(status)
    })

    it('a step is told what it is, and not to finish the task', async () => {
      const task = await makeTask()
      const { first } = await begin(task.id)
      expect(first.spec.prompt).toMatch(/^first\n\nTask .*Paint it/)
      expect(first.spec.prompt).toContain(`one step of the workflow ${workflow}`)
      expect(first.spec.prompt).not.toContain('svc task transition')
      await end(first)
      await end(await device.take())
      expect(await statusOf(task.id)).toBe('in_progress')
    })

    it.each(['done', 'cancelled', 'archived', 'done and archived'])(
      'works on a task that was %s before it began, and leaves it so',
      async (state) => {
        const task = await makeTask()
        if (!state.startsWith('archived')) await move(task.id, state.split(' ')[0]!)
        const before = await server.ok(`/tasks/${task.id}`)
        if (state.endsWith('archived')) await server.ok(`/tasks/${task.id}/archive`, { body: {}, ...keyed() })
        server.world.advance(1_000)
        const { id, first } = await begin(task.id)
        await end(first)
        await end(await device.take())
        expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: 'both' })
        const after = await server.ok(`/tasks/${task.id}`)
        expect(after.completedAt).toBe(before.completedAt)
        if (!state.startsWith('archived')) expect(after.status).toBe(before.status)
        expect(after.archivedAt === null).toBe(!state.endsWith('archived'))
      },
    )

    it('goes on with a step that asked a person and whose task it finished', async () => {
      const task = await makeTask()
      const { id, first } = await begin(task.id)
      const body = { runId: first.runId, prompt: 'Which way?', answerMode: 'free_text' }
      await move(task.id, 'done', { token: first.token })
      const { question } = await server.ok('/questions', { token: first.token, body, ...keyed() })
      await device.next('run.cancel')
      await first.end('question_asked')
      await server.ok(`/questions/${question.id}/answer`, { body: { answer: { text: 'Left' } }, ...keyed() })
      await end(await device.take())
      await end(await device.take())
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: 'both' })
    })

    describe('stops when somebody else', () => {
      const stops = async (finish: (task: { id: string; key: string }, first: FakeRun) => Promise<unknown>) => {
        const task = await makeTask()
        const { id, first } = await begin(task.id)
        server.world.advance(1_000)
        await device.beat()
        await finish(task, first)
        await end(first)
        expect(await readFlow(server, id)).toMatchObject({
          status: 'failed',
          summary: `StepError: ${task.key} is finished or archived; reopen it to work on it.`,
        })
      }

      it('finishes the task: a person', () => stops(({ id }) => move(id, 'done')))

      it('archives it', () => stops(({ id }) => server.ok(`/tasks/${id}/archive`, { body: {}, ...keyed() })))

      it('finishes it: another run of the same agent', () =>
        stops(async ({ id }) => {
          await server.ok(`/agents/${agent}/runs`, { body: { prompt: 'Tidy up' }, ...keyed() })
          const other = await device.take()
          await move(id, 'cancelled', { token: other.token })
          await other.end('completed')
        }))

      it('finishes it again after a step did and it was reopened', () =>
        stops(async ({ id }, { token }) => {
          await move(id, 'done', { token })
          await move(id, 'open', { reason: 'Not yet.' })
          await move(id, 'done')
        }))

      it('finishes it: a step of another workflow', () =>
        stops(async ({ id }) => {
          const body = `await agent('Alone', { agent: '${agent}', task: null }); return 1`
          await startFlow(server, await makeWorkflow(server, body))
          const other = await device.take()
          await move(id, 'done', { token: other.token })
          await end(other)
        }))
    })
  })
