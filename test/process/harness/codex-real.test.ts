import { isLong } from '../../kit/forms.ts'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import Database from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { codexFirstStart } from '../../../device-manager/harness/codex/first-start.ts'
import { firstStartFolder, FirstStarts } from '../../../device-manager/harness/first-start.ts'
import { detectCodex } from '../../../device-manager/harness/codex/detect.ts'
import { harnessProbe } from '../../../device-manager/harness/probe.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { killTheDecider } from '../../kit/killed-decider.ts'
import { codexMachine, driveCodex } from '../../kit/real-codex.ts'
import { fetchHarness, servedBy, type DriveOptions, type Fetched, type HarnessMachine } from '../../kit/real-harness.ts'
import { startStubLlm, type StubLlm, type StubStep } from '../../kit/stub-llm.ts'
import { expectWordsOnce } from '../../kit/words-told-once.ts'

// Drives the real codex over real pipes; only the model's server is scripted. In the short form recordings stand for
// most of it, and harness-all.test.ts shows its runs, its session and its first start.

let found: Fetched
let stub: StubLlm
let machine: HarnessMachine
const machines: HarnessMachine[] = []

function newMachine(): HarnessMachine {
  const binDir = 'binDir' in found ? found.binDir : ''
  const made = codexMachine({ binDir, baseUrl: `${stub.url}/s/run` })
  machines.push(made)
  return made
}
const drive = (options: Partial<DriveOptions> = {}) => driveCodex({ machine, version: '0.169.0', ...options })
const script = (...steps: StubStep[]) => stub.script({ run: { steps } })

type EventData<K extends RunEventBody['kind']> = Extract<RunEventBody, { kind: K }>['data']
function dataOf<K extends RunEventBody['kind']>(events: readonly RunEventBody[], kind: K): EventData<K>[] {
  return events.filter((event) => event.kind === kind).map(({ data }) => data as EventData<K>)
}
const saidOf = (events: readonly RunEventBody[]) => dataOf(events, 'text').map(({ text }) => text)
const shell = (command: string): StubStep => ({ tool: { kind: 'shell', command } })
/** A model that codex gives its tool for patches. */
const patching = 'gpt-5.5'

beforeAll(async () => {
  found = fetchHarness('codex')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real codex is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
  machine = newMachine()
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

describe('codex is found', () => {
  const detect = (on: HarnessMachine) => detectCodex(harnessProbe({ env: on.env, homeDir: on.home }))

  it('with its version; whether a provider of the person has its key, nobody can tell', async () => {
    expect(await detect(machine)).toEqual({ installed: true, version: '0.169.0', signedIn: null, message: null })
  })

  it('not signed in, and signed in by a key', async () => {
    const plain = newMachine()
    writeFileSync(join(plain.home, '.codex', 'config.toml'), '')
    expect(await detect(plain)).toMatchObject({ signedIn: false, message: expect.stringContaining('codex login') })
    const auth = { auth_mode: 'apikey', OPENAI_API_KEY: 'sk-x' }
    writeFileSync(join(plain.home, '.codex', 'auth.json'), JSON.stringify(auth))
    expect(await detect(plain)).toMatchObject({ signedIn: true, message: null })
  })
})

it('tells what the model says while the model says it, and once, also where the program is killed in the middle', () =>
  expectWordsOnce(drive, script))

if (isLong) {
  describe('a run', () => {
    it('says its words, calls its tool, ends with its result, usage and session', async () => {
      await script(
        {
          thinking: 'A file, then.',
          text: 'I write it.',
          ...shell('echo made > made.txt; cat made.txt'),
          usage: { input: 300, output: 30, cacheRead: 7 },
        },
        { text: 'The file is there.', usage: { input: 400, output: 40 } },
      )
      const run = drive({
        // It needs as many turns as it may have.
        spec: {
          agentMd: 'You are Ada of the harbour.',
          prompt: 'Make the file.',
          reasoningEffort: 'high',
          maxTurns: 2,
        },
      })
      const { outcome, exitCode } = await run.done
      expect(outcome).toMatchObject({ exitReason: 'completed', message: null, resumeRefused: false })
      expect(exitCode).toBe(0)
      expect(readFileSync(join(machine.cwd, 'made.txt'), 'utf8')).toBe('made\n')
      expect(dataOf(run.events, 'session')).toEqual([{ sessionId: outcome.sessionId, model: 'stub-model' }])
      expect(dataOf(run.events, 'thinking')).toEqual([{ text: 'A file, then.' }])
      expect(saidOf(run.events).join('')).toBe('I write it.The file is there.')
      const [call] = dataOf(run.events, 'tool_call')
      expect(call).toMatchObject({ name: 'Bash', input: { command: 'echo made > made.txt; cat made.txt' } })
      expect(dataOf(run.events, 'tool_result')).toEqual([
        { toolCallId: call?.toolCallId, isError: false, output: 'made\n' },
      ])
      expect(run.asks).toMatchObject([
        { toolCallId: call?.toolCallId, name: 'Bash', input: call?.input, cwd: machine.cwd },
      ])
      expect(dataOf(run.events, 'usage').at(-1)).toMatchObject({
        inputTokens: 693,
        outputTokens: 70,
        cacheReadTokens: 7,
      })
      expect(run.events.at(-1)).toEqual({ kind: 'result', data: { text: 'The file is there.', isError: false } })
      const [request] = await stub.requests()
      expect(JSON.stringify(request?.body)).toContain('You are Ada of the harbour.')
      expect(JSON.stringify(request?.body['input'])).toContain('Make the file.')
      expect(request?.body['reasoning']).toMatchObject({ effort: 'high' })
    })

    it('goes on with its session in a later process, counts only itself, and has the new MCP servers asked', async () => {
      const machine = newMachine()
      await script({ text: 'My name is Ada.' })
      const first = await drive({ machine, spec: { prompt: 'Who are you?' } }).done
      const says = (text: string) => ({ name: 'say', namespace: 'mcp__files', input: { text } })
      // The person's own, which codex would not ask about.
      const program = `command = "${process.execPath}"\nargs = ["${join(import.meta.dirname, '../../kit/mcp-server.mjs')}"]`
      const own = `[mcp_servers.own]\n${program}\n[mcp_servers.own.tools.say]\napproval_mode = "approve"\n`
      appendFileSync(join(machine.home, '.codex', 'config.toml'), own)
      const ofOwn = { ...says('theirs'), namespace: 'mcp__own' }
      await script({ tools: [says('yes'), says('no'), ofOwn] }, { text: 'As I said.' })
      const served = servedBy('OPENAI_API_KEY')
      const mcpServers = { ...served, own: served['files']! }
      const run = drive({
        machine,
        spec: { prompt: 'Once more?', resumeSessionId: first.outcome.sessionId, mcpServers },
        decide: ({ input }) =>
          isDeepStrictEqual(input, { text: 'yes' })
            ? { behavior: 'allow', rule: null }
            : { behavior: 'deny', message: 'No.' },
      })
      const { outcome } = await run.done
      expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: first.outcome.sessionId })
      expect(dataOf(run.events, 'session')).toMatchObject([{ sessionId: first.outcome.sessionId, resumed: true }])
      expect(dataOf(run.events, 'usage').at(-1)).toMatchObject({ inputTokens: 200, outputTokens: 40 })
      expect(run.asks.map(({ name }) => name).toSorted()).toEqual([
        'mcp__files__say',
        'mcp__files__say',
        'mcp__own__say',
      ])
      expect(dataOf(run.events, 'error')).toMatchObject([{ class: 'mcp_server_left_out' }])
      expect(
        dataOf(run.events, 'tool_result')
          .map(({ output }) => output)
          .toSorted(),
      ).toEqual(['said yes with dummy else', 'user rejected MCP tool call', 'user rejected MCP tool call'])
      const said = JSON.stringify((await stub.requests())[0]?.body['input'])
      expect(said).toContain('Who are you?')
      expect(said).toContain('My name is Ada.')
    })

    it('begins with what a first start left: reads no session of the person, and goes on with the one that it is told', async () => {
      const stateDir = join(machine.home, 'state')
      const starts = new FirstStarts({
        stateDir,
        world: realWorld,
        log: { warn: (...said) => expect.unreachable(JSON.stringify(said)) },
        within: ({ home, env }, use) => use(harnessProbe({ env: { ...machine.env, ...env }, homeDir: home })),
      })
      await starts.keep({ codex: { version: '0.169.0' } })
      const firstStartDir = firstStartFolder(stateDir, {
        name: 'codex',
        version: '0.169.0',
        firstStart: codexFirstStart,
      })
      const kept = (database: string, table: string) => {
        const opened = new Database(join(firstStartDir, database), { readonly: true })
        onTestFinished(() => void opened.close())
        return opened.prepare(`SELECT count(*) FROM ${table}`).pluck().get()
      }
      expect([kept('state_5.sqlite', 'threads'), kept('thread_history_1.sqlite', 'thread_items')]).toEqual([0, 0])
      const theirs = join(machine.home, '.codex', 'sessions')
      await script({ text: 'One.' })
      const first = await drive({ spec: { prompt: 'Say one.' } }).done
      expect(readdirSync(theirs, { recursive: true, encoding: 'utf8' }).join(' ')).toContain(first.outcome.sessionId)
      const homes = () => readdirSync(machine.home).filter((name) => name.startsWith('run-'))
      const sessionsIn = async (options: Partial<DriveOptions>) => {
        const before = new Set(homes())
        const { outcome } = await drive(options).done
        expect(outcome.exitReason).toBe('completed')
        const [home] = homes().filter((name) => !before.has(name))
        const state = new Database(join(machine.home, home!, 'codex', 'state_5.sqlite'), { readonly: true })
        onTestFinished(() => void state.close())
        return { outcome, ids: state.prepare('SELECT id FROM threads').pluck().all() }
      }
      await script({ text: 'Two.' })
      const without = await sessionsIn({})
      expect(without.ids).toContain(first.outcome.sessionId)
      await script({ text: 'Three.' })
      const fresh = await sessionsIn({ firstStartDir })
      expect(fresh.ids).toEqual([fresh.outcome.sessionId])
      await script({ text: 'Four.' })
      const resumed = await sessionsIn({
        firstStartDir,
        spec: { prompt: 'And then?', resumeSessionId: first.outcome.sessionId },
      })
      expect(resumed.outcome).toMatchObject({ sessionId: first.outcome.sessionId, resumeRefused: false })
      const asked = (await stub.requests()).at(-1)
      expect(JSON.stringify(asked?.body)).toContain('Say one.')
    })

    it('takes a word from a person in the middle of a tool call', async () => {
      await script(
        shell('while [ ! -e go ]; do sleep 0.05; done; cat go'),
        { text: 'Heard.' },
        { text: 'Heard again.' },
      )
      const run = drive()
      await run.event(({ kind }) => kind === 'tool_call')
      run.input('Also mind the gap.')
      writeFileSync(join(machine.cwd, 'go'), 'now')
      expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
      expect(JSON.stringify((await stub.requests()).at(-1)?.body['input'])).toContain('Also mind the gap.')
    })

    it("finds the run's own svc first, and what the agent was given", async () => {
      const own = newMachine()
      const bin = join(own.home, 'bin')
      mkdirSync(bin)
      writeFileSync(join(bin, 'svc'), '#!/bin/sh\necho own svc\n', { mode: 0o755 })
      Object.assign(own.env, { PATH: `${bin}:${own.env['PATH']}`, SVC_TOKEN: 'the token', SOME_API_KEY: 'the key' })
      await script(shell('svc; echo "$SVC_TOKEN $SOME_API_KEY"'), { text: 'Done.' })
      const run = drive({ machine: own })
      await run.done
      expect(dataOf(run.events, 'tool_result')).toMatchObject([{ output: 'own svc\nthe token the key\n' }])
    })

    it('stops at the limit of turns', async () => {
      await stub.script({ run: { loop: true, steps: [shell('echo again')] } })
      const run = drive({ spec: { maxTurns: 2 } })
      const { outcome } = await run.done
      expect(outcome).toMatchObject({ exitReason: 'budget_exceeded', message: expect.stringContaining('(2)') })
      expect((await stub.requests()).length).toBeLessThanOrEqual(3)
    })

    it('says so when the session to resume is not there', async () => {
      const run = drive({ spec: { resumeSessionId: '01a1fb69-38c0-7651-abd0-d29a03519b99' } })
      expect((await run.done).outcome).toMatchObject({
        resumeRefused: true,
        exitReason: 'harness_start_failed',
        sessionId: null,
      })
    })
  })
}

describe('a tool call', () => {
  if (isLong) {
    it('that is denied is not made, also one that only reads, and the turn goes on', async () => {
      writeFileSync(join(machine.cwd, 'secret.txt'), 'the secret')
      await script(shell('echo x > forbidden.txt'), shell('cat secret.txt'), { text: 'Then not.' })
      const run = drive({ decide: () => ({ behavior: 'deny', message: 'No.' }) })
      expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
      expect(run.asks).toMatchObject([{ name: 'Bash' }, { name: 'Bash', input: { command: 'cat secret.txt' } }])
      expect(existsSync(join(machine.cwd, 'forbidden.txt'))).toBe(false)
      expect(dataOf(run.events, 'tool_result')).toMatchObject([{ isError: true }, { isError: true }])
      expect(dataOf(run.events, 'result')).toMatchObject([{ text: 'Then not.' }])
      expect(JSON.stringify((await stub.requests()).at(-1)?.body)).not.toContain('the secret')
    })
  }

  if (isLong) {
    it('that patches files is asked with the files, and denied as a whole when one of them is', async () => {
      const patch = (...files: string[]) => ['*** Begin Patch', ...files, '*** End Patch'].join('\n')
      const added = patch('*** Add File: new.txt', '+one')
      writeFileSync(join(machine.cwd, 'old.txt'), 'a\n')
      const both = patch('*** Add File: other.txt', '+x', '*** Update File: old.txt', '@@', '-a', '+b')
      await script(
        { tool: { name: 'apply_patch', input: added } },
        { tool: { name: 'apply_patch', input: both } },
        { text: 'Done.' },
      )
      const run = drive({
        spec: { model: patching },
        decide: ({ name }) =>
          name === 'Edit' ? { behavior: 'deny', message: 'No.' } : { behavior: 'allow', rule: null },
      })
      await run.done
      const at = (name: string) => join(machine.cwd, name)
      expect(run.asks).toMatchObject([
        { name: 'Write', input: { changes: [{ file_path: at('new.txt') }] } },
        { name: 'Write', input: { changes: [{ file_path: at('other.txt') }] } },
        { name: 'Edit', input: { changes: [{ file_path: at('old.txt') }] } },
      ])
      expect(readFileSync(at('new.txt'), 'utf8')).toBe('one\n')
      expect([existsSync(at('other.txt')), readFileSync(at('old.txt'), 'utf8')]).toEqual([false, 'a\n'])
    })
  }

  const deny = () => ({ behavior: 'deny', message: 'No.' }) as const
  const allowEcho = 'prefix_rule(pattern=["echo"], decision="allow")\n'

  type Rules = { isPersons: boolean; below: string | null }
  const each: [string, Rules][] = [
    ["the person's rules", { isPersons: true, below: null }],
    ['the rules of a repository that the person trusts, in its root,', { isPersons: false, below: '' }],
    ['the rules of a repository that the person trusts, in a folder in it,', { isPersons: false, below: 'deep/down' }],
  ]
  it.each<[string, Rules]>([
    ["the person's rules and those of a repository that they trust", { isPersons: true, below: 'deep/down' }],
    ...(isLong ? each : []),
  ])('is asked also where %s allow it', async (_, { isPersons, below }) => {
    const careless = newMachine()
    const root = careless.cwd
    const write = (folder: string) => {
      mkdirSync(join(folder, 'rules'), { recursive: true })
      writeFileSync(join(folder, 'rules', 'default.rules'), allowEcho)
    }
    if (isPersons) write(join(careless.home, '.codex'))
    if (below !== null) {
      for (const folder of ['.git', below]) mkdirSync(join(root, folder), { recursive: true })
      writeFileSync(join(root, '.git', 'HEAD'), 'ref: refs/heads/main\n')
      write(join(root, '.codex'))
      appendFileSync(join(careless.home, '.codex', 'config.toml'), `[projects."${root}"]\ntrust_level = "trusted"\n`)
    }
    const cwd = join(root, below ?? '')
    await script(shell('echo made > forbidden.txt'), shell('echo hi'), { text: 'Then not.' })
    const run = drive({ machine: { ...careless, cwd }, decide: deny })
    await run.done
    expect(run.asks).toMatchObject([{ name: 'Bash' }, { name: 'Bash', input: { command: 'echo hi' } }])
    expect(dataOf(run.events, 'tool_result')).toMatchObject([{ isError: true }, { isError: true }])
    expect(existsSync(join(cwd, 'forbidden.txt'))).toBe(false)
  })

  if (isLong) {
    it('that no list can judge is not offered, and one that reads a resource of an MCP server, which codex never asks about, ends the run unless a rule allows it', async () => {
      const read = { name: 'read_mcp_resource', input: { server: 'files', uri: 'x://y' } }
      const play = async (allow: string[]) => {
        const permissions = { allow, ask: [], deny: [], defaultMode: 'strict' as const }
        await script({ tools: [{ name: 'list_mcp_resources', input: {} }, read] }, { text: 'Read.' })
        return (await drive({ spec: { mcpServers: servedBy('HOME'), permissions } }).done).outcome
      }
      expect(await play([])).toMatchObject({
        exitReason: 'error',
        message: expect.stringContaining('`mcp__files__read_mcp_resource` in `allow`'),
      })
      expect(await play(['mcp__files__*'])).toMatchObject({ exitReason: 'completed' })
      const requests = await stub.requests()
      expect(requests).toHaveLength(2)
      const tools = JSON.stringify(requests[0]?.body['tools'])
      expect(tools).toContain('exec_command')
      for (const ungated of ['view_image', 'web_search', 'request_user_input']) expect(tools).not.toContain(ungated)
    })
  }
})

it('a call that waits when the process that decides is killed is never made, and codex ends', async () => {
  await script(shell('echo made > unanswered.txt'), { text: 'Then not.' })
  await killTheDecider(machine, { version: '0.169.0', spec: { harness: 'codex' } })
  expect(existsSync(join(machine.cwd, 'unanswered.txt'))).toBe(false)
})

if (isLong) {
  describe('told to stop with a refusal', () => {
    it('it ends by itself, asks the model no more, and its session can be gone on with', async () => {
      const stop = () => ({ behavior: 'deny', message: 'A person is asked.', stop: true }) as const
      await script(shell('echo x > asked.txt'), { text: 'I go on all the same.', ...shell('echo no > no.txt') })
      const run = drive({ decide: stop })
      const { outcome } = await run.done
      expect(run.asks).toHaveLength(1)
      expect(await stub.requests()).toHaveLength(1)
      expect(existsSync(join(machine.cwd, 'asked.txt'))).toBe(false)

      await script(shell('echo x > asked.txt'), { text: 'Written.' })
      const again = drive({ spec: { prompt: 'It was approved.', resumeSessionId: outcome.sessionId } })
      expect((await again.done).outcome).toMatchObject({ exitReason: 'completed', sessionId: outcome.sessionId })
      expect(again.asks[0]).toMatchObject({ name: run.asks[0]!.name, input: run.asks[0]!.input })
      expect(readFileSync(join(machine.cwd, 'asked.txt'), 'utf8')).toBe('x\n')
    })
  })

  describe('trouble', () => {
    it.each([
      ['a rate limit', { status: 429 }, 'rate_limited', /429/],
      ['refused credentials', { status: 401 }, 'harness_start_failed', /codex login/],
      ['an overloaded provider', { status: 529 }, 'error', /529/],
      [
        'a spent allowance',
        { status: 429, type: 'usage_limit_reached', code: 'usage_limit_reached' },
        'rate_limited',
        /limit/,
      ],
    ] as const)('with %s ends as that', async (_, error, exitReason, message) => {
      await stub.script({ run: { loop: true, steps: [{ error }] } })
      const run = drive()
      expect((await run.done).outcome).toMatchObject({ exitReason, message: expect.stringMatching(message) })
      expect(dataOf(run.events, 'error').at(-1)).toMatchObject({ willRetry: false })
      expect(dataOf(run.events, 'result')).toMatchObject([{ isError: true }])
    })

    it('with a used-up allowance says when it begins anew', async () => {
      const resetsAt = Math.floor(Date.now() / 1000) + 3_600
      const headers = {
        'x-codex-primary-used-percent': '100',
        'x-codex-primary-window-minutes': '300',
        'x-codex-primary-reset-at': String(resetsAt),
        'x-codex-secondary-used-percent': '40',
        'x-codex-secondary-window-minutes': '10080',
        'x-codex-secondary-reset-at': String(resetsAt + 86_400),
      }
      const error = { status: 429, type: 'usage_limit_reached', resetsAt, headers }
      await stub.script({ run: { loop: true, steps: [{ error }] } })
      expect((await drive().done).outcome).toMatchObject({
        exitReason: 'rate_limited',
        limitResetsAt: resetsAt * 1000,
        limitsUsed: [
          { windowMinutes: 300, models: null, usedPercent: 100, resetsAt: resetsAt * 1000 },
          { windowMinutes: 10_080, models: null, usedPercent: 40, resetsAt: (resetsAt + 86_400) * 1000 },
        ],
      })
    })

    it('with a session that is full: it is not gone on with', async () => {
      const error = { status: 400, type: 'invalid_request_error', code: 'context_length_exceeded', message: 'too long' }
      await stub.script({ run: { loop: true, steps: [{ error }] } })
      expect((await drive().done).outcome).toMatchObject({ exitReason: 'error', sessionId: null })
    })

    it('of being killed in a tool call is no success', async () => {
      await script(shell('tail -f /dev/null'))
      const run = drive()
      await run.event(({ kind }) => kind === 'tool_call')
      await expect.poll(() => run.asks.length).toBe(1)
      run.signal('SIGTERM')
      const { outcome } = await run.done
      expect(outcome.exitReason).toBe('error')
      expect(outcome.message).toMatch(/in the middle of its turn/)
    })
  })
}
