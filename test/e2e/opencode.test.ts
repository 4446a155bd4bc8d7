import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import { changeSetIsRight, goneMs, wholeLog } from '../kit/invariants.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { fetchHarness, type Fetched } from '../kit/real-harness.ts'
import { opencodeConfig, writeOpencodeConfig } from '../kit/real-opencode.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { makeRepo } from '../kit/system-scenario.ts'

/** The real opencode through the whole system; only the model's server is scripted. */

let found: Fetched
let stub: StubLlm
let system: TestSystem

beforeAll(async () => {
  found = fetchHarness('opencode')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real opencode is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
  system = await TestSystem.start({ devices: 0 })
  const device = system.makeDevice()
  // As on a person's machine: found by the login shell's profile, with the person's settings.
  writeOpencodeConfig(device.homeDir, opencodeConfig(`${stub.url}/s/run`))
  writeFileSync(join(device.homeDir, '.profile'), `export PATH='${found.binDir}':"$PATH"\n`)
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
  const agent = await system.api.createAgent({ name, harness: 'opencode', defaultFolderId: shortId })
  await system.api.call('PUT', `/agents/${agent.id}/config`, { config: { permissions: { tools } } })
  return { id: agent.id, folder }
}

const shell = (command: string) => ({ kind: 'shell', command }) as const

test('a strict agent works on what it is given by its own svc; its file is in the change-set', async () => {
  const agent = await newAgent('Opener', { defaultMode: 'strict', allow: ['Bash(echo made:*)', 'Write(made.txt)'] })
  const own = 'svc agent get @opener'
  const made = { name: 'write', input: { filePath: join(agent.folder, 'made.txt'), content: 'made\n' } }
  await stub.script({
    run: {
      steps: [
        {
          text: 'I write it.',
          tools: [made, shell(own), shell('touch not-allowed.txt')],
          usage: { input: 300, output: 30 },
        },
        { text: 'The file is there.', usage: { input: 400, output: 40 } },
      ],
    },
  })
  const runId = await system.api.startRun(agent.id, 'Make a file.')
  const run = await system.api.waitForRun(runId, 'succeeded')
  const events = await system.api.events(runId)
  wholeLog(events, 'completed')
  expect(dataOf(events, 'session')[0]).toMatchObject({ sessionId: expect.stringMatching(/^ses_/) })
  const [request] = await stub.requests()
  expect(JSON.stringify(request?.body)).toContain('You run unattended, as an agent of svc')
  const decisions = dataOf(events, 'permission').map(({ name, decision, rule }) => [name, decision, rule])
  expect(decisions).toEqual([
    ['Write', 'allow', 'Write(made.txt)'],
    ['Bash', 'allow', 'svc'],
    ['Bash', 'deny', undefined],
  ])
  const call = dataOf(events, 'tool_call').find(({ input }) => JSON.stringify(input).includes(own))
  const result = dataOf(events, 'tool_result').find(({ toolCallId }) => toolCallId === call?.['toolCallId'])
  expect(result).toMatchObject({ isError: false, output: expect.stringContaining('Opener') })
  expect(dataOf(events, 'usage').at(-1)).toMatchObject({ inputTokens: 700, outputTokens: 70, costUsd: '0.0008400000' })
  expect(run).toMatchObject({ exitReason: 'completed', toolCallCount: 3, harness: { id: 'opencode' } })
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
  expect((await system.api.waitForRun(runId, 'succeeded')).exitReason).toBe('approval_requested')
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

test('cancelled in a tool call, nothing of it lives, nor of what it started in sessions of their own', async () => {
  const agent = await newAgent('Stopped', {})
  const late = 'touch begun; (setsid sleep 600 &) ; tail -f /dev/null'
  await stub.script({ run: { steps: [{ tool: shell(late) }, { text: 'Not reached.' }] } })
  const runId = await system.api.startRun(agent.id, 'Wait.')
  await waitFor(async () => existsSync(join(agent.folder, 'begun')), 'the tool runs')
  await system.api.cancel(runId)
  expect((await system.api.waitForRun(runId, 'cancelled')).exitReason).toBe('interrupted')
  await nothingNames(runId, goneMs)
})
