import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finishRun } from '../../../control-plane/run/endings/end-run.ts'
import { raiseToolApproval } from '../../../control-plane/resources/approvals/steps/raise.ts'
import { findRun } from '../../../control-plane/resources/runs/store.ts'
import { hasPostgres } from '../../kit/database.ts'
import { specOf } from '../../kit/rows.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { made } from '../resources/tasks-kit.ts'

/** Agents that wait for several answers are woken by each of them, and never twice in one session at a time. */
describe.each(hasPostgres() ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const))('%s', (database) => {
  let server: TestServer
  beforeAll(async () => {
    server = await TestServer.start({ database })
  })
  afterAll(() => server.stop())

  const post = (path: string, body: unknown, token: string = server.owner.token) =>
    server.call(path, { body, token, headers: { 'Idempotency-Key': crypto.randomUUID() } })
  const resolve = async (id: string, verb: 'approve' | 'reject' = 'approve') => {
    expect(outcomeOf(await post(`/approvals/${id}/${verb}`, {}))).toBe('200')
    await settled()
  }
  const settled = async () => {
    await server.plane.waker.sweep()
    await server.plane.waker.idle()
  }
  const wokenRuns = async (agentId: string) =>
    (await server.ok(`/runs?agent=${agentId}&triggerSource=approval_resolved`)).data as { id: string }[]
  const allowCallsOf = async (runId: string) => {
    const { allowCalls } = await specOf(server, runId)
    return (allowCalls as { approvalId: string }[]).map((call) => call.approvalId)
  }
  const promptOf = async (runId: string) => (await server.ok(`/runs/${runId}/context`)).prompt as string

  /** Tool calls that a device asked about in a run which has ended so. */
  async function askedCalls(runId: RunId, commands: readonly string[]): Promise<string[]> {
    const { root } = server.database
    const run = (await findRun(root, runId))!
    const ids: string[] = []
    const ending = { type: 'cancelled', exitReason: 'approval_requested', errorMessage: null } as const
    await root.transaction(async (tx) => {
      for (const command of commands) {
        const inputDigest = createHash('sha256').update(command).digest('hex')
        const shown = { safeSummary: command, toolArgs: { command }, prompt: `Allow ${command}?` }
        const call = { toolCallId: null, name: 'Bash', inputDigest, ...shown }
        ids.push(await raiseToolApproval(tx, run, call, server.world))
      }
      await finishRun(tx, run, { ...ending, at: server.world.now(), world: server.world })
    })
    return ids
  }

  async function taskAtWork() {
    const agent = await server.createAgent()
    const assignee = { type: 'agent', id: agent.id }
    const task = await made(server, '/tasks', { title: `Task ${crypto.randomUUID()}`, assignee })
    const runs = async () => (await server.ok(`/runs?task=${task.id}`)).data as { id: string }[]
    await expect.poll(async () => (await runs()).length).toBe(1)
    return { agent, task, runId: (await runs())[0]!.id }
  }

  test('of two calls asked on a task the first answer waits for the second, and both are in the run', async () => {
    const { agent, runId } = await taskAtWork()
    const [one, two] = await askedCalls(idFrom(runId), ['make release', 'git push'])
    await resolve(one!)
    expect(await wokenRuns(agent.id)).toEqual([])
    await resolve(two!)
    const [woken, ...more] = await wokenRuns(agent.id)
    expect(more).toEqual([])
    expect(await allowCallsOf(woken!.id)).toEqual([one, two])
    for (const id of [one!, two!]) expect(await promptOf(woken!.id)).toContain(id)
  })

  test('a call that was approved is allowed although another one was rejected', async () => {
    const { agent, runId } = await taskAtWork()
    const [one, two] = await askedCalls(idFrom(runId), ['make release', 'git push'])
    await resolve(one!)
    await resolve(two!, 'reject')
    const [woken] = await wokenRuns(agent.id)
    expect(await allowCallsOf(woken!.id)).toEqual([one])
  })

  test('who was answered is woken once the task waits for nobody else', async () => {
    const { agent, task, runId } = await taskAtWork()
    const reply = await post('/questions', { prompt: 'Which one?' }, await server.runToken(idFrom(runId)))
    expect(outcomeOf(reply)).toBe('201')
    const other = await server.createAgent()
    const otherRun = await server.startRun(other.id)
    const raised = await post('/approvals', { prompt: 'May I?', taskId: task.id }, await server.runToken(otherRun))
    expect(outcomeOf(raised)).toBe('201')
    const answer = await post(`/questions/${reply.body.question.id}/answer`, { answer: { text: 'The red one' } })
    expect(outcomeOf(answer)).toBe('200')
    await settled()
    expect(await wokenRuns(agent.id)).toEqual([])
    await resolve(raised.body.approval.id)
    await settled()
    const [woken] = await wokenRuns(agent.id)
    expect(await promptOf(woken!.id)).toContain('The red one')
    expect(await wokenRuns(other.id)).toHaveLength(1)
  })

  test('without a task each answer wakes the agent, one after another', async () => {
    const agent = await server.createAgent()
    const [one, two] = await askedCalls(await server.startRun(agent.id), ['make release', 'git push'])
    await resolve(one!)
    const [first] = await wokenRuns(agent.id)
    expect(await allowCallsOf(first!.id)).toEqual([one])
    await resolve(two!)
    expect(await wokenRuns(agent.id)).toHaveLength(1)
    await server.ok(`/runs/${first!.id}/cancel`, { body: {} })
    await expect.poll(async () => (await wokenRuns(agent.id)).length).toBe(2)
    const next = (await wokenRuns(agent.id)).find((run) => run.id !== first!.id)
    expect(await allowCallsOf(next!.id)).toEqual([two])
  })

  test('answers given at the same moment are used one run at a time', async () => {
    const agent = await server.createAgent()
    const ids = await askedCalls(await server.startRun(agent.id), ['a', 'b', 'c', 'd'])
    await Promise.all(ids.map(async (id) => post(`/approvals/${id}/approve`, {})))
    const allowed: string[] = []
    for (let n = 0; allowed.length < ids.length; n++) {
      await expect.poll(async () => (await wokenRuns(agent.id)).length).toBeGreaterThan(n)
      const live = (await server.ok(`/runs?agent=${agent.id}&status=queued`)).data as { id: string }[]
      expect(live).toHaveLength(1)
      allowed.push(...(await allowCallsOf(live[0]!.id)))
      await server.ok(`/runs/${live[0]!.id}/cancel`, { body: {} })
    }
    expect(allowed.toSorted()).toEqual(ids.toSorted())
  })
})
