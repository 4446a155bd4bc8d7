import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { killTheDecider } from '../../kit/killed-decider.ts'
import { acpMachine, driveAcp, qwenCommand, qwenShell } from '../../kit/real-acp.ts'
import { fetchHarness, fileOf, servedBy, type Fetched, type HarnessMachine } from '../../kit/real-harness.ts'
import { startStubLlm, type StubLlm, type StubStep } from '../../kit/stub-llm.ts'

// Drives the real Qwen Code by the Agent Client Protocol as a run host does; only the model's server is scripted.

let found: Fetched
let stub: StubLlm
let machine: HarnessMachine

type Options = Partial<Parameters<typeof driveAcp>[0]>
const drive = ({ spec, ...options }: Options = {}) => {
  const command = qwenCommand(`${stub.url}/s/run`)
  return driveAcp({ machine, ...options, spec: { harness: 'command', protocol: 'acp', command, ...spec } })
}
const script = (...steps: StubStep[]) => stub.script({ run: { steps } })
const shell = (command: string): StubStep => ({ tool: qwenShell(command) })
const no = { behavior: 'deny', message: 'No.' } as const

function dataOf(events: readonly RunEventBody[], kind: RunEventBody['kind']) {
  return events.filter((event) => event.kind === kind).map(({ data }) => data as Record<string, unknown>)
}

beforeAll(async () => {
  found = fetchHarness('qwen')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: a real program that speaks ACP is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
})
beforeEach((context) => {
  if ('missing' in found) return context.skip(found.missing)
  machine = acpMachine(found.binDir)
})
afterEach(async () => {
  await machine?.remove()
})
afterAll(async () => {
  await stub?.stop()
})

it('says its words, has its calls judged, goes on with its session and new MCP servers, and takes what a person adds', async () => {
  const refused = { tool: qwenShell('touch refused.txt') }
  await script({ text: 'I write it.', ...shell('echo made > made.txt') }, refused, { text: 'The file is there.' })
  const run = drive({
    spec: { agentMd: 'You are Ada of the harbour.', prompt: 'Make the file.' },
    decide: ({ input }) => (JSON.stringify(input).includes('refused') ? no : { behavior: 'allow', rule: null }),
  })
  const { outcome } = await run.done
  expect(outcome).toMatchObject({ exitReason: 'completed', message: null, resumeRefused: false })
  expect(readFileSync(join(machine.cwd, 'made.txt'), 'utf8')).toBe('made\n')
  expect(existsSync(join(machine.cwd, 'refused.txt'))).toBe(false)
  expect(dataOf(run.events, 'session')).toEqual([{ sessionId: outcome.sessionId }])
  expect(run.asks.map(({ name, input }) => [name, (input as { command: string }).command])).toEqual([
    ['Bash', 'echo made > made.txt'],
    ['Bash', 'touch refused.txt'],
  ])
  expect(dataOf(run.events, 'tool_call').map(({ toolCallId }) => toolCallId)).toEqual(
    run.asks.map(({ toolCallId }) => toolCallId),
  )
  expect(dataOf(run.events, 'tool_result').map(({ isError }) => isError)).toEqual([false, true])
  const told = JSON.stringify((await stub.requests())[0]?.body)
  expect(told).toContain('You are Ada of the harbour.')

  const says = { tool: { name: 'mcp__files__say', input: { text: 'yes' } } }
  // Qwen Code connects to servers while its turn goes on.
  const notYet = { when: 'not found in registry', ...says }
  await stub.script({ run: { rules: [notYet], steps: [says, { text: 'I remember.' }, { text: 'I was told.' }] } })
  const mcpServers = servedBy('HOME')
  const next = drive({ spec: { resumeSessionId: outcome.sessionId, prompt: 'Do you remember?', mcpServers } })
  next.input('Also mind the gap.')
  expect((await next.done).outcome).toMatchObject({ exitReason: 'completed', sessionId: outcome.sessionId })
  expect(dataOf(next.events, 'session')).toEqual([{ sessionId: outcome.sessionId, resumed: true }])
  expect(next.asks).toMatchObject([{ name: 'mcp__files__say', input: { text: 'yes' } }])
  expect(dataOf(next.events, 'tool_result').filter(({ isError }) => isError === false)).toMatchObject([
    { output: `said yes with ${machine.home} else` },
  ])
  const bodies = (await stub.requests()).map(({ body }) => JSON.stringify(body))
  expect(bodies.some((body) => body.includes('Make the file.') && body.includes('Do you remember?'))).toBe(true)
  expect(bodies.some((body) => body.includes('Also mind the gap.'))).toBe(true)
})

it('says so when its session is not there', async () => {
  await script({ text: 'Not reached.' })
  const resumeSessionId = '7da7ae45-0000-4000-8000-000000000000'
  const { outcome } = await drive({ spec: { resumeSessionId } }).done
  expect(outcome).toMatchObject({ exitReason: 'harness_start_failed', resumeRefused: true, sessionId: null })
})

it('a call that waits when the process that decides is killed is never made, and the program ends', async () => {
  await script(shell('touch unanswered.txt'), { text: 'Then not.' })
  const spec = { harness: 'command', protocol: 'acp', command: qwenCommand(`${stub.url}/s/run`) } as const
  await killTheDecider(machine, { version: '1', spec })
  expect(existsSync(join(machine.cwd, 'unanswered.txt'))).toBe(false)
})

describe('is no success', () => {
  it('with a refused key', async () => {
    await stub.script({ run: { loop: true, steps: [{ error: { status: 401, message: 'no such key' } }] } })
    const { outcome } = await drive().done
    expect(outcome.exitReason).toBe('harness_start_failed')
    expect(outcome.message).toMatch(/401|no such key/)
  })

  it('when it is killed in a tool call', async () => {
    await script(shell('touch begun; tail -f /dev/null'), { text: 'Not reached.' })
    const run = drive()
    await fileOf(run, join(machine.cwd, 'begun'))
    run.signal('SIGKILL')
    expect((await run.done).outcome).toMatchObject({ exitReason: 'error' })
  })
})
