import { idFrom, type AgentRef } from '../../../shared/lib/ids.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { openDatabase } from '../../../control-plane/db/open.ts'
import { acquireAdvisoryLocks } from '../../../control-plane/db/advisory-locks.ts'
import { requestWake } from '../../../control-plane/run/wakes/wakes.ts'
import { hasPostgres } from '../../kit/database.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestServer } from '../../kit/server.ts'

// Sessions that nobody uses for a while are made smaller before their provider forgets them.

const min = 60_000

let server: TestServer
let device: FakeDevice
let agentId: string
beforeEach(async () => {
  server = await TestServer.start({ settings: { SVC_LEASE_MS: String(24 * 60 * min) } })
  device = await FakeDevice.connect(server)
  agentId = (await server.createAgent({ harness: 'claude', command: null, model: 'claude-opus-4-5' })).id
  await configure({ enabled: true })
})
afterEach(() => server?.stop())

const configure = (idleCompaction: object) =>
  server.ok(`/workspaces/${server.owner.workspaceId}`, { method: 'PATCH', body: { idleCompaction } })
const keyed = () => ({ headers: { 'idempotency-key': crypto.randomUUID() } })
const runOf = (runId: string) => server.ok(`/runs/${runId}`)
const usage = (contextTokens: number) => ({
  kind: 'usage' as const,
  data: { inputTokens: contextTokens, contextTokens },
})

async function turn(taskKey: string, { contextTokens = 150_000, session = 'ses-1' } = {}): Promise<FakeRun> {
  await server.ok(`/tasks/${taskKey}/comments`, { body: { body: 'Go on.' }, ...keyed() })
  const run = await device.take()
  await run.events({ kind: 'session', data: { sessionId: session } }, usage(contextTokens))
  await run.end('completed', { sessionId: session })
  return run
}

/** A task whose agent has done a turn. */
async function task(options: Parameters<typeof turn>[1] = {}): Promise<{ key: string; run: FakeRun }> {
  const { key } = await server.ok('/tasks', { body: { title: 'Build', assignee: agentId, force: true }, ...keyed() })
  const first = await device.take()
  await first.end('completed')
  return { key, run: await turn(key, options) }
}

async function pass(minutes: number): Promise<void> {
  server.world.advance(minutes * min)
  await server.plane.sweeper.runAll()
}
const isQuiet = async () => {
  await server.plane.sweeper.runAll()
  return !device.pending.includes('run.offer')
}
const all = async () => (await server.ok('/runs')).data as { id: string; triggerSource: string }[]

test('a session that nobody used for long enough is made smaller, once after each turn, and posts nothing', async () => {
  const { key, run } = await task()
  const said = async () => (await server.ok(`/tasks/${key}/comments`)).data as unknown[]
  const before = await said()
  await pass(54)
  expect(await isQuiet()).toBe(true)
  await pass(2)
  const compaction = await device.take()
  expect(compaction.spec).toMatchObject({ prompt: '/compact', resumeSessionId: 'ses-1', model: 'claude-opus-4-5' })
  expect(await runOf(compaction.runId)).toMatchObject({ triggerSource: 'cron', task: null, parentRunId: run.runId })
  await compaction.events(usage(2_000))
  await compaction.end('completed', { sessionId: 'ses-1', usage: { costUsd: '0.5' } })
  expect(await runOf(compaction.runId)).toMatchObject({ costUsd: '0.5' })
  expect((await runOf(run.runId)).successorRunId).toBeNull()
  await pass(2)
  expect(await isQuiet()).toBe(true)
  expect(await said()).toEqual(before)
  // The next turn goes on with the session, and after it there is a next compaction.
  const next = await turn(key)
  expect(next.spec.resumeSessionId).toBe('ses-1')
  await pass(56)
  expect((await device.take()).spec.prompt).toBe('/compact')
})

test('nothing is made smaller that is small, off, too old, of another harness or without a task', async () => {
  await task({ contextTokens: 99_999 })
  await server.startRun(agentId)
  const loose = await device.take()
  await loose.events({ kind: 'session', data: { sessionId: 'ses-2' } }, usage(200_000))
  await loose.end('completed', { sessionId: 'ses-2' })
  await pass(56)
  expect(await isQuiet()).toBe(true)
  await configure({ enabled: false, minTokens: 10 })
  expect(await isQuiet()).toBe(true)
  await configure({ enabled: true })
  // By now its provider has forgotten it.
  server.world.advance(4 * min)
  expect(await isQuiet()).toBe(true)
})

test('a large session is found behind hundreds of small ones', async () => {
  const small = await task({ contextTokens: 10 })
  const { root } = server.database
  const row: Record<string, unknown> = await root('runs').where({ id: small.run.runId }).first()
  const of = await root('tasks').where({ key: small.key }).first()
  for (let n = 0; n < 200; n++) {
    const id = `${of.id}${n}`
    await root('tasks').insert({ ...of, key: `CPY-${n}`, id })
    await root('runs').insert({ ...row, id: `${String(row['id'])}${n}`, task_id: id })
  }
  await pass(1)
  const large = await task({ session: 'ses-2' })
  await pass(55)
  expect(await runOf((await device.take()).runId)).toMatchObject({ parentRunId: large.run.runId })
})

test('nobody waits for it: a wake for the session ends it, and goes on with that session', async () => {
  const { key } = await task()
  await pass(56)
  const compaction = await device.take()
  await server.ok(`/tasks/${key}/comments`, { body: { body: 'One more thing.' }, ...keyed() })
  expect(await device.next('run.cancel')).toMatchObject({ runId: compaction.runId })
  // Two processes would write one session, and what one of them did could be forgotten.
  expect(await isQuiet()).toBe(true)
  const [waiting] = (await all()).filter(({ triggerSource }) => triggerSource !== 'cron')
  expect(await runOf(waiting!.id)).toMatchObject({ status: 'queued', gateReason: 'task_locked' })
  await compaction.end('duplicate_trigger', { sessionId: 'ses-1' })
  const work = await device.take()
  expect(work.spec).toMatchObject({ resumeSessionId: 'ses-1', prompt: expect.stringContaining('One more thing.') })
  expect((await runOf(compaction.runId)).status).toBe('cancelled')
  await work.end('completed', { sessionId: 'ses-1' })
})

test('an answer that wakes the run itself does not wait for it either', async () => {
  const { run } = await task()
  await pass(56)
  const compaction = await device.take()
  const wake = {
    agentRef: idFrom<AgentRef>(agentId),
    triggerSource: 'approval_resolved' as const,
    causedByUuid: null,
    wordsBy: [],
    requestedByRef: null,
    prompt: 'Approved.',
    parentRunId: run.runId,
  }
  const request = { workspaceId: server.owner.workspaceId, ...wake }
  await server.database.root.transaction((tx) => requestWake(tx, request, server.world))
  await server.plane.waker.sweep()
  expect(await device.next('run.cancel')).toMatchObject({ runId: compaction.runId })
  await compaction.end('duplicate_trigger', { sessionId: 'ses-1' })
  expect((await device.take()).spec).toMatchObject({ resumeSessionId: 'ses-1', prompt: 'Approved.' })
})

test('what nobody goes on with, or a person was asked in, is left alone', async () => {
  const { key } = await task()
  await server.ok(`/tasks/${key}/transition`, { body: { status: 'cancelled' }, ...keyed() })
  const asked = await server.ok('/tasks', { body: { title: 'Ask', assignee: agentId, force: true }, ...keyed() })
  await device.take().then((first) => first.end('completed'))
  await server.ok(`/tasks/${asked.key}/comments`, { body: { body: 'Ask.' }, ...keyed() })
  const run = await device.take()
  await run.events({ kind: 'session', data: { sessionId: 'ses-3' } }, usage(150_000))
  await run.end('question_asked', { sessionId: 'ses-3' })
  await pass(56)
  expect(await isQuiet()).toBe(true)
})

test('one that fails is not tried again, is followed by nothing, and leaves the session as it was', async () => {
  const { key } = await task()
  await pass(56)
  const compaction = await device.take()
  await compaction.end('rate_limited', { sessionId: 'ses-1', limitResetsAt: server.world.now() + 1_000 })
  await pass(1)
  await server.plane.waker.sweep()
  expect(await isQuiet()).toBe(true)
  expect((await runOf(compaction.runId)).successorRunId).toBeNull()
  expect((await turn(key)).spec.resumeSessionId).toBe('ses-1')
})

test('where it cannot begin soon it is given up; a paused agent’s session is left alone', async () => {
  const { key } = await task()
  await server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { status: 'running' } })
  await pass(56)
  const before = await all()
  expect(before.filter(({ triggerSource }) => triggerSource === 'cron')).toEqual([])
  await server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { status: 'active' } })
  device.send({ type: 'heartbeat', claimState: { accepting: false, reason: 'paused', message: null, activeRuns: 0 } })
  await device.next('heartbeat.ack')
  await server.plane.sweeper.runAll()
  const [waiting] = (await all()).filter(({ triggerSource }) => triggerSource === 'cron')
  expect(await runOf(waiting!.id)).toMatchObject({ status: 'queued', gateReason: 'capacity' })
  await pass(1)
  expect(await runOf(waiting!.id)).toMatchObject({ status: 'cancelled', exitReason: 'duplicate_trigger' })
  device.send({ type: 'heartbeat', claimState: { accepting: true, reason: null, message: null, activeRuns: 0 } })
  await device.next('heartbeat.ack')
  expect(await isQuiet()).toBe(true)
  expect((await turn(key)).spec.resumeSessionId).toBe('ses-1')
})

test.skipIf(!hasPostgres())('two replicas that look at the same moment begin one', async () => {
  const first = await TestServer.start({ database: 'postgres', settings: { SVC_LEASE_MS: String(24 * 60 * min) } })
  const second = await TestServer.start({ beside: first, settings: { SVC_LEASE_MS: String(24 * 60 * min) } })
  const only = server
  try {
    server = first
    device = await FakeDevice.connect(server)
    agentId = (await server.createAgent({ harness: 'claude', command: null })).id
    await configure({ enabled: true })
    await task()
    first.world.advance(56 * min)
    // Both have seen that the session is idle when the first of them gets its turn.
    const other = openDatabase({ url: first.database.url!, poolSize: 1 })
    await other.root.raw(acquireAdvisoryLocks([first.owner.workspaceId]))
    const sweeps = [first, second].map((each) => each.plane.sweeper.runAll())
    const waiting = async () =>
      (await first.database.root('pg_locks').where({ locktype: 'advisory', granted: false })).length >= 2
    try {
      await waitFor(waiting, 'both wait for their turn')
    } finally {
      await other.close()
    }
    await Promise.all(sweeps)
    const begun = (await all()).filter(({ triggerSource }) => triggerSource === 'cron')
    expect(begun).toHaveLength(1)
    expect((await device.take()).runId).toBe(begun[0]!.id)
  } finally {
    server = only
    await second.stop()
    await first.stop()
  }
})
