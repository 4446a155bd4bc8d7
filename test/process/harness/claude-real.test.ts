import { isLong } from '../../kit/forms.ts'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { HarnessReadiness } from '../../../device-manager/harness/adapter.ts'
import { detectClaude } from '../../../device-manager/harness/claude/detect.ts'
import { harnessProbe } from '../../../device-manager/harness/probe.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { killTheDecider } from '../../kit/killed-decider.ts'
import { claudeMachine, driveClaude } from '../../kit/real-claude.ts'
import { fetchHarness, servedBy, type DriveOptions, type Fetched, type HarnessMachine } from '../../kit/real-harness.ts'
import { startStubLlm } from '../../kit/stub-llm.ts'
import type { StubLlm, StubStep } from '../../kit/stub-llm.ts'

// Drives the real Claude Code over real pipes; only the model's server is scripted. In the short form recordings
// stand for most of it, and harness-all.test.ts shows its runs, its session and its MCP servers.

let found: Fetched
let stub: StubLlm
let machine: HarnessMachine
let readiness: HarnessReadiness
const machines: HarnessMachine[] = []

function newMachine(options: { apiKey: string | null; oauthToken?: string }): HarnessMachine {
  const binDir = 'binDir' in found ? found.binDir : ''
  const made = claudeMachine({ binDir, baseUrl: `${stub.url}/s/run`, ...options })
  machines.push(made)
  return made
}
const detect = (on: HarnessMachine) => detectClaude(harnessProbe({ env: on.env, homeDir: on.home }))
const drive = (options: Partial<DriveOptions> = {}) =>
  driveClaude({ machine, version: readiness.version ?? '', ...options })
const script = (...steps: StubStep[]) => stub.script({ run: { steps } })

type EventData<K extends RunEventBody['kind']> = Extract<RunEventBody, { kind: K }>['data']
function dataOf<K extends RunEventBody['kind']>(events: readonly RunEventBody[], kind: K): EventData<K>[] {
  return events.filter((event) => event.kind === kind).map(({ data }) => data as EventData<K>)
}
const saidOf = (events: readonly RunEventBody[], kind: 'text' | 'thinking') =>
  dataOf(events, kind)
    .map(({ text }) => text)
    .join('')
const writeFile: StubStep = { text: 'I write it.', tool: { kind: 'write', path: 'made.txt', content: 'by claude\n' } }

beforeAll(async () => {
  found = fetchHarness('claude')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
  machine = newMachine({ apiKey: 'dummy' })
  readiness = await detect(machine)
})
beforeEach((context) => {
  if ('missing' in found) context.skip(found.missing)
})
afterEach(async () => {
  for (const made of machines.splice(1)) await made.remove()
})
afterAll(async () => {
  for (const made of machines) await made.remove()
  await stub?.stop()
})

describe('claude is found', () => {
  it('with its version, signed in by a key', () => {
    expect(readiness).toEqual({ installed: true, version: '2.1.329', signedIn: true, message: null })
  })

  it('not signed in without one', async () => {
    const stranger = newMachine({ apiKey: null })
    expect(await detect(stranger)).toMatchObject({
      installed: true,
      signedIn: false,
      message: expect.stringContaining('not signed in'),
    })
  })
})

it('tells what the model says while the model says it, and once', async () => {
  const text = 'One letter after the other, and no word of it twice.'
  await script({ thinking: 'Slowly, then.', text, chunkDelayMs: 30 })
  const run = drive()
  await run.done
  expect(saidOf(run.events, 'thinking')).toBe('Slowly, then.')
  expect(saidOf(run.events, 'text')).toBe(text)
  expect(dataOf(run.events, 'text').length).toBeGreaterThan(2)
})

// Recordings show the rest of it in the short form.
if (isLong) {
  describe('a run', () => {
    it('says its words, calls its tool, ends with its result, usage and session', async () => {
      await script(
        { thinking: 'A file, then.', ...writeFile, usage: { input: 300, output: 30, cacheRead: 7 } },
        { text: 'The file is there.', usage: { input: 400, output: 40 } },
      )
      const run = drive({
        spec: {
          agentMd: 'You are Ada of the harbour.',
          prompt: 'Make the file.',
          model: 'claude-opus-5-5',
          reasoningEffort: 'minimal',
          speed: 'fast',
        },
      })
      const { outcome, exitCode } = await run.done
      expect(outcome).toMatchObject({ exitReason: 'completed', message: null, resumeRefused: false })
      expect(exitCode).toBe(0)
      expect(readFileSync(join(machine.cwd, 'made.txt'), 'utf8')).toBe('by claude\n')
      expect(dataOf(run.events, 'session')).toEqual([{ sessionId: outcome.sessionId, model: 'claude-opus-5-5' }])
      expect(saidOf(run.events, 'thinking')).toBe('A file, then.')
      expect(saidOf(run.events, 'text')).toBe('I write it.The file is there.')
      const [call] = dataOf(run.events, 'tool_call')
      expect(call).toMatchObject({ name: 'Write' })
      expect(dataOf(run.events, 'tool_result')).toMatchObject([{ toolCallId: call?.toolCallId, isError: false }])
      expect(run.asks).toMatchObject([
        { toolCallId: call?.toolCallId, name: 'Write', input: { content: 'by claude\n' } },
      ])
      expect(dataOf(run.events, 'usage').at(-1)).toMatchObject({
        inputTokens: 700,
        outputTokens: 70,
        cacheReadTokens: 7,
      })
      expect(run.events.at(-1)).toEqual({ kind: 'result', data: { text: 'The file is there.', isError: false } })
      const [request] = await stub.requests()
      expect(JSON.stringify(request?.body['system'])).toContain('You are Ada of the harbour.')
      expect(JSON.stringify(request?.body['messages'])).toContain('Make the file.')
      expect(request?.body).toMatchObject({ speed: 'fast', output_config: { effort: 'low' } })
    })

    it('goes on with its session in a later process, counts only itself, reads the new AGENT.md and has the new MCP servers asked', async () => {
      await script({ text: 'My name is Ada.' })
      const first = await drive({ spec: { prompt: 'Who are you?', agentMd: 'You are Ada.' } }).done
      const says = (text: string) => ({ name: 'mcp__files__say', input: { text } })
      // The person's own, one of them with the name of one of the workspace's.
      const settings = join(machine.home, '.claude', '.claude.json')
      const theirs = { files: { command: 'false' }, own: { ...servedBy('HOME')['files'] } }
      writeFileSync(
        settings,
        JSON.stringify({ ...(JSON.parse(readFileSync(settings, 'utf8')) as object), mcpServers: theirs }),
      )
      const ofOwn = { ...says('yes'), name: 'mcp__own__say' }
      await script({ tools: [says('yes'), says('no'), ofOwn] }, { text: 'As I said.' })
      const run = drive({
        machine: { ...machine, env: { ...machine.env, WORD: 'a ${HOME} word' } },
        spec: {
          prompt: 'Once more?',
          agentMd: 'You are Ada the second.',
          resumeSessionId: first.outcome.sessionId,
          mcpServers: servedBy('WORD'),
        },
        decide: ({ input }) =>
          isDeepStrictEqual(input, { text: 'yes' })
            ? { behavior: 'allow', rule: null }
            : { behavior: 'deny', message: 'No.' },
      })
      const { outcome } = await run.done
      expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: first.outcome.sessionId })
      expect(dataOf(run.events, 'session')).toMatchObject([{ sessionId: first.outcome.sessionId, resumed: true }])
      expect(dataOf(run.events, 'usage').at(-1)).toMatchObject({ inputTokens: 200, outputTokens: 40 })
      const [request] = await stub.requests()
      expect(run.asks.map(({ name }) => name).toSorted()).toEqual([
        'mcp__files__say',
        'mcp__files__say',
        'mcp__own__say',
      ])
      const said = dataOf(run.events, 'tool_result').map(({ isError, output }) => (isError ? 'refused' : output))
      const expected = ['said yes with a ${HOME} word else', `said yes with ${machine.home} else`, 'refused']
      expect(said.toSorted()).toEqual(expected.toSorted())
      expect(JSON.stringify(request?.body['tools'])).toContain('mcp__files__say')
      const messages = JSON.stringify(request?.body['messages'])
      expect(messages).toContain('Who are you?')
      expect(messages).toContain('My name is Ada.')
      expect(JSON.stringify(request?.body['system'])).toContain('You are Ada the second.')
    })

    it('makes its session smaller when told to without a terminal, and goes on with what is left', async () => {
      await script({ text: 'My word is heron.' })
      const first = await drive({ spec: { prompt: 'Say a word.' } }).done
      await script({ text: '<summary>A bird was named.</summary>' })
      const compaction = drive({ spec: { prompt: '/compact', resumeSessionId: first.outcome.sessionId } })
      const { outcome } = await compaction.done
      expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: first.outcome.sessionId })
      expect(compaction.asks).toEqual([])
      expect(dataOf(compaction.events, 'result')).toMatchObject([{ text: '', isError: false }])
      expect(dataOf(compaction.events, 'usage').at(-1)?.costUsd).toMatch(/^0\.\d+$/)

      await script({ text: 'Yes.' })
      await drive({ spec: { prompt: 'Go on.', resumeSessionId: outcome.sessionId } }).done
      const asked = JSON.stringify((await stub.requests())[0]?.body['messages'])
      expect(asked).toContain('A bird was named.')
      expect(asked).not.toContain('heron')
    })

    it('sends the effort that was asked for, and stops at the limit of turns', async () => {
      await stub.script({ run: { loop: true, steps: [{ tool: { kind: 'shell', command: 'echo again' } }] } })
      const run = drive({ spec: { reasoningEffort: 'minimal', maxTurns: 2, backupModel: 'claude-haiku-4-5' } })
      expect((await run.done).outcome).toMatchObject({ exitReason: 'budget_exceeded' })
      const [request] = await stub.requests()
      expect(request?.body['output_config']).toMatchObject({ effort: 'low' })
      expect(dataOf(run.events, 'tool_result')).toHaveLength(2)
    })

    it('asks for the speed that was chosen', async () => {
      for (const speed of ['fast', 'standard', null] as const) {
        await script({ text: 'Done.' })
        const run = drive({ spec: { model: 'claude-opus-5-5', speed } })
        expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
        const [request] = await stub.requests()
        expect([speed, request?.body['speed']]).toEqual([speed, speed === 'fast' ? 'fast' : undefined])
      }
    })

    it('says so when the session to resume is not there', async () => {
      const run = drive({ spec: { resumeSessionId: '00000000-0000-4000-8000-000000000000' } })
      expect((await run.done).outcome).toMatchObject({
        resumeRefused: true,
        exitReason: 'harness_start_failed',
        sessionId: null,
      })
    })

    it('takes a word from a person in the middle of a tool call', async () => {
      const waitForGo = 'while [ ! -e go ]; do sleep 0.05; done; cat go'
      await script({ tool: { kind: 'shell', command: waitForGo } }, { text: 'Heard.' })
      const run = drive()
      await run.event(({ kind }) => kind === 'tool_call')
      run.input('Also mind the gap.')
      writeFileSync(join(machine.cwd, 'go'), 'now')
      expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
      const requests = await stub.requests()
      expect(JSON.stringify(requests.at(-1)?.body['messages'])).toContain('Also mind the gap.')
    })

    it('asks about the calls of a slash command that waited for the end of the turn', async () => {
      const waitForGo = 'while [ ! -e begin ]; do sleep 0.05; done'
      await script(
        { tool: { kind: 'shell', command: waitForGo } },
        { text: 'Waited.' },
        { tool: { kind: 'write', path: 'after.txt', content: 'by a command\n' } },
        { text: 'Written.' },
      )
      const run = drive()
      await run.event(({ kind }) => kind === 'tool_call')
      run.input('/etc/hosts is to be left alone.')
      writeFileSync(join(machine.cwd, 'begin'), 'now')
      expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
      expect(run.asks).toHaveLength(2)
      expect(readFileSync(join(machine.cwd, 'after.txt'), 'utf8')).toBe('by a command\n')
    })
  })
}

// In the short form a careless person's calls are asked in a hostile repository.
if (isLong) {
  describe('a tool call', () => {
    it('that is denied is not made, also one that only reads, and the model reads why', async () => {
      writeFileSync(join(machine.cwd, 'secret.txt'), 'the secret')
      const reading = { name: 'Read', input: { file_path: join(machine.cwd, 'secret.txt') } }
      const writing = { kind: 'write', path: 'forbidden.txt', content: 'x' } as const
      await script({ tool: writing }, { tool: reading }, { text: 'Then not.' })
      const run = drive({ decide: () => ({ behavior: 'deny', message: 'Not on the list of this agent.' }) })
      expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
      expect(run.asks).toMatchObject([{ name: 'Write' }, { name: 'Read' }])
      expect(existsSync(join(machine.cwd, 'forbidden.txt'))).toBe(false)
      const refused = { isError: true, output: expect.stringContaining('Not on the list') }
      expect(dataOf(run.events, 'tool_result')).toMatchObject([refused, refused])
      const messages = JSON.stringify((await stub.requests()).at(-1)?.body['messages'])
      expect(messages).toContain('Not on the list of this agent.')
      expect(messages).not.toContain('the secret')
    })

    it('of any tool that claude offers is asked', async () => {
      writeFileSync(join(machine.cwd, 'a.txt'), 'here\n')
      const file = (name: string) => ({ file_path: join(machine.cwd, name) })
      const inputs: Record<string, Record<string, unknown>> = {
        Agent: { description: 'Look', prompt: 'Look.', subagent_type: 'general-purpose' },
        Bash: { command: 'true' },
        Edit: { ...file('a.txt'), old_string: 'here', new_string: 'there' },
        ListAgents: {},
        Read: file('a.txt'),
        ToolSearch: { query: 'select:Bash', max_results: 1 },
        Write: { ...file('b.txt'), content: '' },
      }
      await script({ text: 'Nothing to do.' })
      await drive().done
      const offered = (await stub.requests())[0]?.body['tools'] as { name: string }[]
      const made: string[] = []
      for (const { name } of offered) {
        await script({ tool: { name, input: inputs[name] ?? {} } }, { text: 'Looked.' }, { text: 'Done.' })
        const run = drive()
        expect((await run.done).outcome, name).toMatchObject({ exitReason: 'completed' })
        const [result] = dataOf(run.events, 'tool_result')
        if (result?.isError !== false) continue
        made.push(name)
        expect(run.asks).toMatchObject([{ name, toolCallId: result.toolCallId }])
      }
      expect(made).toEqual(expect.arrayContaining(['Bash', 'Edit', 'Read', 'Write']))
    })

    it.each<[string, object]>([
      ['hooks are disabled and the tool is allowed', { disableAllHooks: true, permissions: { allow: ['Bash'] } }],
      ['permissions are bypassed', { permissions: { defaultMode: 'bypassPermissions' } }],
    ])("is asked also where the person's settings say that %s", async (_, settings) => {
      const careless = newMachine({ apiKey: 'dummy' })
      mkdirSync(join(careless.home, '.claude'))
      writeFileSync(join(careless.home, '.claude', 'settings.json'), JSON.stringify(settings))
      await script({ tool: { kind: 'shell', command: 'echo made > forbidden.txt' } }, { text: 'Then not.' })
      const run = drive({ machine: careless, decide: () => ({ behavior: 'deny', message: 'No.' }) })
      await run.done
      expect(run.asks).toMatchObject([{ name: 'Bash' }])
      expect(existsSync(join(careless.cwd, 'forbidden.txt'))).toBe(false)
    })

    it("is asked once although the person's settings want to ask too", async () => {
      const careful = newMachine({ apiKey: 'dummy' })
      mkdirSync(join(careful.home, '.claude'))
      writeFileSync(join(careful.home, '.claude', 'settings.json'), JSON.stringify({ permissions: { ask: ['Bash'] } }))
      await script({ tool: { kind: 'shell', command: 'echo made > asked.txt' } }, { text: 'Done.' })
      const run = drive({ machine: careful })
      await run.done
      expect(run.asks).toHaveLength(1)
      expect(readFileSync(join(careful.cwd, 'asked.txt'), 'utf8')).toBe('made\n')
    })
  })
}

describe('a hostile repository', () => {
  type Hostile = [string, 'strict' | 'full', string[]]
  const unrestricted: Hostile = ['has its say where nobody restricts anything', 'full', ['start', 'helper', 'server']]
  const rows: Hostile[] = [
    ['starts nothing where lists have a say, and its CLAUDE.md is read', 'strict', []],
    ...(isLong ? [unrestricted] : []),
  ]
  it.each<Hostile>(rows)('%s', async (_, defaultMode, started) => {
    const hostile = newMachine({ apiKey: 'dummy' })
    const { cwd } = hostile
    const makes = (name: string) => `touch '${join(cwd, name)}'`
    const hook = [{ hooks: [{ type: 'command', command: makes('start') }] }]
    const settings = { hooks: { SessionStart: hook, PreToolUse: hook }, apiKeyHelper: `${makes('helper')}; echo k` }
    const servers = { mcpServers: { own: { command: '/bin/sh', args: ['-c', makes('server')] } } }
    mkdirSync(join(cwd, '.claude'))
    mkdirSync(join(cwd, '.git'))
    writeFileSync(join(cwd, '.claude/settings.json'), JSON.stringify(settings))
    writeFileSync(join(cwd, '.mcp.json'), JSON.stringify(servers))
    writeFileSync(join(cwd, 'CLAUDE.md'), 'The harbour has rules.')
    if (started.length === 0) {
      // A careless person, whose own settings would have no call asked.
      const careless = { disableAllHooks: true, permissions: { allow: ['Bash'], defaultMode: 'bypassPermissions' } }
      mkdirSync(join(hostile.home, '.claude'))
      writeFileSync(join(hostile.home, '.claude', 'settings.json'), JSON.stringify(careless))
    }
    await script({ tool: { kind: 'shell', command: 'echo made > forbidden.txt' } }, { text: 'Done.' })
    const permissions = { allow: ['Bash'], ask: [], deny: [], defaultMode }
    const decide = () => ({ behavior: 'deny', message: 'No.' }) as const
    const run = drive({ machine: hostile, spec: { permissions }, decide })
    expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
    expect(['start', 'helper', 'server'].filter((name) => existsSync(join(cwd, name)))).toEqual(started)
    expect(JSON.stringify((await stub.requests())[0]?.body)).toContain('The harbour has rules.')
    if (started.length > 0) return
    expect(run.asks).toMatchObject([{ name: 'Bash' }])
    expect(existsSync(join(cwd, 'forbidden.txt'))).toBe(false)
  })
})

// In the short form codex-real.test.ts shows it.
if (isLong)
  it('a call that waits when the process that decides is killed is never made, and claude ends', async () => {
    await script({ tool: { kind: 'shell', command: 'echo made > unanswered.txt' } }, { text: 'Then not.' })
    await killTheDecider(machine, { version: readiness.version ?? '', spec: { harness: 'claude' } })
    expect(existsSync(join(machine.cwd, 'unanswered.txt'))).toBe(false)
  })

if (isLong) {
  describe('told to stop with a refusal', () => {
    it('it asks about all calls of the turn, ends by itself, asks the model no more, and its session can be gone on with', async () => {
      const stop = () => ({ behavior: 'deny', message: 'A person is asked.', stop: true }) as const
      const writing = { kind: 'write', path: 'asked.txt', content: 'x' } as const
      const shells = ['one', 'two'].map((name) => ({ kind: 'shell', command: `echo ${name} > ${name}.txt` }) as const)
      await script(
        { tools: [writing, ...shells] },
        { text: 'I go on all the same.', tool: { kind: 'shell', command: 'echo no > no.txt' } },
      )
      const run = drive({ decide: stop })
      const { outcome } = await run.done
      expect(run.asks).toHaveLength(3)
      expect(await stub.requests()).toHaveLength(1)
      const isThere = (name: string) => existsSync(join(machine.cwd, `${name}.txt`))
      expect(['asked', 'one', 'two', 'no'].filter(isThere)).toEqual([])

      await script({ tool: writing }, { text: 'Written.' })
      const again = drive({ spec: { prompt: 'It was approved.', resumeSessionId: outcome.sessionId } })
      expect((await again.done).outcome).toMatchObject({ exitReason: 'completed', sessionId: outcome.sessionId })
      expect(again.asks[0]).toMatchObject({ name: run.asks[0]!.name, input: run.asks[0]!.input })
      expect(readFileSync(join(machine.cwd, 'asked.txt'), 'utf8')).toBe('x')
      expect(JSON.stringify((await stub.requests())[0]?.body['messages'])).toContain('A person is asked.')
    })
  })
}

if (isLong) {
  describe('trouble', () => {
    it('with a used-up allowance says when it begins anew', async () => {
      const resetsAt = Math.floor(Date.now() / 1000) + 3_600
      const headers = {
        'anthropic-ratelimit-unified-status': 'rejected',
        'anthropic-ratelimit-unified-reset': String(resetsAt),
        'anthropic-ratelimit-unified-representative-claim': 'five_hour',
        'anthropic-ratelimit-unified-5h-utilization': '1',
        'anthropic-ratelimit-unified-5h-reset': String(resetsAt),
        'anthropic-ratelimit-unified-7d-utilization': '0.31',
        'anthropic-ratelimit-unified-7d-reset': String(resetsAt + 86_400),
      }
      await stub.script({ run: { loop: true, steps: [{ error: { status: 429, headers } }] } })
      const subscriber = newMachine({ apiKey: null, oauthToken: 'dummy' })
      expect((await drive({ machine: subscriber }).done).outcome).toMatchObject({
        exitReason: 'rate_limited',
        limitResetsAt: resetsAt * 1000,
        limitsUsed: [
          { windowMinutes: 300, models: null, usedPercent: 100, resetsAt: resetsAt * 1000 },
          { windowMinutes: 10_080, models: null, usedPercent: 31, resetsAt: (resetsAt + 86_400) * 1000 },
        ],
      })
    })

    it('with a rate limit ends as that, after retries that are told', async () => {
      await stub.script({ run: { loop: true, steps: [{ error: { status: 429 } }] } })
      const run = drive()
      const { outcome, exitCode } = await run.done
      expect(outcome).toMatchObject({ exitReason: 'rate_limited', message: expect.stringContaining('429') })
      expect(exitCode).toBe(1)
      expect(dataOf(run.events, 'error').map((error) => [error.httpStatus, error.willRetry])).toEqual([
        [429, true],
        [429, true],
        [429, true],
        [429, false],
      ])
    })

    it('without a sign-in is a failed start, with a hint, and asks no server', async () => {
      await script({ text: 'unreachable' })
      const run = drive({ machine: newMachine({ apiKey: null }) })
      expect((await run.done).outcome).toMatchObject({
        exitReason: 'harness_start_failed',
        message: expect.stringContaining('not signed in; run `claude` once'),
      })
      expect(await stub.requests()).toEqual([])
    })

    it('of being interrupted while the model thinks ends at once and keeps the session', async () => {
      await script({ hang: true })
      const run = drive()
      const session = await run.event(({ kind }) => kind === 'session')
      // It names its session before it asks the model; only then is there a turn to interrupt.
      await expect.poll(async () => (await stub.requests()).length).toBeGreaterThan(0)
      run.signal('SIGINT')
      const { outcome } = await run.done
      // Interrupted early in its turn the program leaves with status 0 and sometimes without the result it else gives.
      expect(outcome.exitReason).toBe('error')
      expect(outcome.message).toMatch(/was interrupted from outside|exited with status 0 without a result/)
      expect(session).toMatchObject({ data: { sessionId: outcome.sessionId } })
    })

    it('of being killed in a tool call is no success', async () => {
      await script({ tool: { kind: 'shell', command: 'tail -f /dev/null' } })
      const run = drive()
      await run.event(({ kind }) => kind === 'tool_call')
      run.signal('SIGTERM')
      const { outcome } = await run.done
      expect(outcome.exitReason).toBe('error')
      expect(outcome.message).toMatch(/without a result/)
      expect(dataOf(run.events, 'result')).toEqual([])
    })
  })
}
