import { describe, expect, it } from 'vitest'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { canonical, merged, recording, specOf } from '../../../test/kit/harness-recordings.ts'
import type { LaunchFacts, ProcessExit } from '../adapter.ts'
import { cursorAdapter } from './adapter.ts'
import { toolNameOf } from './calls.ts'

const left: ProcessExit = { exitCode: 0, signal: null, stoppedFor: null }
const full: RunSpec['permissions'] = { allow: [], ask: [], deny: [], defaultMode: 'full' }
const line = (value: object) => Buffer.from(`${JSON.stringify(value)}\n`)
const facts: LaunchFacts = {
  env: {},
  cwd: '/work',
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
const spec = (changes: Partial<RunSpec> = {}) => specOf({ harness: 'cursor', permissions: full, ...changes })
const newRun = (changes: Partial<RunSpec> = {}) => cursorAdapter.dialogue(spec(changes))

function replay(name: string, changes: Partial<RunSpec> = {}, { exit = left, stderr = '' } = {}) {
  const run = newRun(changes)
  const outputs = [run.open(), run.push(recording('cursor', name)), run.pushStderr(Buffer.from(stderr)), run.end(exit)]
  return { ...merged(outputs), outcome: run.outcome(exit) }
}

describe('the launch', () => {
  it('is in print mode where no list has a say, with everything allowed', () => {
    const { args } = cursorAdapter.command(spec({ model: 'gpt-5', resumeSessionId: 'c1' }), facts)
    const print = [
      '-p',
      '--output-format',
      'stream-json',
      '--workspace',
      '/work',
      '--force',
      '--trust',
      '--approve-mcps',
    ]
    expect(args).toEqual([...print, '--model', 'gpt-5', '--resume', 'c1'])
  })

  it.each([
    ['2026.07.20', true],
    ['2026.01.23', true],
    ['2025.12.31', false],
    [null, false],
  ])('asks version %s for words in pieces: %s', (version, isAsked) => {
    const { args } = cursorAdapter.command(spec(), { ...facts, version })
    expect(args.includes('--stream-partial-output')).toBe(isAsked)
  })

  it.each([{ defaultMode: 'ask' as const }, { deny: ['Bash(rm *)'] }])(
    'is by ACP where lists have a say: %o',
    (changes) => {
      const { args } = cursorAdapter.command(spec({ permissions: { ...full, ...changes }, model: 'gpt-5' }), facts)
      expect(args).toEqual(['--model', 'gpt-5', 'acp'])
    },
  )

  it('is refused in the mode strict', () => {
    const strict = spec({ permissions: { ...full, defaultMode: 'strict' } })
    expect(() => cursorAdapter.command(strict, facts)).toThrow(/strict cannot hold/)
  })
})

describe('print mode', () => {
  it('tells who the agent is before the first prompt, and closes standard input', () => {
    const { write, closeInput } = newRun({ agentMd: 'You are Ada.', prompt: 'Go.' }).open()
    expect([write, closeInput]).toEqual(['<instructions from="svc">\nYou are Ada.\n</instructions>\n\nGo.', true])
    expect(newRun({ agentMd: 'You are Ada.', prompt: 'Go.', resumeSessionId: 'c1' }).open().write).toBe('Go.')
  })

  it('tells what a stream says', () => {
    const { events, outcome, finished } = replay('success')
    expect(events.map(({ kind, data }) => [kind, data])).toEqual([
      ['session', { sessionId: '6ca0a174-e1e5-49bc-9694-0d3a07e505ad', model: 'Auto' }],
      ['thinking', { text: 'A file, then.' }],
      ['text', { text: 'I will create the file.' }],
      ['tool_call', { toolCallId: 'call_1/fc_1', name: 'Bash', input: { command: 'echo hello > hello.txt' } }],
      ['tool_result', { toolCallId: 'call_1/fc_1', isError: false, output: 'done' }],
      ['text', { text: 'Done.' }],
      ['usage', { inputTokens: 200, outputTokens: 40, cacheReadTokens: 3, cacheWriteTokens: 0 }],
      ['result', { text: 'I will create the file.Done.', isError: false }],
    ])
    expect(finished).toBe(true)
    expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: '6ca0a174-e1e5-49bc-9694-0d3a07e505ad' })
  })

  const init = line({ type: 'system', subtype: 'init', session_id: 's' })
  const says = (text: string, more: object = {}) =>
    line({ type: 'assistant', message: { content: [{ type: 'text', text }] }, session_id: 's', ...more })
  const piece = (text: string) => says(text, { timestamp_ms: 1 })
  const again = (text: string) => says(text, { timestamp_ms: 1, model_call_id: 'm' })
  const call = line({ type: 'tool_call', subtype: 'started', call_id: 'c', tool_call: { shellToolCall: { args: {} } } })
  const said = (...lines: Uint8Array[]) => {
    const run = newRun()
    const { events } = merged([run.open(), run.push(init), ...lines.map((each) => run.push(each)), run.end(left)])
    return events.flatMap(({ kind, data }) => (kind === 'text' && 'text' in data ? [data.text] : []))
  }

  it('tells words in pieces, and none of them again where Cursor repeats them', () => {
    const [whole, pieces] = [replay('success'), replay('pieces')]
    expect(canonical(pieces.events)).toEqual(canonical(whole.events))
    const texts = pieces.events.flatMap(({ kind, data }) => (kind === 'text' && 'text' in data ? [data.text] : []))
    expect(texts).toEqual(['I will cr', 'eate the ', 'file.', 'Done.'])
    expect(pieces.outcome).toEqual(whole.outcome)
  })

  it.each([
    ['the last segment at the end, also twice', [again('B.'), says('B.')]],
    ['all segments at the end', [says('A. B.')]],
    ['nothing', []],
  ])('tells each word once where Cursor repeats %s', (_, end) => {
    expect(said(piece('A.'), piece(' '), again('A. '), call, piece('B'), piece('.'), ...end).join('')).toBe('A. B.')
    expect(said(piece('A.'), piece(' '), call, again('A. '), piece('B.'), ...end).join('')).toBe('A. B.')
  })

  it('tells what a repetition has beyond the pieces, and one that is none; two pieces that are alike are two', () => {
    expect(said(piece('A'), again('A and B')).join('')).toBe('A and B')
    expect(said(piece('A'), again('B')).join('')).toBe('AB')
    expect(said(piece('.'), piece('.'), again('..')).join('')).toBe('..')
    expect(said(says('Done.'), says('Done.')).join('')).toBe('Done.Done.')
  })

  it('tells of a call that Cursor rejected', () => {
    const { events } = replay('rejected')
    expect(events.find(({ kind }) => kind === 'tool_result')?.data).toMatchObject({ isError: true })
  })

  it.each([
    ['Error: [resource_exhausted] too many', 'rate_limited', /too many/],
    ['Error: [unavailable] no route', 'error', /no route/],
    ['Error: it broke', 'error', /exited with status 1 without a result: Error: it broke/],
    ['Error: Authentication required. Please run it', 'harness_start_failed', /cursor-agent login/],
  ])('that breaks off with %s ends as %s', (stderr, exitReason, message) => {
    const { outcome } = replay('limit', {}, { stderr, exit: { ...left, exitCode: 1 } })
    expect(outcome).toMatchObject({ exitReason, message: expect.stringMatching(message) })
  })

  it('is no success without a result, whatever the status, nor with a call that did not end', () => {
    expect(replay('limit').outcome.exitReason).toBe('error')
    const run = newRun()
    const lines = recording('cursor', 'success')
      .toString()
      .split(/(?<=\n)/)
    for (const each of lines) if (!each.includes('"completed","call_id"')) run.push(Buffer.from(each))
    expect(run.outcome(left)).toMatchObject({ exitReason: 'error', message: expect.stringContaining('had not ended') })
  })

  it('keeps raw what another session says: it is neither words, calls nor result of the run', () => {
    const run = newRun()
    const foreign = [
      { type: 'system', subtype: 'init', session_id: 'b' },
      { type: 'assistant', session_id: 'b', message: { content: [{ type: 'text', text: 'Of b.' }] } },
      { type: 'tool_call', session_id: 'b', subtype: 'started', call_id: 'c', tool_call: { shellToolCall: {} } },
      { type: 'result', session_id: 'b', subtype: 'success', is_error: false, result: 'Of b.' },
    ]
    const lines = recording('cursor', 'success')
      .toString()
      .split(/(?<=\n)/)
      .map((each) => Buffer.from(each))
    const { events } = merged([...lines.toSpliced(1, 0, ...foreign.map(line)).map((each) => run.push(each)), run.end()])
    expect(events.flatMap(({ kind, data }) => (kind === 'raw' ? [data.text] : []))).toEqual(
      foreign.map((each) => String(line(each))),
    )
    expect(events.filter(({ kind }) => kind !== 'raw')).toEqual(replay('success').events)
    expect(run.outcome(left)).toEqual(replay('success').outcome)
  })

  it('without its chat is a refused resume', () => {
    const run = newRun({ resumeSessionId: 'c1' })
    run.pushStderr(Buffer.from('Error: chat c1 not found\n'))
    expect(run.outcome({ ...left, exitCode: 1 })).toMatchObject({ resumeRefused: true, sessionId: null })
  })

  it('ends past the last turn', () => {
    const { endNow, outcome } = replay('rejected', { maxTurns: 1 })
    expect(endNow).toBe(true)
    expect(outcome).toMatchObject({ exitReason: 'budget_exceeded' })
  })

  it('reads nothing after the result', () => {
    const run = newRun()
    run.push(recording('cursor', 'success'))
    const more = run.push(line({ type: 'assistant', message: { content: [{ type: 'text', text: 'More.' }] } }))
    expect(more.events).toMatchObject([{ kind: 'raw' }])
    expect(run.outcome(left).exitReason).toBe('completed')
  })
})

describe('by ACP', () => {
  it('signs in where it is wanted, opens the session again, and has its call asked', () => {
    const run = newRun({ permissions: { ...full, defaultMode: 'ask' } })
    const { write, asks } = merged([run.open(), run.push(recording('cursor', 'acp'))])
    const methods = write
      .split('\n')
      .flatMap((each) => (each === '' ? [] : [(JSON.parse(each) as { method?: string }).method]))
    expect(methods).toEqual(['initialize', 'session/new', 'authenticate', 'session/new', 'session/prompt'])
    expect(asks).toMatchObject([{ name: 'Bash', input: { command: 'echo hello > hello.txt' } }])
  })

  it('tells how to sign in where that did not help', () => {
    const run = newRun({ permissions: { ...full, defaultMode: 'ask' } })
    const refused = { code: -32_000, message: 'Authentication required' }
    run.push(line({ id: 1, result: { protocolVersion: 1, agentCapabilities: {} } }))
    run.push(line({ id: 2, error: refused }))
    expect(run.push(line({ id: 0, error: refused })).finished).toBe(true)
    expect(run.outcome(left)).toMatchObject({
      exitReason: 'harness_start_failed',
      message: expect.stringContaining('cursor-agent login'),
    })
  })
})

it.each([
  ['shellToolCall', {}, 'Bash'],
  ['readToolCall', {}, 'Read'],
  ['mcpToolCall', { providerIdentifier: 'git', toolName: 'log' }, 'mcp__git__log'],
  ['ToolCall', null, 'Unknown'],
])('the tool %s of %o is %s', (key, args, name) => {
  expect(toolNameOf(key, args)).toBe(name)
})

it('names a tool whose name every object has', () => {
  expect(toolNameOf('constructorToolCall', {})).toBe('Constructor')
  expect(toolNameOf('__proto__ToolCall', {})).toBe('__proto__')
})
