import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import { changeSetIsRight, goneMs, wholeLog } from '../kit/invariants.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { codexConfig } from '../kit/real-codex.ts'
import { fetchHarness, type Fetched } from '../kit/real-harness.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { makeRepo } from '../kit/system-scenario.ts'

/** The real codex through the whole system; only the model's server is scripted. */

let found: Fetched
let stub: StubLlm
let system: TestSystem

beforeAll(async () => {
  found = fetchHarness('codex')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real codex is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
  system = await TestSystem.start({ devices: 0 })
  const device = system.makeDevice()
  // As on a person's machine: found by the login shell's profile, with the person's settings.
  mkdirSync(join(device.homeDir, '.codex'), { recursive: true })
  writeFileSync(join(device.homeDir, '.codex', 'config.toml'), codexConfig(`${stub.url}/s/run`))
  writeFileSync(
    join(device.homeDir, '.profile'),
    `export PATH='${found.binDir}':"$PATH"\nexport OPENAI_API_KEY=dummy\n`,
  )
  await device.enrol(system.api, system.server.url)
  await device.start()
})
beforeEach((context) => {
  if ('missing' in found) context.skip(found.missing)
})
afterAll(async () => {
  await system?.stop()
  await stub?.stop()
})

function dataOf(events: readonly RunEvent[], kind: string): Record<string, unknown>[] {
  return events.filter((event) => event.kind === kind).map(({ data }) => data)
}

async function newAgent(name: string, tools: Record<string, unknown>) {
  const folder = join(system.root, name)
  makeRepo(folder)
  const { publicId } = system.device.identity
  const { shortId } = await system.api.addFolder({ displayName: name, rootPath: folder, deviceId: publicId })
  const agent = await system.api.createAgent({ name, harness: 'codex', defaultFolderId: shortId })
  await system.api.call('PUT', `/agents/${agent.id}/config`, { config: { permissions: { tools } } })
  return { id: agent.id, folder }
}

const shell = (command: string) => ({ kind: 'shell', command }) as const

test('what it says, calls and gets are events of the run; its file is in the change-set; its svc is its own', async () => {
  const agent = await newAgent('Codex', {})
  const commands = 'echo made > made.txt; svc agent get @codex > /dev/null && echo seen'
  await stub.script({
    run: {
      steps: [
        { text: 'I write it.', tool: shell(commands), usage: { input: 300, output: 30 } },
        { text: 'The file is there.', usage: { input: 400, output: 40 } },
      ],
    },
  })
  const runId = await system.api.startRun(agent.id, 'Make a file.')
  const run = await system.api.waitForRun(runId, 'succeeded')
  const events = await system.api.events(runId)
  wholeLog(events, 'completed')
  expect(dataOf(events, 'session')[0]).toMatchObject({ sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/) })
  const [request] = await stub.requests()
  expect(JSON.stringify(request?.body)).toContain('You run unattended, as an agent of svc')
  const [call] = dataOf(events, 'tool_call')
  expect(call).toMatchObject({ name: 'Bash', input: { command: commands } })
  expect(dataOf(events, 'tool_result')).toMatchObject([
    { toolCallId: call!['toolCallId'], isError: false, output: 'seen\n' },
  ])
  expect(dataOf(events, 'usage').at(-1)).toMatchObject({ inputTokens: 700, outputTokens: 70 })
  expect(run).toMatchObject({ exitReason: 'completed', toolCallCount: 1, harness: { id: 'codex' } })
  const changeSet = await system.api.changeSet(runId)
  expect(changeSet.files).toMatchObject([{ path: 'made.txt', status: 'added', additions: 1 }])
  changeSetIsRight(agent.folder, changeSet)
  await nothingNames(runId, goneMs)
})

test('a call that must be asked: a person approves it, and the woken run makes it in the same session', async () => {
  const agent = await newAgent('Careful', { ask: ['Bash'] })
  const call = shell('echo shipped > shipped.txt')
  await stub.script({ run: { steps: [{ text: 'I ship it.', tool: call }, { text: 'Not reached.' }] } })
  const runId = await system.api.startRun(agent.id, 'Ship it.')
  const run = await system.api.waitForRun(runId, 'succeeded')
  expect(run.exitReason).toBe('approval_requested')
  const events = await system.api.events(runId)
  wholeLog(events, 'approval_requested')
  expect(existsSync(join(agent.folder, 'shipped.txt'))).toBe(false)
  const approvals = await system.api.call<{ data: { id: string; runId: string }[] }>('GET', '/approvals')
  const [approval] = approvals.data.filter((each) => each.runId === runId)
  expect(approval).toMatchObject({ gatedThing: { name: 'Bash', safeSummary: `Bash: ${call.command}` } })
  await stub.script({ run: { steps: [{ text: 'Thank you.', tool: call }, { text: 'Shipped.' }] } })
  await system.api.insist(`/approvals/${approval!.id}/approve`)
  const woken = await waitFor(async () => (await system.api.run(runId)).successorRunId, 'the answer wakes a run')
  await system.api.waitForRun(woken, 'succeeded')
  const after = await system.api.events(woken)
  wholeLog(after, 'completed')
  expect(dataOf(after, 'permission')).toMatchObject([{ decision: 'allow', rule: `approval:${approval!.id}` }])
  const [session] = dataOf(events, 'session')
  expect(dataOf(after, 'session')).toMatchObject([{ sessionId: session!['sessionId'], resumed: true }])
  expect(readFileSync(join(agent.folder, 'shipped.txt'), 'utf8')).toBe('shipped\n')
})

test('a used-up allowance: one run follows, waits for it, and goes on with the session by itself', async () => {
  const agent = await newAgent('Limited', {})
  const resetsAt = Math.ceil(Date.now() / 1000) + 6
  const error = { status: 429, type: 'usage_limit_reached', resetsAt, headers: usedUp(resetsAt) }
  await stub.script({ run: { steps: [{ text: 'Half.', tool: shell('echo half >> done.txt') }, { error }] } })
  const runId = await system.api.startRun(agent.id, 'Do it all.')
  expect((await system.api.waitForRun(runId, 'failed')).exitReason).toBe('rate_limited')
  await stub.script({ run: { steps: [{ text: 'All of it is done.' }] } })
  const successor = await waitFor(async () => (await system.api.run(runId)).successorRunId, 'a run follows')
  const until = new Date(resetsAt * 1000).toISOString()
  expect(await system.api.run(successor)).toMatchObject({
    gateReason: 'rate_limit',
    gateDescription: expect.stringContaining(until),
  })
  const status = async () => (await system.device.status()).limits
  await waitFor(async () => ((await status())?.length ? true : null), 'the device is told of the limit')
  expect(await status()).toEqual([{ harness: 'codex', resetsAt: resetsAt * 1000 }])
  const done = await system.api.waitForRun(successor, 'succeeded')
  expect(done).toMatchObject({ triggerSource: 'manual', parentRunId: runId })
  expect(Date.parse(done.startedAt!) - resetsAt * 1000).toBeGreaterThanOrEqual(0)
  const [session] = dataOf(await system.api.events(runId), 'session')
  expect(dataOf(await system.api.events(successor), 'session')).toMatchObject([
    { sessionId: session!['sessionId'], resumed: true },
  ])
  expect(readFileSync(join(agent.folder, 'done.txt'), 'utf8')).toBe('half\n')
  expect(await status()).toEqual([])
})
const usedUp = (resetsAt: number) => ({
  'x-codex-primary-used-percent': '100',
  'x-codex-primary-window-minutes': '300',
  'x-codex-primary-reset-at': String(resetsAt),
})

test('a provider that fails: one run with the backup model follows, in the same session', async () => {
  const agent = await newAgent('Backed', {})
  const runtime = { model: 'gpt-5.1-codex', backupModel: 'gpt-5.1-codex-mini' }
  await system.api.call('PUT', `/agents/${agent.id}/config`, { config: { runtime } })
  const half = { text: 'Half.', tool: shell('echo half >> done.txt') }
  const failures = Array.from({ length: 20 }, () => ({ error: { status: 529 } }))
  const rules = [{ when: 'Go on where you stopped', text: 'All of it is done.' }]
  await stub.script({ run: { rules, steps: [half, ...failures] } })
  const runId = await system.api.startRun(agent.id, 'Do it all.')
  expect((await system.api.waitForRun(runId, 'failed')).exitReason).toBe('error')
  const successor = await waitFor(async () => (await system.api.run(runId)).successorRunId, 'a run follows')
  const done = await system.api.waitForRun(successor, 'succeeded')
  expect(done).toMatchObject({ triggerSource: 'manual', parentRunId: runId })
  const [session] = dataOf(await system.api.events(runId), 'session')
  expect(dataOf(await system.api.events(successor), 'session')).toMatchObject([
    { sessionId: session!['sessionId'], resumed: true },
  ])
  const models = (await stub.requests()).map(({ body }) => body['model'])
  expect([models[0], models.at(-1)]).toEqual([runtime.model, runtime.backupModel])
  expect(readFileSync(join(agent.folder, 'done.txt'), 'utf8')).toBe('half\n')
})

test('cancelled in a tool call, nothing of it lives, nor of what it started in sessions of their own', async () => {
  const agent = await newAgent('Stopped', {})
  const late = 'touch begun; (setsid sleep 600 &) ; tail -f /dev/null'
  await stub.script({ run: { steps: [{ tool: shell(late) }, { text: 'Not reached.' }] } })
  const runId = await system.api.startRun(agent.id, 'Wait.')
  await waitFor(async () => existsSync(join(agent.folder, 'begun')), 'the tool runs')
  await system.api.cancel(runId)
  const run = await system.api.waitForRun(runId, 'cancelled')
  expect(run.exitReason).toBe('interrupted')
  await nothingNames(runId, goneMs)
})
