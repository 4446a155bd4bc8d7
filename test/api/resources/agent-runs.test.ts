import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findDetails } from '../../../control-plane/resources/runs/details-store.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { setDeleted, setPaused } from '../../kit/rows.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const start = (agentId: string, body: unknown = {}, token?: string) =>
  server.call(`/agents/${agentId}/runs`, { body, ...(token === undefined ? {} : { token }) })

test('without a device the wake is pending, and says why', async () => {
  const agent = await server.createAgent()
  const reply = await start(agent.id, { prompt: 'Work' })
  expect(reply.status).toBe(200)
  expect(reply.body).toEqual({
    kind: 'pending',
    runPublicId: expect.stringMatching(/^run_[0-9A-Za-z]{16}$/),
    gateReason: 'no_device',
  })
  expect(await server.ok(`/runs/${reply.body.runPublicId}`)).toMatchObject({
    status: 'queued',
    triggerSource: 'manual',
    gateReason: 'no_device',
    gateDescription: expect.stringContaining('svc device connect'),
    startedAt: null,
    exitReason: null,
    errorCode: null,
    effectiveSettings: null,
    environment: { id: 'device', type: 'device', cwd: 'home', deviceName: null, deviceId: null, deviceLiveness: null },
  })
})

test('with a device it is queued; a device that is full gates it as capacity', async () => {
  const agent = await server.createAgent({}, (await server.addPerson('member')).token)
  const person = await server.addPerson('member')
  const own = await server.createAgent({}, person.token)
  const device = await FakeDevice.connect(server, { token: person.token })
  await server.ok(`/devices/${device.identity.deviceId}`, {
    method: 'PATCH',
    body: { maxConcurrentRuns: 1 },
    token: person.token,
  })
  const first = await start(own.id)
  expect(first.body.kind).toBe('queued')
  const run = await device.take()
  expect(run.runId).toBe(first.body.runPublicId)
  const second = await start(own.id)
  expect(second.body).toMatchObject({ kind: 'pending', gateReason: 'capacity' })
  // The device is its person's: agents of others do not run on it.
  expect((await start(agent.id)).body).toMatchObject({ kind: 'pending', gateReason: 'no_device' })
  await run.end()
  expect((await device.take()).runId).toBe(second.body.runPublicId)
  await device.disconnect()
})

test('sources become trigger sources; an agent that wakes another requests it', async () => {
  const agent = await server.createAgent()
  const runId = await server.startRun(agent.id)
  const token = await server.runToken(runId)
  const sourceOf = async (body: unknown, caller?: string) => {
    const reply = await start(agent.id, body, caller)
    return (await server.ok(`/runs/${reply.body.runPublicId}`)).triggerSource as string
  }
  expect(await sourceOf({ source: 'on_demand' })).toBe('manual')
  expect(await sourceOf({ source: 'assignment', prompt: 'a' })).toBe('assignment')
  expect(await sourceOf({ source: 'mention', prompt: 'b' })).toBe('mention')
  expect(await sourceOf({}, token)).toBe('agent_request')
  expect(outcomeOf(await start(agent.id, { source: 'cron' }))).toBe('400 validation_error')
})

test('the older path is the same route', async () => {
  const agent = await server.createAgent()
  const reply = await server.call(`/agents/${agent.id}/wakeup`, { body: {} })
  expect(reply.body.kind).toBe('pending')
})

test('an assignment that adds nothing folds into the run that waits', async () => {
  const agent = await server.createAgent()
  const first = await start(agent.id, { source: 'assignment', prompt: 'Same' })
  const second = await start(agent.id, { source: 'assignment', prompt: 'Same' })
  expect(second.body).toEqual({ kind: 'coalesced', coalescedIntoRunPublicId: first.body.runPublicId })
  expect((await start(agent.id, { source: 'assignment', prompt: 'Other' })).body.kind).toBe('pending')
  expect((await start(agent.id, { prompt: 'Same' })).body.kind).toBe('pending')
})

test('wakes that fold into one run that waits bring no more schemas together than one of them may', async () => {
  const agent = await server.createAgent()
  const mention = (outputSchemas: Record<string, unknown>) => start(agent.id, { source: 'mention', outputSchemas })
  const large = (name: string) => ({ [name]: { description: `${name} ${'x'.repeat(30_000)}` } })
  const runId = (await mention(large('First'))).body.runPublicId as string
  const folded = { kind: 'coalesced', coalescedIntoRunPublicId: runId }
  const namesOf = async () =>
    Object.keys((await findDetails(server.database.root, idFrom(runId)))?.outputSchemas ?? {}).sort()
  expect((await mention(large('Second'))).body).toEqual(folded)
  const reply = await mention(large('Third'))
  expect([outcomeOf(reply), reply.body.error.param]).toEqual(['400 validation_error', 'outputSchemas'])
  expect(reply.body.error.details.fields[0].message).toContain('65536 bytes')
  expect(await namesOf()).toEqual(['First', 'Second'])
  // Those that the run knows take nothing more.
  expect((await mention(large('First'))).body).toEqual(folded)
  const small = (from: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`S${from + at}`, {}]))
  expect((await mention(small(0, 14))).body).toEqual(folded)
  expect((await mention(small(14, 1))).body.error.details.fields[0].message).toContain('16 schemas')
  expect(await namesOf()).toHaveLength(16)
})

test('a cloud agent is declined where cloud runs are off: a run that ended at once', async () => {
  const agent = await server.createAgent({ environment: 'cloud' })
  const reply = await start(agent.id)
  expect(reply.body).toEqual({
    kind: 'declined',
    runPublicId: expect.stringMatching(/^run_/),
    exitReason: 'cloud_disabled',
  })
  expect(await server.ok(`/runs/${reply.body.runPublicId}`)).toMatchObject({
    status: 'cancelled',
    exitReason: 'cloud_disabled',
    environment: { type: 'cloud', cwd: 'sandbox-root' },
  })
})

test('a declined run is told in the history of its task, as every run that ends', async () => {
  const agent = await server.createAgent({ environment: 'cloud' })
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const task = await server.ok('/tasks', { body: { title: 'Fly' }, headers })
  const { body } = await start(agent.id, { taskId: task.id })
  expect(body).toMatchObject({ kind: 'declined', exitReason: 'cloud_disabled' })
  const { data } = await server.ok(`/tasks/${task.id}/activity?limit=1`)
  const ended = { runId: body.runPublicId, exitReason: 'cloud_disabled' }
  expect(data).toMatchObject([{ kind: 'run.ended', actor: { type: 'agent', id: agent.id }, data: ended }])
})

test('model, effort and harness of one run are its own, and the agent keeps those it has', async () => {
  const { token } = await server.addPerson('owner', 'choices')
  const device = await FakeDevice.connect(server, { token })
  const agent = await server.createAgent({ harness: 'claude', command: null, model: 'claude-opus-4-5' }, token)
  await start(agent.id, { prompt: 'x', model: 'gpt-5', reasoningEffort: 'high', harness: 'codex' }, token)
  const first = await device.take()
  expect(first.spec).toMatchObject({ model: 'gpt-5', reasoningEffort: 'high', harness: 'codex' })
  await first.end()
  await start(agent.id, { prompt: 'x' }, token)
  const second = await device.take()
  expect(second.spec).toMatchObject({ model: 'claude-opus-4-5', reasoningEffort: null, harness: 'claude' })
  await second.end()
  // Which program runs is no choice for one run.
  for (const [id, harness] of [
    [agent.id, 'command'],
    [(await server.createAgent({}, token)).id, 'claude'],
  ] as const) {
    const reply = await start(id, { prompt: 'x', harness }, token)
    expect([outcomeOf(reply), reply.body.error.param]).toEqual(['400 validation_error', 'harness'])
  }
  await device.disconnect()
})

test('what cannot run is not dispatched, as an answer and not as an error', async () => {
  const inactive = await server.createAgent()
  await server.ok(`/agents/${inactive.id}`, { method: 'PATCH', body: { status: 'running' } })
  const deleted = await server.createAgent()
  await setDeleted(server, deleted.id, server.world.now())
  const device = await enrol(server)
  const folder = await server.ok('/folders', {
    body: { displayName: 'x', rootPath: '/x', deviceId: device.publicId },
  })
  const homeless = await server.createAgent({ defaultFolderId: folder.shortId })
  await server.ok(`/folders/${folder.shortId}`, { method: 'DELETE' })
  for (const [agent, reason] of [
    [inactive, 'agent_inactive'],
    [deleted, 'agent_tombstoned'],
    [homeless, 'folder_bind_failed'],
  ] as const) {
    const reply = await start(agent.id)
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({ kind: 'not_dispatched', reason, message: expect.any(String) })
  }
  const paused = await server.addPerson('owner', 'paused')
  const agent = await server.createAgent({}, paused.token)
  await setPaused(server, paused.workspaceId)
  expect((await start(agent.id, {}, paused.token)).body.reason).toBe('workspace_agents_paused')
})

test('a repeated idempotencyKey of the body is the same wake for a day, for this agent only', async () => {
  const [agent, other] = [await server.createAgent(), await server.createAgent()]
  const body = { prompt: 'Once', idempotencyKey: 'wake 1' }
  const first = await start(agent.id, body)
  const again = await Promise.all([start(agent.id, body), start(agent.id, { ...body, prompt: 'Else' })])
  for (const reply of again) expect(reply.body).toEqual(first.body)
  expect((await server.ok(`/runs?agent=${agent.id}`)).data).toHaveLength(1)
  expect((await start(other.id, body)).body.runPublicId).not.toBe(first.body.runPublicId)
  server.world.advance(24 * 3_600_000 + 1)
  try {
    expect((await start(agent.id, body)).body.runPublicId).not.toBe(first.body.runPublicId)
  } finally {
    server.world.advance(-24 * 3_600_000 - 1)
  }
})

test('refuses what it cannot find', async () => {
  const agent = await server.createAgent()
  expect(outcomeOf(await start('@nobody'))).toBe('404 resource_not_found')
  for (const taskId of ['tsk_0000000000000000', 'MAI-999', 'current']) {
    const reply = await start(agent.id, { taskId })
    expect(outcomeOf(reply)).toBe('404 task_not_found')
    expect(reply.body.error.param).toBe('taskId')
  }
  expect(outcomeOf(await start(agent.id, { prompt: 5 }))).toBe('400 validation_error')
  expect(outcomeOf(await start(agent.id, { idempotencyKey: '' }))).toBe('400 validation_error')
})

test('the Idempotency-Key header replays the whole answer', async () => {
  const agent = await server.createAgent()
  const send = () => server.call(`/agents/${agent.id}/runs`, { body: {}, headers: { 'idempotency-key': 'k-1' } })
  const first = await send()
  const second = await send()
  expect(second.body).toEqual(first.body)
  expect(second.headers.get('idempotency-replayed')).toBe('true')
})
