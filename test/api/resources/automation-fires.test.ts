import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findDetails } from '../../../control-plane/resources/runs/details-store.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { made } from './tasks-kit.ts'
import {
  createAutomation,
  runsOf,
  skipped,
  skipsOf,
  startWithAgent,
  triggered,
  type WakingAgent,
} from './automations-kit.ts'

// Tests what fires automations, and what becomes of each fire.

const [minute, hour] = [60_000, 3_600_000]
let server: TestServer, agent: WakingAgent
beforeAll(async () => {
  ;({ server, agent } = await startWithAgent())
})
afterAll(() => server.stop())

const create = (changes: Record<string, unknown> = {}) => createAutomation(server, agent.id, changes)
const runByHand = (id: string, token?: string) =>
  server.call(`/automations/${id}/run`, { body: {}, ...(token === undefined ? {} : { token }) })

describe('POST /automations/:id/run', () => {
  it('is named by the messages that its run writes, and by no others', async () => {
    const { id } = await create()
    const fired = await server.runToken((await runByHand(id)).body.runId)
    const other = await server.runToken(await server.startRun(agent.id))
    const task = await made(server, '/tasks', { title: `Task ${crypto.randomUUID()}` })
    const path = `/tasks/${task.id}/comments`
    for (const [body, token] of [['By the automation.', fired], ['By hand.', other], ['A person.']] as const)
      await made(server, path, { body }, token)
    const { data } = await server.ok(`/conversations?taskId=${task.id}`)
    const messages = (await server.ok(`/conversations/${data[0].id}/messages`)).data
    const of = new Map(
      messages.map((each: { body: string; automationId: string | null }) => [each.body, each.automationId]),
    )
    expect(Object.fromEntries(of)).toEqual({ 'By the automation.': id, 'By hand.': null, 'A person.': null })
  })

  it('starts a manual run with the prompt, and shows it as the last one', async () => {
    const { id } = await create({ modelId: 'claude-haiku-4-5', environment: 'device' })
    const reply = await runByHand(id)
    expect([reply.status, reply.body]).toEqual([200, triggered(expect.stringMatching(/^run_/))])
    const run = await server.ok(`/runs/${reply.body.runId}`)
    expect(run).toMatchObject({
      triggerSource: 'manual',
      agent: { id: agent.id },
      effectiveSettings: null,
      environment: { type: 'device' },
    })
    const details = await findDetails(server.database.root, run.id)
    expect([details?.prompt, details?.spec.model]).toEqual(['Look.', 'claude-haiku-4-5'])
    const row = await server.database.root('runs').where({ id: run.id }).first('requested_by')
    expect(row).toEqual({ requested_by: server.owner.userId })
    expect((await server.ok(`/automations/${id}`)).lastRun).toEqual({
      id: run.id,
      status: 'queued',
      workflowRunId: null,
      startedAt: expect.any(String),
    })
    expect(await runsOf(server, id)).toMatchObject([{ id: run.id, object: 'run' }])
  })

  it('skips while an earlier run is queued or running, if the policy says so', async () => {
    const { id } = await create({ concurrencyPolicy: 'skip_if_running' })
    const first = (await runByHand(id)).body.runId
    expect((await runByHand(id)).body).toEqual(skipped('concurrency'))
    await server.ok(`/runs/${first}/cancel`, { body: {} })
    expect((await runByHand(id)).body.kind).toBe('triggered')
    expect(await skipsOf(server, id)).toEqual(['concurrency'])
    const { id: free } = await create({ concurrencyPolicy: 'allow_concurrent' })
    for (let i = 0; i < 3; i++) expect((await runByHand(free)).body.kind).toBe('triggered')
  })

  it('skips a paused and an archived one, and records why', async () => {
    const { id } = await create()
    for (const status of ['paused', 'archived']) {
      await server.ok(`/automations/${id}`, { body: { status } })
      expect((await runByHand(id)).body).toEqual(skipped('not_active'))
    }
    expect(await skipsOf(server, id)).toEqual(['archived', 'paused'])
    expect(await runsOf(server, id)).toEqual([])
    expect((await server.ok(`/automations/${id}`)).lastRun).toBeNull()
  })

  it('tells that no run was admitted, and why', async () => {
    const sleeper = await server.createAgent()
    await server.ok(`/agents/${sleeper.id}`, { method: 'PATCH', body: { status: 'terminated' } })
    const { id } = await create({ agentId: sleeper.id })
    expect((await runByHand(id)).body).toEqual(triggered(null))
    const { data } = await server.ok(`/automations/${id}/skips`)
    expect(data).toMatchObject([{ object: 'automation_skip', automationId: id, reason: 'not_admitted' }])
    expect(data[0].message).toContain('terminated')
  })

  it('is for agents too', async () => {
    const token = await server.runToken(await server.startRun(agent.id))
    const { id } = await create()
    const { runId } = (await runByHand(id, token)).body
    const row = await server.database.root('runs').where({ id: runId }).first('requested_by', 'trigger_source')
    expect(row).toEqual({ requested_by: agent.id, trigger_source: 'manual' })
  })
})

describe('GET /automations/runs', () => {
  it('lists runs of all automations, newest first, page by page, by status', async () => {
    const own = await TestServer.start()
    try {
      const waker = await own.createAgent()
      const made: string[] = []
      for (let i = 0; i < 3; i++) {
        const body = { name: `a${i}`, trigger: { type: 'webhook' }, agentId: waker.id, prompt: 'p' }
        const { id } = await own.ok('/automations', { body })
        own.world.advance(1_000)
        made.unshift((await own.ok(`/automations/${id}/run`, { body: {} })).runId)
      }
      // A run that no automation started.
      await own.startRun(waker.id)
      const ids = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id)
      expect(ids(await own.ok('/automations/runs'))).toEqual(made)
      const first = await own.ok('/automations/runs?limit=2')
      const second = await own.ok(`/automations/runs?limit=2&cursor=${first.nextCursor}`)
      expect([...ids(first), ...ids(second)]).toEqual(made)
      await own.ok(`/runs/${made[1]}/cancel`, { body: {} })
      expect(ids(await own.ok('/automations/runs?status=cancelled'))).toEqual([made[1]])
      expect(outcomeOf(await own.call('/automations/runs?status=lost'))).toBe('400 validation_error')
    } finally {
      await own.stop()
    }
  })
})

describe('a schedule', () => {
  it('fires when its instant has come, once, as cron', async () => {
    const own = await atMorning({ cron: '0 * * * *' })
    try {
      await own.server.plane.sweeper.runAll()
      expect(await own.runs()).toEqual([])
      own.server.world.advance(2 * minute)
      for (let i = 0; i < 3; i++) await own.server.plane.sweeper.runAll()
      expect(await own.runs()).toMatchObject([{ triggerSource: 'cron' }])
      own.server.world.advance(hour)
      await own.server.plane.sweeper.runAll()
      // The first run still waits, so the second fire is skipped.
      expect(await own.runs()).toHaveLength(1)
      expect(await own.skips()).toEqual(['concurrency'])
      await own.server.ok(`/automations/${own.id}`, { body: { concurrencyPolicy: 'allow_concurrent' } })
      own.server.world.advance(hour)
      await own.server.plane.sweeper.runAll()
      expect(await own.runs()).toHaveLength(2)
    } finally {
      await own.server.stop()
    }
  })

  it('wakes no agent all of whose open tasks wait for a person, and one that has other work or none', async () => {
    const own = await atMorning({ cron: '0 * * * *' }, { concurrencyPolicy: 'allow_concurrent' })
    const { server: at } = own
    const key = () => ({ 'idempotency-key': crypto.randomUUID() })
    const fires = async () => {
      at.world.advance(hour)
      await at.plane.sweeper.runAll()
      return (await own.runs()).length
    }
    try {
      const { agentId } = await at.ok(`/automations/${own.id}`)
      const newTask = (title: string) =>
        at.ok('/tasks', { body: { title, assignee: agentId, force: true }, headers: key() })
      expect(await fires()).toBe(1)
      const held = await newTask('Deploy it')
      const token = await at.runToken(await at.startRun(agentId, { taskId: held.id }))
      const asked = await at.ok('/questions', {
        body: { prompt: 'Now?', answerMode: 'free_text', taskId: held.id },
        token,
        headers: key(),
      })
      expect(await fires()).toBe(1)
      const { data } = await at.ok(`/automations/${own.id}/skips`)
      expect(data).toMatchObject([{ reason: 'not_admitted', message: expect.stringContaining('wait for a person') }])
      const other = await newTask('Write it')
      expect(await fires()).toBe(2)
      await at.ok(`/tasks/${other.id}/transition`, { body: { status: 'done' }, headers: key() })
      expect(await fires()).toBe(2)
      const question = asked.question?.id ?? asked.id
      await at.ok(`/questions/${question}/answer`, { body: { answer: { text: 'Yes' } }, headers: key() })
      expect(await fires()).toBe(3)
    } finally {
      await own.server.stop()
    }
  })

  it('is recorded as skipped while it is paused or archived', async () => {
    const own = await atMorning({ cron: '0 * * * *' })
    try {
      for (const status of ['paused', 'archived']) {
        await own.server.ok(`/automations/${own.id}`, { body: { status } })
        own.server.world.advance(hour)
        await own.server.plane.sweeper.runAll()
      }
      expect(await own.skips()).toEqual(['archived', 'paused'])
      expect(await own.runs()).toEqual([])
    } finally {
      await own.server.stop()
    }
  })

  it('missed while the server was down fires once when it is less than an hour old', async () => {
    const own = await atMorning({ cron: '*/10 8 * * *' })
    try {
      // Due at 8:00, 8:10, ... 8:50; the clock says 8:49.
      own.server.world.advance(50 * minute)
      const restarted = await TestServer.start({ beside: own.server })
      await restarted.plane.sweeper.runAll()
      await restarted.plane.sweeper.runAll()
      expect(await own.runs()).toHaveLength(1)
      await restarted.stop()
    } finally {
      await own.server.stop()
    }
  })

  it('missed for an hour or longer is given up', async () => {
    const own = await atMorning()
    try {
      own.server.world.advance(minute + hour)
      await own.server.plane.sweeper.runAll()
      expect([await own.runs(), await own.skips()]).toEqual([[], []])
      own.server.world.advance(23 * hour)
      await own.server.plane.sweeper.runAll()
      expect(await own.runs()).toHaveLength(1)
    } finally {
      await own.server.stop()
    }
  })

  it('fires no instant twice, though it was changed and the clock was set back', async () => {
    const own = await atMorning({ cron: '0 8 * * *' }, { concurrencyPolicy: 'allow_concurrent' })
    try {
      own.server.world.advance(2 * minute)
      await own.server.plane.sweeper.runAll()
      expect(await own.runs()).toHaveLength(1)
      own.server.world.advance(-2 * minute)
      await own.server.ok(`/automations/${own.id}`, { body: { trigger: { cron: '0 8 * * 0-6' } } })
      own.server.world.advance(2 * minute)
      await own.server.plane.sweeper.runAll()
      expect(await own.runs()).toHaveLength(1)
    } finally {
      await own.server.stop()
    }
  })
})

/** A server at 7:59 in New York, with an automation for 8:00 there. */
async function atMorning(trigger: Record<string, unknown> = {}, changes: Record<string, unknown> = {}) {
  const own = await TestServer.start()
  const startedAt = Date.parse('2026-06-10T11:59:00Z')
  own.world.advance(startedAt - own.world.now())
  const waker = await own.createAgent()
  const { id } = await own.ok('/automations', {
    body: {
      name: 'Morning',
      trigger: { cron: '0 8 * * *', timezone: 'America/New_York', ...trigger },
      agentId: waker.id,
      prompt: 'Begin.',
      ...changes,
    },
  })
  return { server: own, id: id as string, runs: () => runsOf(own, id), skips: () => skipsOf(own, id) }
}
