import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import { changeSetIsRight, goneMs, wholeLog } from '../kit/invariants.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { signInClaude } from '../kit/real-claude.ts'
import { fetchHarness, servedBy } from '../kit/real-harness.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { makeRepo } from '../kit/system-scenario.ts'

/** The real Claude Code through the whole system; only the model's server is scripted. */

let found: ReturnType<typeof fetchHarness>
let stub: StubLlm
let system: TestSystem
let folder: string
let agentId: string

beforeAll(async () => {
  found = fetchHarness('claude')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
  system = await TestSystem.start({ devices: 0 })
  const device = system.makeDevice()
  // As on a person's machine: found and signed in by the login shell's profile.
  signInClaude(device.homeDir, { binDir: found.binDir, modelUrl: `${stub.url}/s/run` })
  await device.enrol(system.api, system.server.url)
  await device.start()
  folder = join(system.root, 'repo')
  makeRepo(folder)
  const { publicId } = device.identity
  const { shortId } = await system.api.addFolder({ displayName: 'repo', rootPath: folder, deviceId: publicId })
  const agent = await system.api.createAgent({ name: 'Claude', harness: 'claude', defaultFolderId: shortId })
  agentId = agent.id
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

test('what it says, calls and gets are events of the run; its file is in the change-set', async () => {
  await stub.script({
    run: {
      steps: [
        {
          text: 'I write it.',
          tool: { kind: 'write', path: 'made.txt', content: 'by claude\n' },
          usage: { input: 300, output: 30 },
        },
        { text: 'The file is there.', usage: { input: 400, output: 40 } },
      ],
    },
  })
  const runId = await system.api.startRun(agentId, 'Make a file.')
  const run = await system.api.waitForRun(runId, 'succeeded')
  const events = await system.api.events(runId)
  wholeLog(events, 'completed')
  expect(dataOf(events, 'session')[0]).toMatchObject({ sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/) })
  expect(dataOf(events, 'text').map(({ text }) => text)).toEqual(['I write it.', 'The file is there.'])
  const [request] = await stub.requests()
  expect(JSON.stringify(request?.body['system'])).toContain('You run unattended, as an agent of svc')
  const [call] = dataOf(events, 'tool_call')
  expect(call).toMatchObject({ name: 'Write', input: { content: 'by claude\n' } })
  expect(dataOf(events, 'tool_result')).toMatchObject([{ toolCallId: call!['toolCallId'], isError: false }])
  expect(dataOf(events, 'usage').at(-1)).toMatchObject({ outputTokens: 70 })
  expect(dataOf(events, 'result')).toMatchObject([{ text: 'The file is there.', isError: false }])
  expect(run).toMatchObject({ exitReason: 'completed', toolCallCount: 1, harness: { id: 'claude' } })
  const changeSet = await system.api.changeSet(runId)
  expect(changeSet.files).toMatchObject([{ path: 'made.txt', status: 'added', additions: 1 }])
  changeSetIsRight(folder, changeSet)
  await nothingNames(runId, goneMs)
})

test('cancelled in the middle of an answer and retried: the new run goes on with the session', async () => {
  await stub.script({
    run: { steps: [{ text: 'One moment.', tool: { kind: 'shell', command: 'true' } }, { hang: true }] },
  })
  const runId = await system.api.startRun(agentId, 'Think for long.')
  await waitFor(
    async () => dataOf(await system.api.events(runId), 'tool_result').length > 0,
    'claude waits for the model',
  )
  await system.api.cancel(runId)
  await system.api.waitForRun(runId, 'cancelled')
  const [session] = dataOf(await system.api.events(runId), 'session')

  await stub.script({ run: { steps: [{ text: 'Done after all.' }] } })
  const retryId = await system.api.retry(runId)
  await system.api.waitForRun(retryId, 'succeeded')
  const events = await system.api.events(retryId)
  wholeLog(events, 'completed')
  expect(dataOf(events, 'session')[0]).toMatchObject({ sessionId: session!['sessionId'] })
  expect(dataOf(events, 'result')).toMatchObject([{ text: 'Done after all.' }])
  // The model was sent what was said before.
  const last = (await stub.requests()).at(-1)
  expect(JSON.stringify(last?.body)).toContain('One moment.')
  await nothingNames(runId, goneMs)
  await nothingNames(retryId, goneMs)
})

test('a call that must be asked: a person approves it, and the woken run makes it in the same session', async () => {
  const { publicId } = system.device.identity
  const asking = join(system.root, 'asking')
  makeRepo(asking)
  const { shortId } = await system.api.addFolder({ displayName: 'asking', rootPath: asking, deviceId: publicId })
  const agent = await system.api.createAgent({ name: 'Careful', harness: 'claude', defaultFolderId: shortId })
  await system.api.call('PUT', `/agents/${agent.id}/config`, {
    config: { permissions: { tools: { ask: ['Bash'] } } },
  })
  const call = { kind: 'shell', command: 'echo shipped > shipped.txt' } as const
  await stub.script({ run: { steps: [{ text: 'I ship it.', tool: call }, { text: 'Not reached.' }] } })
  const runId = await system.api.startRun(agent.id, 'Ship it.')
  const run = await system.api.waitForRun(runId, 'succeeded')
  expect(run.exitReason).toBe('approval_requested')
  const events = await system.api.events(runId)
  wholeLog(events, 'approval_requested')
  expect(dataOf(events, 'permission')).toMatchObject([
    { name: 'Bash', decision: 'ask', ask: { toolArgs: { command: call.command } } },
  ])
  expect(existsSync(join(asking, 'shipped.txt'))).toBe(false)

  const approvals = await system.api.call<{ data: { id: string; runId: string; gatedThing: object }[] }>(
    'GET',
    '/approvals',
  )
  const [approval] = approvals.data.filter((each) => each.runId === runId)
  expect(approval).toMatchObject({
    trigger: 'tool_permission',
    gatedThing: { name: 'Bash', safeSummary: `Bash: ${call.command}` },
  })
  await stub.script({ run: { steps: [{ text: 'Thank you.', tool: call }, { text: 'Shipped.' }] } })
  await system.api.insist(`/approvals/${approval!.id}/approve`)
  const woken = await waitFor(async () => (await system.api.run(runId)).successorRunId, 'the answer wakes a run')
  await system.api.waitForRun(woken, 'succeeded')
  const after = await system.api.events(woken)
  wholeLog(after, 'completed')
  expect(dataOf(after, 'permission')).toMatchObject([
    { name: 'Bash', decision: 'allow', rule: `approval:${approval!.id}` },
  ])
  expect(dataOf(after, 'session')).toMatchObject([
    { sessionId: dataOf(events, 'session')[0]!['sessionId'], resumed: true },
  ])
  expect(readFileSync(join(asking, 'shipped.txt'), 'utf8')).toBe('shipped\n')
  await nothingNames(runId, goneMs)
  await nothingNames(woken, goneMs)
})

test("the workspace's MCP servers: a rule allows one, strict denies the other, and one without its secret is left out", async () => {
  const { id: workspaceId } = await system.api.call<{ id: string }>('GET', '/workspaces')
  const agent = await system.api.createAgent({ name: 'Served', harness: 'claude' })
  const value = 'a-value-of-a-secret'
  await system.api.call('POST', '/secrets', { name: 'files', envVarName: 'FILES_TOKEN', value, agentId: agent.id })
  const tools = { allow: ['mcp__files__*'], ask: [], deny: [], defaultMode: 'strict' }
  await system.api.call('PUT', `/agents/${agent.id}/config`, { config: { permissions: { tools } } })
  const server = servedBy('FILES_TOKEN')['files']
  const mcpServers = { files: server, other: server, lost: { url: 'https://${NOT_SET}/mcp' }, 'no name': server }
  await system.api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers })
  const say = (name: string) => ({ name: `mcp__${name}__say`, input: { text: 'hey' } })
  await stub.script({ run: { steps: [{ tools: [say('files'), say('other')] }, { text: 'Done.' }] } })
  const runId = await system.api.startRun(agent.id, 'Say it.')
  await system.api.waitForRun(runId, 'succeeded')
  await system.api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers: null })
  const events = await system.api.events(runId)
  wholeLog(events, 'completed')
  expect(dataOf(events, 'error')).toEqual([
    {
      class: 'mcp_server_left_out',
      message: "The run goes without the MCP server lost: not set in the run's environment: NOT_SET.",
      willRetry: false,
    },
  ])
  expect(dataOf(events, 'permission')).toMatchObject([
    { name: 'mcp__files__say', decision: 'allow', rule: 'mcp__files__*' },
    { name: 'mcp__other__say', decision: 'deny' },
  ])
  const results = dataOf(events, 'tool_result')
  expect(results.filter(({ isError }) => isError === true)).toHaveLength(1)
  // The server had the secret; the log of the run has it not.
  expect(results.find(({ isError }) => isError === false)?.['output']).toMatch(/^said hey with .* else$/)
  expect(JSON.stringify((await stub.requests()).at(-1)?.body)).toContain(`said hey with ${value} else`)
  expect(JSON.stringify(events)).not.toContain(value)
  const manifest = await system.api.call('GET', `/runs/${runId}/manifest`)
  expect(manifest).toMatchObject({
    mcpServers: { given: ['files', 'other', 'lost'], leftOut: [{ name: 'no name', reason: 'name' }] },
  })
})
