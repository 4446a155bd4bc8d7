import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandCall } from '../../../shared/permissions/command-call.ts'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { databasesFor } from '../../kit/forms.ts'
import { TestServer } from '../../kit/server.ts'
import { digestOf } from '../resources/approvals-kit.ts'
import { answerNext, makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

// Runs of steps, and what they and programs ask people, name the workflow, its run, the step and who wrote the program.

for (const database of databasesFor('sqlite'))
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let device: FakeDevice
    let agent: string
    let agentId: string
    beforeAll(async () => {
      server = await TestServer.start({ database })
      device = await FakeDevice.connect(server)
      const made = await server.createAgent({ name: 'Worker', harness: 'claude' })
      agent = made.handle as string
      agentId = made.id as string
    })
    afterAll(async () => {
      await device.disconnect()
      await server.stop()
    })
    const keyed = () => ({ headers: { 'idempotency-key': crypto.randomUUID() } })
    const { stringify } = JSON
    const inList = async (path: string, id: string) =>
      (await server.ok(path)).data.find((row: { id: string }) => row.id === id).workflowStep

    it('a run, alone, in lists and in the history of its task', async () => {
      const task = await server.ok('/tasks', { body: { title: 'Paint' }, ...keyed() })
      const long = stringify('x'.repeat(20_000))
      const workflow = await makeWorkflow(
        server,
        `phase('Look'); await agent('One', { agent: '${agent}', label: 'first' }); await agent(${long}, { agent: '${agent}', label: 'long' })`,
      )
      const id = await startFlow(server, workflow, { taskId: task.id })
      const first = await device.take()
      const writtenBy = { type: 'user', id: server.owner.userId }
      const named = { workflowRunId: id, workflow, step: 0, label: 'first', phase: 'Look', writtenBy }
      expect((await server.ok(`/runs/${first.runId}`)).workflowStep).toEqual(named)
      await first.end('completed')
      const second = await device.take()
      const long2 = { ...named, step: 1, label: 'long' }
      expect((await server.ok(`/runs/${second.runId}`)).workflowStep).toEqual(long2)
      // The page is bounded, whatever the prompts of its steps are.
      expect(await inList('/runs', second.runId)).toEqual({ ...long2, label: null, phase: null })
      expect(await inList('/runs', first.runId)).toEqual(named)
      await second.end('completed')
      const history = (await server.ok(`/tasks/${task.id}/history`)).data as { id: string; data: object }[]
      expect(history.find((entry) => entry.id === first.runId)?.data).toMatchObject({ workflowStep: named })
      const alone = await server.startRun(agentId)
      expect(await server.ok(`/runs/${alone}`)).not.toHaveProperty('workflowStep')
      await answerNext(device, 'Done')
    })

    it('an approval and a question of a step, and what the program asks', async () => {
      const workflow = await makeWorkflow(
        server,
        `await gate(['make'], { agent: '${agent}', label: 'test' }).catch(() => null)
         await agent('Ask', { agent: '${agent}', label: 'ask' })
         await ask('And now?')`,
        { meta: { toolPermissionMode: 'full' } },
      )
      const id = await startFlow(server, workflow)
      const gate = await device.take()
      const call = commandCall(gate.spec.gate!)
      const ask = {
        inputDigest: digestOf(call.name, call.input),
        safeSummary: 'Bash: make',
        toolArgs: call.input,
        prompt: 'May it run make?',
      }
      await gate.events({ kind: 'permission', data: { name: call.name, decision: 'ask', ask } })
      await gate.end('approval_requested')
      const approval = (await readFlow(server, id)).steps[0].pendingApproval.id as string
      const writtenBy = { type: 'user', id: server.owner.userId }
      const named = { workflowRunId: id, workflow, step: 0, label: 'test', phase: null, writtenBy }
      expect((await server.ok(`/approvals/${approval}`)).workflowStep).toEqual(named)
      expect(await inList('/approvals', approval)).toEqual(named)
      const rejected = await server.ok(`/approvals/${approval}/reject`, { body: {}, ...keyed() })
      expect(rejected.workflowStep).toEqual(named)

      const asking = await device.take()
      const body = { runId: asking.runId, prompt: 'Which?', answerMode: 'free_text' }
      const { question } = await server.ok('/questions', { token: asking.token, body, ...keyed() })
      expect(question.workflowStep).toEqual({ ...named, step: 1, label: 'ask' })
      await device.next('run.cancel')
      await asking.end('question_asked')
      const answered = await server.ok(`/questions/${question.id}/answer`, {
        body: { answer: { text: 'a' } },
        ...keyed(),
      })
      expect(answered.workflowStep).toEqual(question.workflowStep)
      // The run that goes on with the step does it, too.
      const next = await device.take()
      expect((await server.ok(`/runs/${next.runId}`)).workflowStep).toEqual(question.workflowStep)
      await next.end('completed')
      await settled(server)
      const { parkedQuestion } = await readFlow(server, id)
      const ofProgram = { ...named, step: null, label: null }
      expect((await server.ok(`/questions/${parkedQuestion.id}`)).workflowStep).toEqual(ofProgram)
      expect(await inList('/questions', parkedQuestion.id)).toEqual(ofProgram)
    })

    it('an agent as the author, unless it is private, and nobody for a built-in program', async () => {
      const author = await server.agentCaller({ name: 'Author', visibility: 'private' })
      // Its own run, by whose token it writes the program.
      await device.take()
      const workflow = await makeWorkflow(server, `await agent('One', { agent: '${agent}' })`, { token: author.token })
      const writtenBy = async (name: string, input = {}) => {
        await startFlow(server, name, { input })
        const run = await device.take()
        const { workflowStep } = await server.ok(`/runs/${run.runId}`)
        await run.end('error', { message: 'No.' })
        await settled(server)
        return workflowStep.writtenBy
      }
      expect(await writtenBy(workflow)).toBeNull()
      await server.ok(`/agents/${author.agent.id}`, { method: 'PATCH', body: { visibility: 'company' } })
      expect(await writtenBy(workflow)).toEqual({ type: 'agent', id: author.agent.id })
      expect(await writtenBy('implement_and_review', { work: 'Paint', implementer: agent })).toBeNull()
    })
  })
