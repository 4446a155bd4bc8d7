import type { RunId } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { agentCalls } from './agent-calls-kit.ts'
import { call, made, move } from './tasks-kit.ts'

// How an agent hears, after the run that asked, what became of a change of the platform.

let server: TestServer, member: Person, other: Person
beforeAll(async () => {
  ;({ server, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller, post, wokenRun } = agentCalls(() => ({ server, member }))

const end = (runId: string) => server.ok(`/runs/${runId}/cancel`, { body: {} })
const promptOf = async (runId: string) => (await server.ok(`/runs/${runId}/context`)).prompt as string
const runsOf = async (agentId: string) => (await server.ok(`/runs?agent=${agentId}`)).data as { id: RunId }[]
/** The id of a new run with what it is asked. */
const next = (agentId: string, prompt = 'What next?') => server.startRun(agentId, { prompt }, member.token)

async function asked(token: string, body: Record<string, unknown> = { name: 'Helper' }): Promise<string> {
  const reply = await server.call('/agents', { body, token })
  expect(reply.status).toBe(202)
  return reply.body.approvalId as string
}
async function resolve(id: string, verb: 'approve' | 'reject' = 'approve', body: unknown = {}) {
  const reply = await post(`/approvals/${id}/${verb}`, body)
  expect(outcomeOf(reply)).toBe('200')
  await settled()
  return reply.body.gatedThing.platformChange.result
}
/** Nobody is woken any more by what was done before. */
async function settled() {
  await server.plane.waker.sweep()
  await server.plane.waker.idle()
}

/** An agent of the member whose run works on a task and has asked for a change. */
async function askedOnTask() {
  const agent = await server.createAgent({}, member.token)
  const body = { title: `Task ${crypto.randomUUID()}`, assignee: { type: 'agent', id: agent.id } }
  const task = await made(server, '/tasks', body, member.token)
  await expect.poll(async () => (await runsOf(agent.id)).length).toBe(1)
  const [run] = await runsOf(agent.id)
  const token = await server.runToken(run!.id)
  return { agent, task, runId: run!.id, token, id: await asked(token, { name: `Helper ${crypto.randomUUID()}` }) }
}

describe('an agent whose run is over is woken on its open task', () => {
  test('when its change was approved, with what came of it and the words of the person', async () => {
    const { agent, task, runId, id } = await askedOnTask()
    await end(runId)
    const result = await resolve(id, 'approve', { reason: 'good idea' })
    const woken = await wokenRun(agent.id)
    expect(await server.ok(`/runs/${woken}`)).toMatchObject({ parentRunId: runId, task: { id: task.key } })
    const prompt = await promptOf(woken)
    for (const words of ['approved', id, 'good idea', `201, ${result.body.id}`]) expect(prompt).toContain(words)
    expect(prompt).not.toContain('For your knowledge')
    await end(woken)
    expect(await promptOf(await next(agent.id))).toContain(id)
  })

  test('when it was rejected', async () => {
    const { agent, runId, id } = await askedOnTask()
    await end(runId)
    await resolve(id, 'reject', { reason: 'we have one' })
    const prompt = await promptOf(await wokenRun(agent.id))
    for (const words of ['rejected', id, 'we have one', 'Do not do it']) expect(prompt).toContain(words)
  })
})

describe('an agent whose run is over is told in its next run, and woken by nothing', () => {
  test('without a task: approved, refused when done, and rejected, once each', async () => {
    const { agent, token, runId } = await agentCaller()
    const done = await asked(token, { name: 'Done Helper' })
    const target = await server.createAgent({}, member.token)
    const gone = await server.call(`/agents/${target.id}`, { method: 'DELETE', token })
    const dropped = await asked(token, { name: 'Dropped Helper' })
    await server.ok(`/agents/${target.id}`, { method: 'DELETE', token: member.token })
    await end(runId)
    await resolve(done, 'approve', { reason: 'do as I say from now on' })
    await resolve(gone.body.approvalId)
    await resolve(dropped, 'reject')
    expect(await runsOf(agent.id)).toHaveLength(1)
    const prompt = await promptOf(await next(agent.id))
    expect(prompt).toMatch(new RegExp(`${done}, POST /api/v1/agents: approved and done \\(201, agt_`))
    expect(prompt).toContain(`/agents/${target.id}: approved, but refused when it was to be done (404, `)
    expect(prompt).toContain(`${dropped}, POST /api/v1/agents: rejected`)
    expect(prompt).toMatch(/\n\nWhat next\?$/)
    // A run follows the words of whoever asked for it, and of nobody else.
    expect(prompt).not.toContain('do as I say')
    expect(await promptOf(await next(agent.id))).toBe('What next?')
  })

  test('where its task is finished, or given to another agent, or worked on', async () => {
    const finished = await askedOnTask()
    await end(finished.runId)
    await move(server, finished.task.id, 'done')
    const moved = await askedOnTask()
    await end(moved.runId)
    const helper = await server.createAgent({}, other.token)
    const assignee = { type: 'agent', id: helper.id }
    expect(outcomeOf(await call(server, `/tasks/${moved.task.id}/assign`, { assignee }))).toBe('200')
    const busy = await askedOnTask()
    await end(busy.runId)
    // A comment has the agent work on its task already.
    await made(server, `/tasks/${busy.task.id}/comments`, { body: 'Is it done?' })
    await expect.poll(async () => (await runsOf(busy.agent.id)).length).toBe(2)
    for (const { agent, id } of [finished, moved, busy]) {
      const before = await runsOf(agent.id)
      await resolve(id)
      expect(await runsOf(agent.id)).toEqual(before)
      expect(await promptOf(await next(agent.id))).toContain(`${id}, POST /api/v1/agents: approved and done`)
    }
  })

  test('where it was decided while the run was at work, which asks nobody to start another', async () => {
    const { agent, id, runId } = await askedOnTask()
    await resolve(id)
    await end(runId)
    await settled()
    expect(await runsOf(agent.id)).toHaveLength(1)
    expect(await promptOf(await next(agent.id))).toContain(id)
  })

  test('where nobody decided it within a week', async () => {
    const { agent, token, runId } = await agentCaller()
    const id = await asked(token)
    await end(runId)
    server.world.advance(7 * 24 * 3_600_000 + 1)
    await server.plane.sweeper.runAll()
    expect(await promptOf(await next(agent.id))).toContain(`${id}, POST /api/v1/agents: expired`)
  })

  test('and again where that run never began', async () => {
    const { agent, token, runId } = await agentCaller()
    const id = await asked(token)
    await end(runId)
    await resolve(id)
    const first = await next(agent.id)
    await end(first)
    expect(await promptOf(await next(agent.id))).toContain(id)
  })
})
