import { afterEach, beforeEach, expect, test } from 'vitest'
import { enrol, FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'
import { makeDm, say } from '../../kit/talk.ts'

// Runs whose provider fails: the breaker of the device, and what goes on elsewhere.

let server: TestServer
let device: FakeDevice
beforeEach(async () => {
  server = await TestServer.start({ settings: { SVC_LEASE_MS: String(24 * 3_600_000) } })
  device = await FakeDevice.connect(server)
})
afterEach(() => server?.stop())

const agentWith = (body: Record<string, unknown>) => server.createAgent({ command: null, ...body })
const claudeAgent = () => agentWith({ harness: 'claude' })
const runOf = (runId: string) => server.ok(`/runs/${runId}`)
const fail = (run: FakeRun) =>
  run.end('error', { message: 'Overloaded (529).', providerFailed: true, sessionId: 'ses-1' })

async function failOne(agentId: string): Promise<string> {
  await server.startRun(agentId)
  const run = await device.take()
  await fail(run)
  return run.runId
}

/** The run that follows this one. */
async function successorOf(runId: string): Promise<string> {
  const found = async () => (await runOf(runId)).successorRunId as string | null
  await expect.poll(found).toEqual(expect.any(String))
  return (await found())!
}
async function isLast(runId: string): Promise<boolean> {
  await server.plane.waker.sweep()
  return (await runOf(runId)).successorRunId === null
}

test('programs of an agent’s own share no provider that anybody knows of, so none holds up another', async () => {
  const { id } = await server.createAgent({ harness: 'command', command: 'agent --acp', protocol: 'acp' })
  for (let count = 0; count < 4; count++) expect(await runOf(await failOne(id))).toMatchObject({ exitReason: 'error' })
  const other = await server.createAgent({ harness: 'command', command: 'echo hi' })
  await server.startRun(other.id)
  await (await device.take()).end()
})

test('after three failures in a row the runs of the provider wait; one is tried, and the others follow it', async () => {
  const { id } = await claudeAgent()
  const told = async (runId: string) => (await runOf(runId)).errorMessage as string
  expect(await runOf(await failOne(id))).toMatchObject({ exitReason: 'error', errorMessage: 'Overloaded (529).' })
  await failOne(id)
  const third = await failOne(id)
  expect(await runOf(third)).toMatchObject({
    status: 'failed',
    exitReason: 'circuit_breaker',
    errorCode: 'circuit_breaker',
  })
  const [, openUntil] = /^Overloaded.*Others wait until (\S+)\.$/.exec(await told(third)) as unknown as [string, string]
  expect(Date.parse(openUntil) - server.world.now()).toBeLessThanOrEqual(30_000)
  const limit = { reason: 'provider_overloaded', provider: 'claude', access: 'sign_in', until: openUntil }
  expect(await server.ok('/devices')).toMatchObject({ devices: [{ limits: [limit] }] })
  // Of any agent; another provider works, and so does another device.
  const waiting = [await server.startRun((await claudeAgent()).id), await server.startRun(id)]
  for (const runId of waiting)
    expect(await runOf(runId)).toMatchObject({
      status: 'queued',
      gateReason: 'provider_overloaded',
      gateDescription: expect.stringContaining(openUntil),
    })
  await server.startRun((await agentWith({ harness: 'codex' })).id)
  const other = await device.take()
  expect(other.spec.harness).toBe('codex')
  await other.end()

  server.world.advance(30_000)
  await server.plane.sweeper.runAll()
  const trial = await device.take()
  expect(trial.runId).toBe(waiting[0])
  await server.plane.sweeper.runAll()
  expect(device.pending).not.toContain('run.offer')
  await trial.end()
  expect((await device.take()).runId).toBe(waiting[1])
})

test('a trial that fails opens the breaker for twice as long; a run that works lets all through after a minute', async () => {
  const { id } = await claudeAgent()
  for (let i = 0; i < 3; i++) await failOne(id)
  server.world.advance(30_000)
  const trial = await failOne(id)
  expect((await runOf(trial)).exitReason).toBe('circuit_breaker')
  const waiting = [await server.startRun(id), await server.startRun(id), await server.startRun(id)]
  server.world.advance(30_000)
  await server.plane.sweeper.runAll()
  expect((await runOf(waiting[0]!)).gateReason).toBe('provider_overloaded')
  server.world.advance(30_000)
  await server.plane.sweeper.runAll()
  expect((await device.take()).runId).toBe(waiting[0])
  server.world.advance(60_000)
  await server.plane.sweeper.runAll()
  expect([(await device.take()).runId, (await device.take()).runId]).toEqual(waiting.slice(1))
})

test('a failure of the provider is followed by a run with the backup model, in its session, once', async () => {
  const agent = await agentWith({ harness: 'codex', model: 'gpt-5.1-codex', backupModel: 'gpt-5.1-codex-mini' })
  await server.startRun(agent.id, { prompt: 'Paint the boat.', reasoningEffort: 'high' })
  const failed = await device.take()
  await failed.end('error', { providerFailed: true, sessionId: 'ses-1' })
  const again = await device.take()
  expect(again.runId).toBe(await successorOf(failed.runId))
  expect(again.spec).toMatchObject({
    harness: 'codex',
    model: 'gpt-5.1-codex-mini',
    reasoningEffort: 'high',
    resumeSessionId: 'ses-1',
    prompt: expect.stringMatching(/Go on where you stopped.*Paint the boat\.$/s),
  })
  expect(await runOf(again.runId)).toMatchObject({ triggerSource: 'manual', parentRunId: failed.runId })
  await fail(again)
  expect(await isLast(again.runId)).toBe(true)
  // Nothing follows a failure of the agent's own work.
  await server.startRun(agent.id)
  const own = await device.take()
  await own.end('error', { sessionId: 'ses-2' })
  expect(await isLast(own.runId)).toBe(true)
})

test('claude changes the model by itself; after it the fallback harness goes on, in a session of its own', async () => {
  const models = { model: 'claude-opus-4-5', backupModel: 'claude-sonnet-4-5' }
  const plain = await agentWith({ harness: 'claude', ...models })
  expect(await isLast(await failOne(plain.id))).toBe(true)
  const agent = await agentWith({ harness: 'claude', ...models, fallbackHarness: 'codex' })
  const failed = await failOne(agent.id)
  const there = await device.take()
  expect(there.runId).toBe(await successorOf(failed))
  expect(there.spec).toMatchObject({ harness: 'codex', model: null, backupModel: null, resumeSessionId: null })
  await there.end()
  // While the breaker is open a new run begins there at once.
  await failOne(plain.id)
  await server.startRun(agent.id)
  expect((await device.take()).spec.harness).toBe('codex')
})

test('the breaker is that of one device, and what a device says of another person’s run changes nothing there', async () => {
  const { id } = await claudeAgent()
  for (let i = 0; i < 3; i++) await failOne(id)
  const second = await FakeDevice.connect(server, { identity: await enrol(server) })
  await server.startRun(id)
  const run = await second.take()
  expect(run.spec.harness).toBe('claude')
  await run.end()
})

/** An agent with a backup model that paints a boat in a dm. */
async function painting() {
  const agent = await agentWith({ harness: 'codex', model: 'gpt-5.1-codex', backupModel: 'gpt-5.1-codex-mini' })
  const { id } = await makeDm(server, agent.id)
  await say(server, id, 'Paint the boat.')
  return { agent, id, failed: await device.take() }
}

test('in a conversation, too, it is followed so where something was said meanwhile', async () => {
  const { id, failed } = await painting()
  await say(server, id, 'Make it red.')
  await fail(failed)
  const again = await device.take()
  expect(again.spec).toMatchObject({
    model: 'gpt-5.1-codex-mini',
    resumeSessionId: 'ses-1',
    prompt: expect.stringMatching(/Make it red\..*Go on where you stopped/s),
  })
  const place = async (runId: string) => server.database.root('runs').where({ id: runId }).first()
  const [before, after] = [await place(failed.runId), await place(again.runId)]
  expect(after.in_line_since).toBe(before.created_at)
  expect(after.parent_run_id).toBe(failed.runId)
  await again.end()
})

test('behind more messages than one run reads it is followed once, and after them', async () => {
  const { agent, id, failed } = await painting()
  for (let n = 1; n <= 51; n++) await say(server, id, `Message ${n}.`)
  await fail(failed)
  const many = await device.take()
  expect(many.spec).toMatchObject({ model: 'gpt-5.1-codex', prompt: expect.stringContaining('Message 50.') })
  expect(many.spec.prompt).not.toMatch(/Message 51\.|Go on where you stopped/)
  await many.end()
  const last = await device.take()
  expect(last.spec).toMatchObject({ model: 'gpt-5.1-codex-mini', prompt: expect.stringContaining('Message 51.') })
  await last.end()
  await server.plane.waker.idle()
  expect((await server.ok(`/runs?agent=${agent.id}`)).data).toHaveLength(3)
})

test('what was said while a run reached a limit waits in its place, and on its harness', async () => {
  const agent = await claudeAgent()
  const { id } = await makeDm(server, agent.id)
  await say(server, id, 'Paint the boat.')
  const limited = await device.take()
  await say(server, id, 'Make it red.')
  const limitResetsAt = server.world.now() + 3_600_000
  await limited.end('rate_limited', { sessionId: 'ses-1', limitResetsAt })
  const successor = await successorOf(limited.runId)
  const { root } = server.database
  const [before, after] = [limited.runId, successor].map((runId) => root('runs').where({ id: runId }).first())
  expect((await after).in_line_since).toBe((await before).created_at)
})
