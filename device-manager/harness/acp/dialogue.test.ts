import { describe, expect, it } from 'vitest'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { merged, recording, specOf } from '../../../test/kit/harness-recordings.ts'
import type { ProcessExit } from '../adapter.ts'
import { acpDialogue } from './dialogue.ts'
import { acpLaunch } from './launch.ts'

const left: ProcessExit = { exitCode: 0, signal: null, stoppedFor: null }
const full: RunSpec['permissions'] = { allow: [], ask: [], deny: [], defaultMode: 'full' }
const line = (value: object) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...value })}\n`)
const spec = (changes: Partial<RunSpec> = {}) => specOf({ harness: 'command', protocol: 'acp', ...changes })

function working(
  changes: Partial<RunSpec> = {},
  { mcpServers = {}, can = {} }: { mcpServers?: McpServers; can?: object } = {},
) {
  const dialogue = acpDialogue(spec(changes), { cwd: '/project', mcpServers })
  dialogue.open()
  const agentCapabilities = { sessionCapabilities: { resume: {} }, ...can }
  const opened = dialogue.push(line({ id: 1, result: { protocolVersion: 1, agentCapabilities } }))
  const started = dialogue.push(line({ id: 2, result: { sessionId: 's1' } }))
  const update = (fields: object, sessionId = 's1') =>
    dialogue.push(line({ method: 'session/update', params: { sessionId, update: fields } }))
  const tool = (status: string, fields: object = {}) =>
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', kind: 'execute', status, ...fields })
  return { dialogue, opened, started, update, tool }
}
const once = { optionId: 'yes', kind: 'allow_once' }
const always = { optionId: 'ever', kind: 'allow_always' }
const reject = { optionId: 'no', kind: 'reject_once' }
const rm: object = { kind: 'execute', rawInput: { command: 'rm x' } }
const permission = (
  id: number | string | null,
  { options = [once, always, reject], call = rm, sessionId = 's1' } = {},
) =>
  line({
    id,
    method: 'session/request_permission',
    params: { sessionId, toolCall: { toolCallId: 't1', ...call }, options },
  })
const cancelled = { outcome: { outcome: 'cancelled' } }
const read = (write: string | undefined): unknown[] =>
  (write ?? '')
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => JSON.parse(text) as unknown)
const isCancel = { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: 's1' } }

it('told to end, it cancels the turn that goes on, and leaves its input when that has ended', () => {
  const { dialogue } = working()
  expect(read(dialogue.interrupt!().write)).toEqual([isCancel])
  const { closeInput } = dialogue.push(line({ id: 3, result: { stopReason: 'cancelled' } }))
  expect(closeInput).toBe(true)
  expect(dialogue.interrupt!().write).toBeUndefined()
  expect(dialogue.outcome({ ...left, stoppedFor: 'interrupted' })).toMatchObject({ exitReason: 'interrupted' })
})

describe('a permission request', () => {
  it('is asked by the name that rules know, and answered for this once', () => {
    const { dialogue } = working()
    const { asks } = dialogue.push(permission(7))
    expect(asks).toMatchObject([{ toolCallId: 't1', name: 'Bash', input: { command: 'rm x' } }])
    const { write } = dialogue.answer(asks![0]!.askId, { behavior: 'allow', rule: null })
    expect(read(write)).toEqual([
      { jsonrpc: '2.0', id: 7, result: { outcome: { outcome: 'selected', optionId: 'yes' } } },
    ])
  })

  it('that is denied gets the option that refuses once; one that stops the run cancels the turn', () => {
    const { dialogue } = working()
    const no = dialogue.answer(dialogue.push(permission(0)).asks![0]!.askId, { behavior: 'deny', message: 'No.' })
    expect(read(no.write)).toMatchObject([{ id: 0, result: { outcome: { optionId: 'no' } } }])
    const stop = { behavior: 'deny', message: 'A person is asked.', stop: true } as const
    const { write } = dialogue.answer(dialogue.push(permission(1)).asks![0]!.askId, stop)
    expect(read(write)).toMatchObject([{ id: 1, result: cancelled }, isCancel])
  })

  it.each([
    ['offers only to allow for ever', { options: [always] }],
    ['means yes and no by one option', { options: [{ ...once, optionId: 'no' }, reject] }],
    ['is about another session', { sessionId: 'other' }],
    ['does not show what it runs', { call: { kind: 'execute', rawInput: {} }, options: [once] }],
  ])('that %s is cancelled, not asked', (_, request) => {
    const { asks, write } = working().dialogue.push(permission(3, request))
    expect(asks).toBeUndefined()
    expect(read(write)).toMatchObject([{ id: 3, result: cancelled }])
  })

  it.each([null, 'x'.repeat(2_000)])('gets its answer whatever its id is', (id) => {
    expect(read(working().dialogue.push(permission(id, { sessionId: 'other' })).write)).toEqual([
      { jsonrpc: '2.0', id, result: cancelled },
    ])
  })

  it.each<[string, Partial<RunSpec['permissions']>, boolean]>([
    ['full without lists', {}, true],
    ['full with a list about other tools', { deny: ['Bash(rm *)'] }, false],
    ['full with a list that names it', { deny: ['Bash(rm *)'], allow: ['acp__other'] }, true],
    ['ask with a list that allows any tool', { defaultMode: 'ask', deny: ['Bash(rm *)'], allow: ['*'] }, false],
    ['ask', { defaultMode: 'ask', deny: ['Bash(rm *)'] }, true],
  ])('about a tool of which nothing is said, in the mode %s', (_, permissions, isAsked) => {
    const { dialogue } = working({ permissions: { ...full, ...permissions } })
    const output = dialogue.push(permission(3, { call: { kind: 'other', rawInput: { line: 'rm -rf /' } } }))
    expect(output.asks?.map(({ name }) => name) ?? []).toEqual(isAsked ? ['acp__other'] : [])
    if (!isAsked) expect(read(output.write)).toMatchObject([{ id: 3, result: { outcome: { optionId: 'no' } } }])
    expect(output.events.some(({ kind }) => kind === 'error')).toBe(!isAsked)
  })

  it('whose id is that of an open one is refused with it: one answer would be taken for both', () => {
    const { dialogue } = working()
    const [ask] = dialogue.push(permission(3)).asks!
    const second = dialogue.push(permission(3))
    expect(second.asks).toBeUndefined()
    expect(read(second.write)).toMatchObject([{ id: 3, result: cancelled }])
    expect(dialogue.answer(ask!.askId, { behavior: 'allow', rule: null }).write).toBeUndefined()
  })
})

it('answers a request that it does not know with an error', () => {
  const { write } = working().dialogue.push(line({ id: 'x', method: 'fs/write_text_file', params: {} }))
  expect(read(write)).toMatchObject([{ id: 'x', error: { code: -32_601 } }])
})

describe('a call that was carried out', () => {
  const outcome = (changes: Partial<RunSpec>, play: (run: ReturnType<typeof working>) => void) => {
    const run = working(changes)
    play(run)
    run.dialogue.push(line({ id: 3, result: { stopReason: 'end_turn' } }))
    return run.dialogue.outcome(left)
  }
  const done = (run: ReturnType<typeof working>) => run.tool('completed', { rawInput: { command: 'rm x' } })
  const unasked = { exitReason: 'error', message: expect.stringContaining('ran Bash without asking') as string }
  const inAsk = (rule: string) => ({ permissions: { ...full, defaultMode: 'ask' as const, allow: [rule] } })

  it('unasked ends the run where lists have a say', () => {
    expect(done(working())).toMatchObject({ endNow: true })
    expect(outcome({}, done)).toMatchObject(unasked)
    expect(outcome(inAsk('Bash(rm *)'), done)).toMatchObject(unasked)
    expect(outcome({ permissions: { ...full, deny: ['Bash(rm *)'] } }, done)).toMatchObject(unasked)
  })

  it('unasked is fine where the lists allow the whole tool', () => {
    expect(outcome({ permissions: full }, done)).toMatchObject({ exitReason: 'completed' })
    expect(outcome(inAsk('Bash'), done)).toMatchObject({ exitReason: 'completed' })
    expect(outcome({ permissions: { ...full, deny: ['WebFetch'] } }, done)).toMatchObject({ exitReason: 'completed' })
  })

  it('before its answer, after a refusal, or again under an id that was allowed once, counts as unasked', () => {
    const allow = { behavior: 'allow', rule: null } as const
    const ask = ({ dialogue }: ReturnType<typeof working>) => dialogue.push(permission(5)).asks![0]!.askId
    const answered = (run: ReturnType<typeof working>, behavior: 'allow' | 'deny') =>
      void run.dialogue.answer(ask(run), behavior === 'allow' ? allow : { behavior, message: 'No.' })
    expect(outcome({}, (run) => [ask(run), done(run)])).toMatchObject(unasked)
    expect(outcome({}, (run) => [answered(run, 'deny'), done(run)])).toMatchObject(unasked)
    expect(outcome({}, (run) => [answered(run, 'allow'), done(run)])).toMatchObject({ exitReason: 'completed' })
    expect(outcome({}, (run) => [answered(run, 'allow'), done(run), done(run)])).toMatchObject(unasked)
  })

  it('with another input than was allowed counts as unasked, more of the same does not', () => {
    const allowed = (run: ReturnType<typeof working>) => {
      const [ask] = run.dialogue.push(permission(5)).asks!
      run.dialogue.answer(ask!.askId, { behavior: 'allow', rule: null })
    }
    const ends =
      (command: string, more: object = {}) =>
      (run: ReturnType<typeof working>) => {
        allowed(run)
        run.tool('completed', { rawInput: { command, timeout: 3, ...more } })
      }
    expect(outcome({}, ends('rm x'))).toMatchObject({ exitReason: 'completed' })
    for (const other of [ends('rm y'), ends('rm x', { args: ['-r', '/'] })])
      expect(outcome({}, other)).toMatchObject({
        exitReason: 'error',
        message: expect.stringContaining('ran Bash, but not as it was allowed'),
      })
  })

  it('with another target, folder or text than was allowed counts as unasked', () => {
    const move = { kind: 'move', rawInput: { source: 'a', destination: 'b' } }
    const write = { kind: 'edit', rawInput: { path: 'a', content: 'x' } }
    const think = { kind: 'think', rawInput: { path: 'a', content: 'x' } }
    const cases = [
      [move, { ...move, rawInput: { source: 'a', destination: '/etc/b' } }],
      [write, { ...write, rawInput: { path: 'a', content: 'y' } }],
      [write, { ...write, rawInput: { path: 'a', content: 'x', to_file: '/etc/b' } }],
      [think, { ...think, kind: 'edit' }],
      [rm, { rawInput: { command: 'rm x', cwd: '/etc' } }],
    ]
    for (const [call, made] of cases) {
      const run = working()
      run.dialogue.answer(run.dialogue.push(permission(5, { call: call! })).asks![0]!.askId, {
        behavior: 'allow',
        rule: null,
      })
      expect([made, run.tool('completed', made).endNow]).toEqual([made, true])
    }
    for (const more of [{ cwd: '/project' }, { workdir: '/project/' }, { description: 'Removes x.' }]) {
      const run = working()
      const [ask] = run.dialogue.push(permission(5)).asks!
      run.dialogue.answer(ask!.askId, { behavior: 'allow', rule: null })
      expect(run.tool('completed', { rawInput: { command: 'rm x', ...more } }).endNow).toBeUndefined()
    }
  })

  it('is good for the one of two questions that was allowed', () => {
    const ls = { kind: 'execute', rawInput: { command: 'ls' } }
    const two = (made: object) => {
      const run = working()
      const [first] = run.dialogue.push(permission(5, { call: ls })).asks!
      const [second] = run.dialogue.push(permission(6)).asks!
      run.dialogue.answer(first!.askId, { behavior: 'allow', rule: null })
      const { endNow } = run.tool('completed', made)
      run.dialogue.answer(second!.askId, { behavior: 'deny', message: 'No.' })
      return endNow
    }
    expect(two(ls)).toBeUndefined()
    expect(two(rm)).toBe(true)
  })

  it('that failed counts when it had begun, and not when it was refused before', () => {
    const failed = (run: ReturnType<typeof working>) => run.tool('failed', { rawInput: { command: 'rm x' } })
    expect(outcome({}, failed)).toMatchObject({ exitReason: 'completed' })
    expect(outcome({}, (run) => [run.tool('in_progress'), failed(run)])).toMatchObject({
      exitReason: 'error',
      message: expect.stringContaining('without asking'),
    })
  })

  it('in a session that svc did not begin counts where lists have a say', () => {
    const elsewhere = ({ update }: ReturnType<typeof working>) =>
      update({ sessionUpdate: 'tool_call', toolCallId: 'o', kind: 'edit', status: 'completed' }, 'other')
    expect(outcome({}, elsewhere)).toMatchObject({ exitReason: 'error' })
    expect(outcome({ permissions: full }, elsewhere)).toMatchObject({ exitReason: 'completed' })
  })

  it('after the program said that it is done', () => {
    const run = working()
    run.dialogue.push(line({ id: 3, result: { stopReason: 'end_turn' } }))
    expect(read(run.dialogue.push(permission(9)).write)).toMatchObject([{ result: cancelled }])
    done(run)
    expect(run.dialogue.outcome(left)).toMatchObject(unasked)
  })
})

describe("the workspace's MCP servers", () => {
  const mcpServers: McpServers = {
    files: { type: 'stdio', command: 'files', args: ['--x'], env: { A: 'b' } },
    web: { type: 'http', url: 'https://x.test', headers: { 'X-Key': 'k' } },
    old: { type: 'sse', url: 'https://x.test' },
  }
  const files = { name: 'files', command: 'files', args: ['--x'], env: [{ name: 'A', value: 'b' }] }
  const web = { type: 'http', name: 'web', url: 'https://x.test', headers: [{ name: 'X-Key', value: 'k' }] }
  const call = { kind: 'read', rawInput: { text: 'x' }, _meta: { toolName: 'mcp__files__say' } }
  const deniesOther = { allow: ['mcp__files__*'], ask: [], deny: ['Bash'], defaultMode: 'full' } as const

  it('are given to a new session and to one that is gone on with, as far as the program speaks their transport', () => {
    for (const resumeSessionId of [null, 's1']) {
      const { opened } = working({ resumeSessionId }, { mcpServers, can: { mcpCapabilities: { http: true } } })
      expect(read(opened.write)).toMatchObject([{ params: { mcpServers: [files, web] } }])
      expect(opened.events).toMatchObject([
        { kind: 'error', data: { class: 'mcp_server_left_out', message: expect.stringContaining('server old:') } },
      ])
    }
    expect(read(working({}, { mcpServers }).opened.write)).toMatchObject([{ params: { mcpServers: [files] } }])
  })

  it('have their tools asked by the name that rules know', () => {
    const { dialogue, tool } = working({}, { mcpServers })
    const { asks, events } = dialogue.push(permission(1, { call }))
    expect(asks).toMatchObject([{ name: 'mcp__files__say', input: { text: 'x' } }])
    expect(events).toMatchObject([{ kind: 'tool_call', data: { name: 'mcp__files__say' } }])
    dialogue.answer(asks![0]!.askId, { behavior: 'allow', rule: null })
    expect(tool('completed', call).endNow).toBeUndefined()
  })

  it('do not lend their names to other tools', () => {
    for (const toolName of ['mcp__files__', 'mcp__other__say', 'mcp__toString__x', 'mcp__files', 'files__say', 7]) {
      const { dialogue } = working({}, { mcpServers })
      const other = { ...call, kind: 'other', _meta: { toolName } }
      expect(dialogue.push(permission(1, { call: other })).asks).toMatchObject([{ name: 'acp__other' }])
    }
  })

  it('may not do what was not asked: another tool, another input, or without a question', () => {
    const made = [
      { ...call, _meta: { toolName: 'mcp__files__remove' } },
      { ...call, rawInput: { text: 'y' } },
    ]
    for (const done of made) {
      const { dialogue, tool } = working({}, { mcpServers })
      dialogue.answer(dialogue.push(permission(1, { call })).asks![0]!.askId, { behavior: 'allow', rule: null })
      expect(tool('completed', done).endNow).toBe(true)
    }
    expect(working({}, { mcpServers }).tool('completed', call).endNow).toBe(true)
    expect(
      working(
        { permissions: { ...deniesOther, allow: [...deniesOther.allow], ask: [], deny: ['mcp__files__*'] } },
        { mcpServers },
      ).tool('completed', call).endNow,
    ).toBe(true)
  })
})

describe('a session', () => {
  it('is told the instructions only when it is new', () => {
    const first = read(working({ agentMd: 'You are Ada.' }).started.write)
    expect(JSON.stringify(first)).toContain('You are Ada.')
    const again = working({ agentMd: 'You are Ada.', resumeSessionId: 's1' })
    expect(read(again.opened.write)).toMatchObject([
      { method: 'session/resume', params: { sessionId: 's1', cwd: '/project' } },
    ])
    expect(JSON.stringify(read(again.started.write))).not.toContain('You are Ada.')
  })

  it('that is refused is said to be, but not when nobody is signed in', () => {
    const refused = (code: number) => {
      const dialogue = acpDialogue(spec({ resumeSessionId: 'gone' }))
      dialogue.push(line({ id: 1, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } }))
      dialogue.push(line({ id: 2, error: { code, message: 'No.' } }))
      return dialogue.outcome(left)
    }
    expect(refused(-32_602)).toMatchObject({ resumeRefused: true, sessionId: null })
    expect(refused(-32_000)).toMatchObject({ resumeRefused: false, exitReason: 'harness_start_failed' })
  })

  it('of another run is kept raw', () => {
    const { update } = working()
    const words = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'hi' } }
    expect(update(words, 'other').events).toMatchObject([{ kind: 'raw' }])
    expect(update(words).events).toEqual([{ kind: 'text', data: { text: 'hi' } }])
  })
})

it.each([
  ['end_turn', 'completed'],
  ['max_tokens', 'error'],
  ['max_turn_requests', 'budget_exceeded'],
  ['refusal', 'error'],
  ['cancelled', 'error'],
  ['a new one', 'error'],
])('a turn that stops for %s ends as %s', (stopReason, exitReason) => {
  const { dialogue } = working()
  expect(dialogue.push(line({ id: 3, result: { stopReason } }))).toMatchObject({ finished: true, closeInput: true })
  expect(dialogue.outcome(left)).toMatchObject({ exitReason, sessionId: 's1' })
})

it('takes what a person adds as the next prompt, when the turn has ended well', () => {
  const { dialogue } = working()
  expect(dialogue.input('And then the shoes.')).toEqual({ events: [] })
  const usage = { inputTokens: 5, outputTokens: 1 }
  const next = dialogue.push(line({ id: 3, result: { stopReason: 'end_turn', usage } }))
  expect(next.finished).toBeUndefined()
  expect(read(next.write)).toMatchObject([{ id: 4, method: 'session/prompt', params: { sessionId: 's1' } }])
  expect(next.write).toContain('And then the shoes.')
  expect(dialogue.outcome(left)).toMatchObject({ exitReason: 'error' })
  const end = dialogue.push(line({ id: 4, result: { stopReason: 'end_turn', usage: { ...usage, inputTokens: 9 } } }))
  expect(end).toMatchObject({ finished: true, closeInput: true })
  expect(end.events[0]).toMatchObject({ kind: 'usage', data: { inputTokens: 9, outputTokens: 1 } })
  expect(dialogue.outcome(left)).toMatchObject({ exitReason: 'completed' })
  expect(dialogue.input('Late.').events).toMatchObject([{ kind: 'error' }])
})

it('tells what an error says in its data', () => {
  const { dialogue } = working()
  dialogue.push(line({ id: 3, error: { code: -32_603, message: 'Internal error', data: { details: 'No credit.' } } }))
  expect(dialogue.outcome(left).message).toBe('Internal error: No credit.')
})

it('counts the turns, and cancels past the last', () => {
  const { dialogue, tool } = working({ permissions: full, maxTurns: 1 })
  tool('completed')
  expect(read(tool('pending', { toolCallId: 't2' }).write)).toEqual([isCancel])
  dialogue.push(line({ id: 3, result: { stopReason: 'cancelled' } }))
  expect(dialogue.outcome(left)).toMatchObject({ exitReason: 'budget_exceeded' })
})

it('is sent no further prompt past its limit of turns, however it says that it ended', () => {
  const { dialogue, tool } = working({ permissions: full, maxTurns: 1 })
  dialogue.input('And then the shoes.')
  tool('completed')
  tool('pending', { toolCallId: 't2' })
  const end = dialogue.push(line({ id: 3, result: { stopReason: 'end_turn' } }))
  expect(end).toMatchObject({ finished: true, closeInput: true })
  expect(end.write).toBeUndefined()
})

it.each(['cancelled', 'refusal'])(
  'tells which texts of a person it did not take, when it ended with %s',
  (stopReason) => {
    const { dialogue } = working()
    for (const text of ['And then the shoes.', 'And the hat.']) dialogue.input(text)
    dialogue.push(line({ id: 3, result: { stopReason } }))
    const tooLate = { kind: 'error', data: { class: 'input_too_late' } }
    expect(dialogue.end().events).toMatchObject([tooLate, tooLate])
    expect(dialogue.end().events).toEqual([])
  },
)

it('that leaves in the middle of its turn is no success', () => {
  expect(working().dialogue.outcome(left)).toMatchObject({ exitReason: 'error' })
})

it('does not start in the mode strict', () => {
  const strict = spec({ command: 'x', permissions: { ...full, defaultMode: 'strict' } })
  const facts = {
    env: {},
    cwd: '/',
    foldersAround: [],
    repositoryFolders: [],
    runDir: '/r',
    isRoot: false,
    firstStartDir: null,
    loginShell: '/bin/sh',
    version: null,
    mcpServers: {},
    skills: [],
  }
  expect(() => acpLaunch(strict, facts)).toThrow(/strict cannot hold/)
})

describe('a turn that ended at a call that was denied', () => {
  const denied = 'Bash(rm x) was denied: no rule allows it. Go on without it.'
  const endTurn = (id: number) => line({ id, result: { stopReason: 'end_turn' } })
  const says = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
  function refusedOnce(run: ReturnType<typeof working>, id = 7, stop = false) {
    const [ask] = run.dialogue.push(permission(id)).asks ?? []
    run.dialogue.answer(ask!.askId, { behavior: 'deny', message: denied, stop })
    run.tool('failed', rm)
  }
  const prompts = (write: string | undefined) =>
    read(write).filter((each) => (each as { method?: string }).method === 'session/prompt')

  it('is said, and the model is told why and goes on', () => {
    const run = working()
    run.update(says('I remove it.'))
    refusedOnce(run)
    // Qwen Code tells of its usage by an empty text.
    run.update(says(''))
    const { write, events, closeInput } = run.dialogue.push(endTurn(3))
    expect(closeInput).toBeUndefined()
    const told = expect.stringMatching(
      /^Your turn ended at a call that was denied.*no rule allows it\. Go on without it\.$/,
    )
    expect(prompts(write)).toMatchObject([
      { id: 4, params: { sessionId: 's1', prompt: [{ type: 'text', text: told }] } },
    ])
    expect(events).toMatchObject([
      { kind: 'error', data: { class: 'turn_ended_by_refusal', message: expect.stringContaining('Bash(rm x)') } },
    ])
    run.update(says('Then not.'))
    const end = run.dialogue.push(endTurn(4))
    expect(end.closeInput).toBe(true)
    expect(end.events.at(-1)).toEqual({ kind: 'result', data: { text: 'Then not.', isError: false } })
    expect(run.dialogue.outcome(left)).toMatchObject({ exitReason: 'completed', message: null })
  })

  it('a second time in a run is no success', () => {
    const run = working()
    refusedOnce(run)
    run.dialogue.push(endTurn(3))
    refusedOnce(run, 8)
    const { write, events } = run.dialogue.push(endTurn(4))
    expect(prompts(write)).toEqual([])
    expect(events).toMatchObject([{ kind: 'result', data: { isError: true } }])
    expect(run.dialogue.outcome(left)).toMatchObject({
      exitReason: 'error',
      message: expect.stringMatching(/also after it was told to go on: Bash\(rm x\) was denied/),
    })
  })

  it('is told with what a person has added, also a second time', () => {
    const run = working()
    run.dialogue.input('And be quick.')
    refusedOnce(run)
    const first = prompts(run.dialogue.push(endTurn(3)).write)
    expect(JSON.stringify(first)).toMatch(/Go on without it\."}.*And be quick\./)
    run.dialogue.input('Stop that.')
    refusedOnce(run, 8)
    expect(JSON.stringify(prompts(run.dialogue.push(endTurn(4)).write))).toMatch(/Go on without it\."}.*Stop that\./)
    run.update(says('All right.'))
    run.dialogue.push(endTurn(5))
    expect(run.dialogue.outcome(left)).toMatchObject({ exitReason: 'completed' })
  })

  it.each<[string, (run: ReturnType<typeof working>) => unknown]>([
    ['the model spoke after it', (run) => [refusedOnce(run), run.update(says('Then not.'))]],
    ['a person is asked about it', (run) => refusedOnce(run, 7, true)],
    ['the run was told to end', (run) => [refusedOnce(run), run.dialogue.interrupt!()]],
  ])('is the end where %s', (_, before) => {
    const run = working()
    before(run)
    const { write, closeInput } = run.dialogue.push(endTurn(3))
    expect([prompts(write), closeInput]).toEqual([[], true])
  })

  it('is no reason to go on where the turn was cancelled or failed', () => {
    for (const end of [
      line({ id: 3, result: { stopReason: 'cancelled' } }),
      line({ id: 3, error: { code: 1, message: 'x' } }),
    ]) {
      const run = working()
      refusedOnce(run)
      expect(prompts(run.dialogue.push(end).write)).toEqual([])
    }
  })
})

describe('a recorded run', () => {
  it('asks for its command and tells it with its whole input', () => {
    const dialogue = acpDialogue(spec())
    const output = merged([dialogue.open(), dialogue.push(recording('acp', 'opencode-ask'))])
    expect(output.asks).toMatchObject([{ name: 'Bash', input: { command: 'echo hello > hello.txt && cat hello.txt' } }])
    expect(output.events.filter(({ kind }) => kind === 'tool_call')).toHaveLength(1)
    expect(output.events.at(-1)).toEqual({
      kind: 'result',
      data: { text: 'Done: hello.txt now holds hello.', isError: false },
    })
  })

  it('with an error of the model ends as that', () => {
    const dialogue = acpDialogue(spec())
    dialogue.push(recording('acp', 'opencode-err429'))
    expect(dialogue.outcome(left)).toMatchObject({
      exitReason: 'rate_limited',
      message: expect.stringContaining('429'),
    })
  })
})
