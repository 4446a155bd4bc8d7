import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'

let server: TestServer
let admin: Person
let member: Person
let other: Person
const devices: FakeDevice[] = []
beforeAll(async () => {
  server = await TestServer.start()
  admin = await server.addPerson('admin')
  member = await server.addPerson('member')
  other = await server.addPerson('member')
})
afterEach(async () => {
  for (const device of devices.splice(0)) await device.disconnect()
})
afterAll(() => server.stop())

/** A person with a connected device that takes the runs of its agents. */
async function personWithDevice(): Promise<{ person: Person; device: FakeDevice }> {
  const person = await server.addPerson('member')
  const device = await FakeDevice.connect(server, { token: person.token })
  devices.push(device)
  return { person, device }
}

const read = (runId: string, query = '') => server.ok(`/runs/${runId}${query}`)
const act = (runId: string, verb: 'cancel' | 'retry', options: { token?: string; body?: unknown } = {}) =>
  server.call(`/runs/${runId}/${verb}`, { body: {}, ...options })

describe('read', () => {
  test('a run tells what it is from its start to its end', async () => {
    const { person, device } = await personWithDevice()
    const agent = await server.createAgent(
      { harness: 'claude', model: 'claude-x', reasoningEffort: 'high' },
      person.token,
    )
    const runId = await server.startRun(agent.id, { prompt: 'Do it' })
    const run = await device.take()
    await run.events({ kind: 'session', data: { sessionId: 's-1' } }, { kind: 'usage', data: { costUsd: '0.25' } })
    const live = await read(runId)
    expect(live).toMatchObject({
      object: 'run',
      id: runId,
      status: 'running',
      agent: { id: agent.id, handle: agent.handle, name: agent.name },
      task: null,
      gateReason: null,
      waitingOn: null,
      harness: { id: 'claude' },
      environment: {
        id: 'device',
        type: 'device',
        cwd: 'home',
        deviceName: 'laptop',
        deviceId: device.identity.deviceId,
        deviceLiveness: 'connected',
      },
      costUsd: '0.25',
      completedAt: null,
      exitReason: null,
      terminalAt: null,
      effectiveSettings: {
        modelId: 'claude-x',
        accessMode: 'subscription',
        providerKeyId: null,
        reasoningEffort: 'high',
        mode: 'full',
      },
    })
    expect(Date.parse(live.startedAt)).toBeGreaterThanOrEqual(Date.parse(live.createdAt))
    await run.end('completed', { toolCallCount: 4 })
    const ended = await read(runId)
    expect(ended).toMatchObject({ status: 'succeeded', exitReason: 'completed', errorCode: null, toolCallCount: 4 })
    expect(ended.completedAt).toBe(ended.terminalAt)
    expect((await server.ok(`/agents/${agent.id}`)).lastRunAt).toBe(ended.completedAt)
  })

  test('a failed run carries its code and the device’s words; a lost device shows in the liveness', async () => {
    const { person, device } = await personWithDevice()
    const agent = await server.createAgent({}, person.token)
    const runId = await server.startRun(agent.id)
    const run = await device.take()
    await run.end('crashed', { message: 'The run host died.' })
    expect(await read(runId)).toMatchObject({
      status: 'failed',
      exitReason: 'crashed',
      errorCode: 'crashed',
      errorMessage: 'The run host died.',
    })
    server.world.advance(91_000)
    expect((await read(runId)).environment.deviceLiveness).toBe('disconnected')
    server.world.advance(7 * 86_400_000)
    expect((await read(runId)).environment.deviceLiveness).toBe('retired')
    server.world.advance(-7 * 86_400_000 - 91_000)
  })

  test('`current` is the calling run; ids that are none are told apart from unknown ones', async () => {
    const agent = await server.createAgent()
    const runId = await server.startRun(agent.id)
    const token = await server.runToken(runId)
    expect((await server.ok('/runs/current', { token })).id).toBe(runId)
    expect(outcomeOf(await server.call('/runs/current'))).toBe('404 resource_not_found')
    expect(outcomeOf(await server.call('/runs/run_0000000000000000'))).toBe('404 resource_not_found')
    expect(outcomeOf(await server.call('/runs/nonsense'))).toBe('400 invalid_id_format')
  })

  test('runs of a private agent are its owner’s, the admins’ and its own', async () => {
    const agent = await server.createAgent({ visibility: 'private' }, member.token)
    const runId = (await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: member.token })).runPublicId as string
    const own = await server.runToken(idFrom(runId))
    const stranger = await server.runToken(await server.startRun((await server.createAgent()).id))
    for (const token of [member.token, admin.token, own]) {
      expect((await server.ok(`/runs/${runId}`, { token })).id).toBe(runId)
      expect((await server.ok(`/runs?agent=${agent.id}`, { token })).data).toHaveLength(1)
      expect((await server.ok(`/runs?ids=${runId}`, { token })).data[0]?.id).toBe(runId)
    }
    for (const token of [other.token, stranger]) {
      expect(outcomeOf(await server.call(`/runs/${runId}`, { token }))).toBe('404 resource_not_found')
      expect((await server.ok(`/runs?agent=${agent.id}`, { token })).data).toEqual([])
      expect((await server.ok(`/runs?ids=${runId}`, { token })).data).toEqual([null])
      const listed = await server.ok('/runs?limit=100', { token })
      expect(listed.data.map((run: { id: string }) => run.id)).not.toContain(runId)
      for (const path of ['events', 'context', 'manifest', 'change-set'])
        expect(outcomeOf(await server.call(`/runs/${runId}/${path}`, { token }))).toBe('404 resource_not_found')
    }
    const foreign = await server.addPerson('owner', 'elsewhere')
    expect(outcomeOf(await server.call(`/runs/${runId}`, { token: foreign.token }))).toBe('404 resource_not_found')
  })

  test('expands the latest events and the final answer', async () => {
    const { person, device } = await personWithDevice()
    const agent = await server.createAgent({}, person.token)
    const runId = await server.startRun(agent.id)
    expect((await read(runId, '?expand[]=transcriptRead')).transcriptRead).toEqual({
      finalAnswer: null,
      isError: false,
      eventCount: 0,
    })
    const run = await device.take()
    await run.events(
      ...Array.from({ length: 25 }, (_, n) => ({ kind: 'text' as const, data: { text: `line ${n + 1}` } })),
    )
    await run.events({ kind: 'text', data: { text: 'from below', parentToolCallId: 't1' } })
    const detail = await read(runId, '?expand[]=latestEvents&expand[]=transcriptRead')
    expect(detail.latestEvents.map((event: { seq: number }) => event.seq)).toEqual(
      Array.from({ length: 20 }, (_, n) => n + 7),
    )
    expect(detail.transcriptRead).toEqual({ finalAnswer: 'line 25', isError: false, eventCount: 26 })
    await run.events({ kind: 'result', data: { text: 'All done.', isError: false } })
    await run.end()
    expect((await read(runId, '?expand=transcriptRead')).transcriptRead).toMatchObject({ finalAnswer: 'All done.' })
    expect(await read(runId)).not.toHaveProperty('latestEvents')
    const refused = await server.call(`/runs/${runId}?expand[]=everything`)
    expect(outcomeOf(refused)).toBe('400 expand_unknown')
    expect(refused.body.error.allowedValues).toEqual(['latestEvents', 'transcriptRead'])
  })
})

describe('list', () => {
  test('pages newest first and filters by agent, status, trigger and time', async () => {
    const agent = await server.createAgent()
    const ids: string[] = []
    const times: number[] = []
    for (let n = 0; n < 5; n++) {
      server.world.advance(1_000)
      times.push(server.world.now())
      ids.unshift(await server.startRun(agent.id, n === 0 ? { source: 'mention', prompt: 'x' } : {}))
    }
    const listed = async (query: string) =>
      (await server.ok(`/runs?agent=${agent.id}&${query}`)).data.map((run: { id: string }) => run.id) as string[]
    const first = await server.ok(`/runs?agent=${agent.handle}&limit=2`)
    const second = await server.ok(`/runs?agent=${agent.id}&limit=2&after=${first.nextCursor}`)
    const third = await server.ok(`/runs?agent=${agent.id}&limit=2&cursor=${second.cursor}`)
    expect([first, second, third].flatMap((page) => page.data.map((run: { id: string }) => run.id))).toEqual(ids)
    expect(third.nextCursor).toBeNull()
    await act(ids[1]!, 'cancel')
    expect(await listed('status=cancelled')).toEqual([ids[1]])
    expect(await listed('status[]=queued&status[]=cancelled')).toHaveLength(5)
    expect(await listed('triggerSource=mention')).toEqual([ids[4]])
    expect(await listed('triggerSource=mention,manual')).toHaveLength(5)
    const since = encodeURIComponent(new Date(times[3]!).toISOString())
    expect(await listed(`since=${since}`)).toEqual(ids.slice(0, 2))
    expect(await listed(`until=${since}`)).toEqual(ids.slice(2))
    expect(await listed('until=2020-01-01')).toEqual([])
    expect(await listed('task=MAI-1')).toEqual([])
    expect(await listed('task=current')).toEqual([])
    expect((await server.ok('/runs?agent=@nobody')).data).toEqual([])
  })

  test('refuses what a list does not take', async () => {
    const refused = async (query: string) => outcomeOf(await server.call(`/runs?${query}`))
    expect(await refused('expand[]=latestEvents')).toBe('400 expand.not_allowed_on_list')
    expect(await refused('expand=x')).toBe('400 expand.not_allowed_on_list')
    expect(await refused('status=sleeping')).toBe('400 validation_error')
    expect(await refused('since=yesterday')).toBe('400 validation_error')
    expect(await refused('after=x')).toBe('400 invalid_cursor')
    // PostgreSQL would fail on the first three; the last is of another list.
    const ids = ['run_0000000000000000', 'run_000000000000000\0', 'run_', 'agt_0000000000000000']
    for (const key of [[1.5, ids[0]], [1e300, ids[0]], ...ids.slice(1).map((id) => [1, id])]) {
      const cursor = Buffer.from(JSON.stringify(key)).toString('base64url')
      expect(await refused(`after=${cursor}`)).toBe('400 invalid_cursor')
    }
    expect(await refused('ids=run_0000000000000000&status=queued')).toBe('400 ids_exclusive')
    expect(await refused(`ids=${Array.from({ length: 101 }, () => 'a').join(',')}`)).toBe('400 too_many_ids')
  })

  test('reads several, one slot each, null for what is not there', async () => {
    const agent = await server.createAgent()
    const [a, b] = [await server.startRun(agent.id), await server.startRun(agent.id)]
    const token = await server.runToken(b)
    const reply = await server.ok(`/runs?ids=${b},run_0000000000000000,${a},current,junk`, { token })
    expect(reply.data.map((slot: { id: string } | null) => slot?.id ?? null)).toEqual([b, null, a, b, null])
  })
})

describe('cancel', () => {
  test('ends a run that waits at once, and only once', async () => {
    const runId = await server.startRun((await server.createAgent()).id)
    const reply = await act(runId, 'cancel', { body: { reason: 'wrong branch' } })
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({
      id: runId,
      status: 'cancelled',
      exitReason: 'interrupted',
      errorMessage: 'wrong branch',
      errorCode: null,
    })
    expect(outcomeOf(await act(runId, 'cancel'))).toBe('409 run.not_cancellable')
    expect(outcomeOf(await act('run_0000000000000000', 'cancel'))).toBe('404 resource_not_found')
    expect(outcomeOf(await act('junk', 'cancel'))).toBe('400 invalid_id_format')
    expect(outcomeOf(await act(runId, 'cancel', { body: { reason: 5 } }))).toBe('400 validation_error')
  })

  test('asks the device of a run that works, and the device ends it', async () => {
    const { person, device } = await personWithDevice()
    const runId = await server.startRun((await server.createAgent({}, person.token)).id)
    const run = await device.take()
    const reply = await act(runId, 'cancel', { body: { reason: 'enough' } })
    expect(reply.body.status).toBe('running')
    expect(await device.next('run.cancel')).toMatchObject({ runId, exitReason: 'interrupted', reason: 'enough' })
    // A second cancel changes nothing.
    expect((await act(runId, 'cancel')).status).toBe(200)
    await run.end('interrupted')
    expect(await read(runId)).toMatchObject({ status: 'cancelled', exitReason: 'interrupted' })
    expect(outcomeOf(await act(runId, 'cancel'))).toBe('409 run.not_cancellable')
  })

  test('is for admins, the owner of the agent or of one above it, and the agent itself', async () => {
    const chief = await server.createAgent({}, other.token)
    const agent = await server.createAgent({ visibility: 'private', reportingTo: chief.id }, member.token)
    const begin = async () =>
      (await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: member.token })).runPublicId as string
    const own = await server.runToken(idFrom(await begin()))
    for (const token of [server.owner.token, admin.token, member.token, other.token, own])
      expect((await act(await begin(), 'cancel', { token })).status).toBe(200)
    const third = await server.addPerson('member')
    const chiefs = await server.runToken((await server.ok(`/agents/${chief.id}/runs`, { body: {} })).runPublicId)
    const runId = await begin()
    for (const token of [third.token, chiefs])
      expect(outcomeOf(await act(runId, 'cancel', { token }))).toBe('404 resource_not_found')
    await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { visibility: 'company' } })
    for (const token of [third.token, chiefs])
      for (const verb of ['cancel', 'retry'] as const)
        expect(outcomeOf(await act(runId, verb, { token }))).toBe('403 run.cancel_forbidden')
  })
})

describe('retry', () => {
  test('makes a new run that continues the old one, with its prompt and the reason', async () => {
    const agent = await server.createAgent()
    const runId = await server.startRun(agent.id, { prompt: 'Build' })
    expect(outcomeOf(await act(runId, 'retry'))).toBe('409 run.not_retriable')
    await act(runId, 'cancel')
    const reply = await act(runId, 'retry', { body: { reason: 'the disk was full' } })
    expect(reply.status).toBe(200)
    const { runId: next } = reply.body
    expect(await read(next)).toMatchObject({ status: 'queued', parentRunId: runId, triggerSource: 'manual' })
    expect((await read(runId)).successorRunId).toBe(next)
    const { prompt } = await server.ok(`/runs/${next}/context`)
    expect(prompt).toMatch(/^Build\n\nThis run retries run_\w+\.\n\nRequest: .+\n> the disk was full$/)
    await act(next, 'cancel')
    const plain = await act(runId, 'retry')
    expect((await server.ok(`/runs/${plain.body.runId}/context`)).prompt).toBe('Build')
  })

  test('of a task makes a run each time; the second waits for the task', async () => {
    const { id: agentId } = await server.createAgent()
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const task = await server.ok('/tasks', {
      headers,
      body: { title: 'Build', assignee: { type: 'agent', id: agentId } },
    })
    const runs = async () => (await server.ok(`/runs?task=${task.id}`)).data
    await expect.poll(async () => (await runs()).length, { interval: 5 }).toBe(1)
    const [first] = await runs()
    await act(first.id, 'cancel')
    const one = (await act(first.id, 'retry')).body.runId
    const two = (await act(first.id, 'retry', { body: { reason: 'again' } })).body.runId
    expect(one).not.toBe(two)
    expect(await read(one)).toMatchObject({ status: 'queued', task: { id: task.key } })
    expect(await read(two)).toMatchObject({ status: 'queued', gateReason: 'task_locked', task: { id: task.key } })
  })

  test('refuses a run that succeeded', async () => {
    const { person, device } = await personWithDevice()
    const runId = await server.startRun((await server.createAgent({}, person.token)).id)
    await (await device.take()).end()
    const reply = await act(runId, 'retry')
    expect(outcomeOf(reply)).toBe('409 run.not_retriable')
    expect(reply.body.error.message).toContain('succeeded')
  })

  test('says why the wake was not dispatched', async () => {
    const agent = await server.createAgent()
    const runId = await server.startRun(agent.id)
    await act(runId, 'cancel')
    await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { status: 'running' } })
    const reply = await act(runId, 'retry')
    expect(outcomeOf(reply)).toBe('503 run.not_retriable')
    expect(reply.body.error.message).toContain('only an active agent takes wakes')
    await server.database.root('runs').where({ id: runId }).update({ agent_id: 'agt_0000000000000000' })
    expect(outcomeOf(await act(runId, 'retry'))).toBe('503 run.not_retriable')
    expect((await read(runId)).agent).toBeNull()
  })

  test('goes on with the session on the device that holds it', async () => {
    const { person, device } = await personWithDevice()
    const agent = await server.createAgent({ harness: 'claude' }, person.token)
    const runId = await server.startRun(agent.id)
    const run = await device.take()
    await run.events({ kind: 'session', data: { sessionId: 'abc' } })
    await run.end('interrupted', { sessionId: 'abc' })
    const { runId: next } = (await act(runId, 'retry', { token: person.token })).body
    const resumed = await device.take()
    expect(resumed.runId).toBe(next)
    expect(resumed.spec.resumeSessionId).toBe('abc')
    await resumed.end()
  })
})
