import { describe, expect, it } from 'vitest'
import { merged, outputBytes, recording, specOf } from '../../../test/kit/harness-recordings.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessDialogue, ProcessExit } from '../adapter.ts'
import { isProvidersFault } from '../parts/failure.ts'
import { claudeDialogue } from './dialogue.ts'

const exit = (exitCode: number | null, signal: string | null = null): ProcessExit => ({
  exitCode,
  signal,
  stoppedFor: null,
})
const line = (value: unknown): Uint8Array => Buffer.from(`${JSON.stringify(value)}\n`)
const hookReady = line({ type: 'control_response', response: { subtype: 'success', request_id: 'initialize' } })

/** The lists have no say: what was recorded was not asked here. */
const full: RunSpec['permissions'] = { allow: [], ask: [], deny: [], defaultMode: 'full' }

function replay(name: string, changes: Partial<RunSpec> = {}) {
  const dialogue = claudeDialogue(specOf({ permissions: full, ...changes }))
  return { dialogue, output: merged([dialogue.open(), dialogue.push(recording('claude', name)), dialogue.end()]) }
}
function usageAfter(name: string, changes: Partial<RunSpec> = {}) {
  return replay(name, changes).output.events.findLast((event) => event.kind === 'usage')?.data
}

describe('what a recorded run becomes', () => {
  it('is its session, its words, its calls with their results, and its result', () => {
    const { output } = replay('success')
    expect(output.events.map((event) => event.kind)).toEqual([
      'session',
      'thinking',
      'usage',
      'text',
      'tool_call',
      'tool_result',
      'text',
      'usage',
      'usage',
      'result',
    ])
    expect(output.events).toContainEqual({
      kind: 'session',
      data: { sessionId: 'e5ab8500-0dd2-4ed2-afc2-e93b1dd1e115', model: 'claude-opus-5-5' },
    })
    const toolCallId = 'toolu_7e43978cfa3d492c55b80a87'
    const input = { command: 'echo hello > hello.txt && cat hello.txt', description: 'Run a command' }
    expect(output.events).toContainEqual({ kind: 'tool_call', data: { toolCallId, name: 'Bash', input } })
    expect(output.events).toContainEqual({ kind: 'tool_result', data: { toolCallId, isError: false, output: 'hello' } })
    expect(output.events.at(-1)).toEqual({
      kind: 'result',
      data: { text: 'Done: hello.txt now holds hello.', isError: false },
    })
    expect(output).toMatchObject({ finished: true, closeInput: true })
  })

  it('is not finished before its result', () => {
    expect(replay('tool-SIGTERM').output).toMatchObject({ finished: false, closeInput: false })
  })

  it('tells that a request failed and is tried again, and at last that it failed', () => {
    const errors = replay('err-429').output.events.filter((event) => event.kind === 'error')
    expect(errors).toMatchObject([
      { data: { class: 'rate_limit', httpStatus: 429, willRetry: true } },
      { data: { class: 'rate_limit', httpStatus: 429, willRetry: false, message: expect.stringContaining('(429)') } },
    ])
  })

  it("does not take claude's own notes to the model for words of a person or the agent", () => {
    const events = replay('mid-stream-overload').output.events
    expect(events.filter((event) => event.kind === 'text').map((event) => event.data.text)).toEqual([
      'Hello',
      'second try',
    ])
    expect(events.some((event) => event.kind === 'raw' && event.data.text?.includes('cut off mid-stream'))).toBe(true)
  })
})

describe('words that come in pieces', () => {
  const session = { session_id: 's1' }
  const init = line({ type: 'system', subtype: 'init', ...session })
  const piece = (event: object, parent: string | null = null) =>
    line({ type: 'stream_event', event, parent_tool_use_id: parent, ...session })
  const begins = (id: string) => piece({ type: 'message_start', message: { id } })
  const says = (index: number, text: string) =>
    piece({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } })
  const thinks = (index: number, thinking: string) =>
    piece({ type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking } })
  const whole = (id: string, block: object, parent: string | null = null) =>
    line({ type: 'assistant', message: { id, content: [block] }, parent_tool_use_id: parent, ...session })
  const text = (said: string) => ({ type: 'text', text: said })
  const told = (...lines: Uint8Array[]) => {
    const dialogue = claudeDialogue(specOf({ permissions: full }))
    const before = [dialogue.open(), dialogue.push(hookReady), dialogue.push(init)]
    const { events } = merged([...before, ...lines.map((each) => dialogue.push(each)), dialogue.end()])
    return events.filter(({ kind }) => kind !== 'session').map(({ kind, data }) => [kind, 'text' in data && data.text])
  }

  it('are told as they come, and of the whole what is missing', () => {
    const thought = { type: 'thinking', thinking: 'Hm, so.', signature: 'x' }
    expect(
      told(
        begins('m1'),
        thinks(0, 'Hm,'),
        thinks(0, ' so.'),
        whole('m1', thought),
        says(1, 'It '),
        says(1, 'is '),
        whole('m1', text('It is true.')),
      ),
    ).toEqual([
      ['thinking', 'Hm,'],
      ['thinking', ' so.'],
      ['text', 'It '],
      ['text', 'is '],
      ['text', 'true.'],
    ])
  })

  it('of a request that was made again do not stand for those of the next', () => {
    const lines = [begins('m1'), says(0, 'It '), begins('m2'), says(0, 'It '), whole('m2', text('It will.'))]
    expect(told(...lines)).toEqual([
      ['text', 'It '],
      ['text', 'It '],
      ['text', 'will.'],
    ])
  })

  it('of subagents, of another session and of no message are not told, but the wholes are', () => {
    const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'It ' } }
    const elsewhere = line({ type: 'stream_event', event: delta, session_id: 's2' })
    expect(told(says(0, 'It '), whole('m0', text('It was.')))).toEqual([['text', 'It was.']])
    const subagents = told(begins('m1'), piece(delta, 'call'), whole('m1', text('It is.'), 'call'))
    expect(subagents).toEqual([['text', 'It is.']])
    expect(told(begins('m1'), elsewhere, whole('m1', text('It is.'))).at(-1)).toEqual(['text', 'It is.'])
  })

  it('of a request that failed stand before its error, and not in it', () => {
    const failed = { ...session, type: 'assistant', error: 'overloaded', message: { content: [text('It broke.')] } }
    expect(told(begins('m1'), says(0, 'Thi'), says(0, 's'), line(failed))).toEqual([
      ['text', 'Thi'],
      ['text', 's'],
      ['error', false],
    ])
  })

  it('are told where the whole never comes', () => {
    expect(told(begins('m1'), says(0, 'It i'), says(0, 's'))).toEqual([
      ['text', 'It i'],
      ['text', 's'],
    ])
  })
})

describe('usage', () => {
  it('is the total of the run when its result comes', () => {
    expect(usageAfter('success')).toEqual({
      inputTokens: 320,
      contextTokens: 200,
      outputTokens: 42,
      cacheReadTokens: 10,
      cacheWriteTokens: 5,
      costUsd: '0.002147',
      model: 'claude-opus-5-5',
    })
  })

  it('grows with every message of the model, by what went in', () => {
    const usages = replay('success').output.events.flatMap((event) => (event.kind === 'usage' ? event.data : []))
    expect(usages.slice(0, -1)).toMatchObject([
      { inputTokens: 120, cacheReadTokens: 10, cacheWriteTokens: 5 },
      { inputTokens: 320, cacheReadTokens: 10, cacheWriteTokens: 5 },
    ])
  })

  it('counts only this run of a session that other runs have used', () => {
    const resumed = { resumeSessionId: '5a8a0036-d636-4afc-8e99-d54e5868f2f3' }
    expect(usageAfter('resume-2b', resumed)).toMatchObject({ inputTokens: 100, outputTokens: 20, costUsd: '0.0008' })
  })

  it('counts from the start of the process in versions that do so', () => {
    expect(usageAfter('v197-call-check')).toMatchObject({ inputTokens: 200, outputTokens: 40, costUsd: '0.002' })
  })

  it('of a run killed in its turn is what went in, and claims nothing about the rest', () => {
    expect(usageAfter('tool-SIGTERM')).toEqual({
      inputTokens: 100,
      contextTokens: 100,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      model: 'claude-opus-5-5',
    })
  })

  it('adds up the turns of one process', () => {
    const dialogue = claudeDialogue(specOf())
    const turn = (queued: number) => ({
      type: 'result',
      subtype: 'success',
      queued_turn_count: queued,
      result: 'done',
      model_usage_since_last_result: { m: { inputTokens: 10, outputTokens: 2, costUSD: 0.1 } },
      modelUsage: { m: { inputTokens: 900, outputTokens: 900, costUSD: 9 } },
    })
    expect(dialogue.push(line(turn(1))).finished).toBeUndefined()
    const last = dialogue.push(line(turn(0)))
    expect(last.finished).toBe(true)
    expect(last.events[0]).toMatchObject({ kind: 'usage', data: { inputTokens: 20, outputTokens: 4, costUsd: '0.2' } })
  })
})

describe('how a recorded run ended', () => {
  const cases: [name: string, exit: ProcessExit, exitReason: string, message: unknown][] = [
    ['success', exit(0), 'completed', null],
    ['success', exit(null, 'SIGKILL'), 'completed', null],
    ['cbhook-ask', exit(0), 'completed', null],
    ['mid-stream-overload', exit(0), 'completed', null],
    ['err-429', exit(1), 'rate_limited', expect.stringMatching(/429/)],
    ['err-529', exit(1), 'error', expect.stringMatching(/529/)],
    ['err-401', exit(1), 'harness_start_failed', expect.stringMatching(/401.*sign in again/s)],
    ['noauth', exit(1), 'harness_start_failed', expect.stringMatching(/not signed in; run `claude` once/)],
    ['max-turns', exit(1), 'budget_exceeded', 'Reached maximum number of turns (1)'],
    ['model-SIGINT', exit(0), 'error', 'claude was interrupted from outside.'],
    ['tool-SIGTERM', exit(143), 'error', 'claude was killed by SIGTERM without a result.'],
    ['tool-SIGTERM', exit(null, 'SIGKILL'), 'error', 'claude was killed by SIGKILL without a result.'],
  ]
  it.each(cases)('%s, %o: %s', (name, how, exitReason, message) => {
    const { dialogue } = replay(name)
    const outcome = dialogue.outcome(how)
    expect(outcome).toMatchObject({ exitReason, resumeRefused: false })
    expect(outcome.sessionId).toMatch(/^[0-9a-f-]{36}$/)
    expect(outcome.message).toEqual(message)
  })

  it('is a failure of its provider only where it was one', () => {
    expect(replay('err-529').dialogue.outcome(exit(1)).failure).toBe('provider')
    for (const name of ['success', 'mid-stream-overload', 'err-429', 'err-401', 'max-turns', 'model-SIGINT'])
      expect(isProvidersFault(replay(name).dialogue.outcome(exit(1)).failure)).toBe(false)
  })

  it('is what the host stopped it for, whatever it said itself', () => {
    const stopped: ProcessExit = { exitCode: 0, signal: null, stoppedFor: 'interrupted' }
    expect(replay('model-SIGINT').dialogue.outcome(stopped)).toMatchObject({ exitReason: 'interrupted', message: null })
    expect(replay('tool-SIGTERM').dialogue.outcome(stopped)).toMatchObject({ exitReason: 'interrupted' })
  })

  it('says that the session to resume is gone, so that the host can start afresh', () => {
    const { dialogue } = replay('resume-bad', { resumeSessionId: '00000000-0000-4000-8000-000000000000' })
    expect(dialogue.outcome(exit(1))).toMatchObject({ resumeRefused: true, sessionId: null })
    const silent = claudeDialogue(specOf({ resumeSessionId: 'x' }))
    silent.pushStderr(Buffer.from('No conversation found with session ID: x\n'))
    expect(silent.outcome(exit(1))).toMatchObject({ resumeRefused: true, exitReason: 'harness_start_failed' })
  })

  it('does not keep a session that is full', () => {
    expect(replay('err-400-toolong').dialogue.outcome(exit(1))).toMatchObject({ exitReason: 'error', sessionId: null })
  })

  it('is a failed start when it never spoke', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.pushStderr(Buffer.from("error: unknown option '--nope'\n"))
    expect(dialogue.outcome(exit(1))).toEqual({
      exitReason: 'harness_start_failed',
      message: "claude exited with status 1 without a result: error: unknown option '--nope'",
      sessionId: null,
      resumeRefused: false,
    })
  })

  it('is an error when it left without a result, even with status 0', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(line({ type: 'system', subtype: 'init', session_id: 's1' }))
    expect(dialogue.outcome(exit(0))).toMatchObject({ exitReason: 'error' })
  })

  it('is an error when the model refused, although that looks like a success', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(line({ type: 'result', subtype: 'success', is_error: false, stop_reason: 'refusal', result: '' }))
    expect(dialogue.outcome(exit(0))).toMatchObject({ exitReason: 'error', message: 'The model refused to answer.' })
  })

  it('is not a failed start when credentials expire in the middle of the work', () => {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(line({ type: 'assistant', message: { content: [{ type: 'text', text: 'working' }] } }))
    dialogue.push(recording('claude', 'err-401'))
    expect(dialogue.outcome(exit(1))).toMatchObject({ exitReason: 'error' })
  })
})

describe('a call that has its result', () => {
  const hook = (toolCallId: string | null) =>
    line({
      type: 'control_request',
      request_id: `of ${toolCallId}`,
      request: {
        subtype: 'hook_callback',
        callback_id: 'gate',
        input: { tool_name: 'Bash', tool_input: { command: 'ls' }, ...(toolCallId && { tool_use_id: toolCallId }) },
      },
    })
  const begun = (id: string) =>
    line({
      type: 'assistant',
      message: { content: [{ type: 'tool_use', id, name: 'Bash', input: { command: 'ls' } }] },
    })
  const ended = (id: string, isError = false) =>
    line({
      type: 'user',
      message: { content: [{ type: 'tool_result', tool_use_id: id, is_error: isError, content: '' }] },
    })
  const decisions = { allow: { behavior: 'allow', rule: null }, deny: { behavior: 'deny', message: 'No.' } } as const

  function play({ asked, decided, isError }: { asked?: string | null; decided?: 'allow' | 'deny'; isError?: boolean }) {
    const dialogue = claudeDialogue(specOf())
    dialogue.push(begun('call'))
    const [ask] = asked === undefined ? [] : (dialogue.push(hook(asked)).asks ?? [])
    if (decided !== undefined) dialogue.answer(ask!.askId, decisions[decided])
    const { endNow = false } = dialogue.push(ended('call', isError))
    return { endNow, ...dialogue.outcome(exit(null, 'SIGKILL')) }
  }

  it('and was not asked stops the run where the lists have a say', () => {
    const message =
      "claude ran Bash without asking first, so the run was stopped: the agent's lists would not have held."
    expect(play({})).toMatchObject({ endNow: true, exitReason: 'error', message })
    const { dialogue, output } = replay('success', { permissions: { ...full, deny: ['WebFetch'] } })
    expect(output.endNow).toBe(true)
    expect(dialogue.outcome(exit(0))).toMatchObject({ exitReason: 'error', message })
    expect(replay('success').output.endNow).toBe(false)
  })

  it('stops the run as well when its question was denied, or has no answer yet', () => {
    const isRefused = { endNow: true, message: expect.stringMatching(/^claude ran Bash/) }
    expect(play({ asked: 'call', decided: 'deny' })).toMatchObject(isRefused)
    expect(play({ asked: 'call' })).toMatchObject(isRefused)
    expect(play({ asked: 'another', decided: 'allow' })).toMatchObject(isRefused)
  })

  it('is good when it was allowed, or failed', () => {
    for (const one of [
      { asked: 'call', decided: 'allow' },
      { asked: 'call', decided: 'deny', isError: true },
      { isError: true },
    ] as const)
      expect(play(one)).toMatchObject({ endNow: false, message: expect.stringContaining('without a result') })
  })

  it('is not judged where claude names no call in its questions, or where more calls had no result than are remembered', () => {
    expect(play({ asked: null, decided: 'allow' }).endNow).toBe(false)
    const dialogue = claudeDialogue(specOf())
    for (let count = 0; count <= 1_000; count++) {
      dialogue.push(begun(`call ${count}`))
      const [ask] = dialogue.push(hook(`call ${count}`)).asks ?? []
      dialogue.answer(ask!.askId, decisions.allow)
    }
    dialogue.push(begun('call 0'))
    expect(dialogue.push(ended('call 0')).endNow).toBeUndefined()
  })
})

describe('the prompt', () => {
  it('is sent when the hook is in place, and not before', () => {
    const dialogue = claudeDialogue(specOf({ prompt: 'line one\nline "two" \u{1f980}' }))
    const opening = JSON.parse(dialogue.open().write ?? '') as Record<string, unknown>
    expect(opening).toMatchObject({
      request: { subtype: 'initialize', hooks: { PreToolUse: [{ hookCallbackIds: ['gate'] }] } },
    })
    const sent = dialogue.push(hookReady).write ?? ''
    expect(sent.split('\n')).toHaveLength(2)
    expect(JSON.parse(sent)).toMatchObject({ message: { content: [{ text: 'line one\nline "two" \u{1f980}' }] } })
    expect(dialogue.push(hookReady).write).toBeUndefined()
  })

  it('is followed by what a person wrote in the meantime', () => {
    const dialogue = claudeDialogue(specOf({ prompt: 'first' }))
    dialogue.open()
    expect(dialogue.input('second').write).toBeUndefined()
    expect(dialogue.push(hookReady).write).toMatch(/first.*\n.*second/)
    expect(dialogue.input('third').write).toContain('third')
  })

  it.each([
    { subtype: 'error', request_id: 'initialize', error: 'hooks are off' },
    { subtype: 'success', request_id: 'initialize', response: { hooks_applied: false } },
  ])('is never sent where the hook was not taken (%o)', (response) => {
    const dialogue = claudeDialogue(specOf())
    dialogue.open()
    const output = dialogue.push(line({ type: 'control_response', response }))
    expect(output).toMatchObject({ finished: true, closeInput: true, events: [{ data: { class: 'gate_refused' } }] })
    expect(output.write).toBeUndefined()
    expect(dialogue.outcome(exit(0))).toMatchObject({ exitReason: 'harness_start_failed' })
  })

  it('cannot be followed by text after the result; that is said', () => {
    const { dialogue } = replay('success')
    expect(dialogue.input('too late')).toMatchObject({ events: [{ kind: 'error', data: { class: 'input_too_late' } }] })
  })
})

describe('lines', () => {
  it('that are halves are kept raw at the end', () => {
    const bytes = recording('claude', 'success')
    const whole = replay('success').output
    const dialogue = claudeDialogue(specOf())
    const before = dialogue.push(bytes.subarray(0, bytes.length - 200))
    const rest = dialogue.end().events.map((event) => outputBytes(event) ?? Buffer.alloc(0))
    const lastLine = bytes.lastIndexOf(0x0a, bytes.length - 2) + 1
    expect(before.events).toEqual(whole.events.slice(0, -2))
    expect(Buffer.concat(rest).equals(bytes.subarray(lastLine, bytes.length - 200))).toBe(true)
    expect(dialogue.outcome(exit(null, 'SIGKILL')).exitReason).toBe('error')
  })

  it('that are not known are kept raw with their line end; empty ones are not', () => {
    const dialogue = claudeDialogue(specOf())
    expect(dialogue.push(Buffer.from('\n\r\n  \nwarning: x\n{"type":"new_thing"}\n[1]\n')).events).toEqual([
      { kind: 'raw', data: { text: 'warning: x\n', stream: 'stdout' } },
      { kind: 'raw', data: { text: '{"type":"new_thing"}\n', stream: 'stdout' } },
      { kind: 'raw', data: { text: '[1]\n', stream: 'stdout' } },
    ])
  })

  it('of many megabytes are read, and beyond 32 MiB kept raw without losing the next one', () => {
    const dialogue = claudeDialogue(specOf())
    const answer = (size: number) =>
      line({ type: 'assistant', message: { content: [{ type: 'text', text: 'x'.repeat(size) }] } })
    const texts = pushAll(dialogue, answer(5_000_000)).events.filter((event) => event.kind === 'text')
    expect(texts.map((event) => event.data.text ?? '').join('')).toHaveLength(5_000_000)
    const tooLong = answer(33 * 1024 * 1024)
    const output = pushAll(
      dialogue,
      Buffer.concat([tooLong, line({ type: 'result', subtype: 'success', result: 'ok' })]),
    )
    const raw = output.events.flatMap((event) => (event.kind === 'raw' ? (outputBytes(event) ?? []) : []))
    expect(Buffer.concat(raw).equals(tooLong)).toBe(true)
    expect(output.events.at(-1)).toMatchObject({ kind: 'result', data: { text: 'ok' } })
  })

  it('with a long tool result give its start and the count of what was cut', () => {
    const dialogue = claudeDialogue(specOf())
    const content = [
      {
        type: 'tool_result',
        tool_use_id: 't',
        content: [{ type: 'text', text: 'ä'.repeat(50_000) }, { type: 'image' }],
      },
    ]
    const [event] = dialogue.push(line({ type: 'user', message: { content } })).events
    expect(event).toMatchObject({
      kind: 'tool_result',
      data: { toolCallId: 't', truncatedBytes: 100_000 + 8 - 65_536 },
    })
  })
})

describe('secrets', () => {
  it('are taken out of a text before it is cut, so that no half of one is left', () => {
    const secret = 'correct-horse-battery-staple'
    const redactText = (text: string) => text.replaceAll(secret, '[redacted]')
    const long = 'x'.repeat(65_536 - 10) + secret + 'y'.repeat(70_000)
    const content = [
      { type: 'text', text: long },
      { type: 'thinking', thinking: long },
      { type: 'tool_use', id: 't', name: 'Write', input: { content: `${long}${'z'.repeat(1_100_000)}` } },
      { type: 'unknown', text: long },
    ]
    const dialogue = claudeDialogue(specOf(), { redactText })
    const output = pushAll(
      dialogue,
      Buffer.concat([
        line({ type: 'assistant', message: { content } }),
        line({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't', content: long }] } }),
        Buffer.from(`${long}\n`),
        line({ type: 'result', subtype: 'success', result: long }),
      ]),
    )
    const kinds = new Set(output.events.map((event) => event.kind))
    expect(kinds).toEqual(new Set(['text', 'thinking', 'tool_call', 'raw', 'tool_result', 'usage', 'result']))
    expect(JSON.stringify(output.events)).not.toContain('correct-ho')
    expect(JSON.stringify(output.events)).not.toContain('staple')
  })
})

function pushAll(dialogue: HarnessDialogue, bytes: Uint8Array) {
  const outputs = []
  for (let at = 0; at < bytes.length; at += 65_536) outputs.push(dialogue.push(bytes.subarray(at, at + 65_536)))
  return merged(outputs)
}
