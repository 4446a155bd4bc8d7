import { describe, expect, it } from 'vitest'
import { merged, outputBytes, recording, recordingNames, specOf } from '../../../test/kit/harness-recordings.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { claudeDialogue } from './dialogue.ts'

const left = { exitCode: 0, signal: null, stoppedFor: null }
const lineOf = (value: object) => `${JSON.stringify(value)}\n`
const init = (sessionId: string) => ({ type: 'system', subtype: 'init', session_id: sessionId })
const says = (text: string, sessionId: unknown, more: object = {}) => ({
  type: 'assistant',
  session_id: sessionId,
  message: { id: text, content: [{ type: 'text', text }], usage: { input_tokens: 10 } },
  ...more,
})
const result = (text: string, sessionId: string, more: object = {}) => ({
  type: 'result',
  subtype: 'success',
  session_id: sessionId,
  result: text,
  usage: { input_tokens: 10, output_tokens: 5 },
  ...more,
})

const ready = { type: 'control_response', response: { subtype: 'success', request_id: 'initialize' } }

/** `texts`: what a person has added to the prompt. */
function play(lines: readonly object[], { texts = [], ...changes }: Partial<RunSpec> & { texts?: string[] } = {}) {
  const dialogue = claudeDialogue(specOf(changes))
  for (const text of texts) dialogue.input(text)
  const output = merged([dialogue.open(), ...[ready, ...lines].map((line) => dialogue.push(Buffer.from(lineOf(line))))])
  const told = (kind: string) => output.events.flatMap((event) => (event.kind === kind ? [event.data] : []))
  const raw = output.events.flatMap((event) =>
    event.kind === 'raw' ? [JSON.parse(String(outputBytes(event))) as object] : [],
  )
  return { dialogue, output, told, raw, outcome: dialogue.outcome(left) }
}

describe('another session', () => {
  const foreign = [
    init('b'),
    says('Of b.', 'b'),
    says('Of a subagent of b.', 'b', { parent_tool_use_id: 'toolu_b' }),
    says('Of nobody.', 7),
    { type: 'user', session_id: 'b', message: { content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] } },
    { type: 'stream_event', session_id: 'b', event: {} },
    {
      type: 'rate_limit_event',
      session_id: 'b',
      rate_limit_info: { status: 'rejected', resetsAt: 1_900_000_000 },
    },
    result('Done with b.', 'b'),
  ]

  it('that speaks in the middle of a turn is kept raw, and is neither words, usage, result nor session of the run', () => {
    const { output, told, raw, outcome } = play([init('a'), ...foreign, says('Of a.', 'a'), result('Done.', 'a')])
    expect(raw).toEqual(foreign)
    expect(told('text')).toEqual([{ text: 'Of a.' }])
    expect(told('result')).toEqual([{ text: 'Done.', isError: false }])
    expect(told('session')).toEqual([{ sessionId: 'a' }])
    expect(told('usage').at(-1)).toMatchObject({ inputTokens: 10, outputTokens: 5 })
    expect(output.finished).toBe(true)
    expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: 'a' })
  })

  it('does not end the run', () => {
    const { output, outcome } = play([init('a'), ...foreign])
    expect(output).toMatchObject({ finished: false, closeInput: false })
    expect(outcome).toMatchObject({ exitReason: 'error', sessionId: 'a' })
  })

  it('that speaks after the end changes nothing', () => {
    const { raw, outcome } = play([
      init('a'),
      result('Done.', 'a'),
      init('b'),
      result('Bad.', 'b', { is_error: true, subtype: 'error_during_execution' }),
    ])
    expect(raw).toHaveLength(2)
    expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: 'a' })
  })

  const hook = (fields: object, more: object = {}) => ({
    type: 'control_request',
    request_id: 'r1',
    ...more,
    request: {
      subtype: 'hook_callback',
      callback_id: 'gate',
      input: { tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: 't', ...fields },
    },
  })
  const permission = {
    type: 'control_request',
    request_id: 'r1',
    session_id: 'b',
    request: { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'ls' } },
  }

  it.each([
    ['hook', hook({ session_id: 'b' }), '"permissionDecision":"deny"'],
    ['hook whose line is', hook({ session_id: 'a' }, { session_id: 'b' }), '"permissionDecision":"deny"'],
    ['permission', permission, '"behavior":"deny"'],
    ['unknown request', { ...permission, request: { subtype: 'new_thing' } }, '"subtype":"error"'],
  ])('gets a refusal and no question: %s', (_, request, refusal) => {
    const { output, raw } = play([init('a'), request])
    expect(output.asks).toEqual([])
    expect(output.write).toContain(refusal)
    expect(raw).toEqual([request])
  })

  it('takes no answer that is meant for a question of the run', () => {
    const { dialogue, output } = play([init('a'), hook({ session_id: 'a' }), hook({ session_id: 'b' })])
    expect(output.asks).toHaveLength(1)
    expect(dialogue.answer(output.asks[0]!.askId, { behavior: 'allow', rule: null }).write).toBeUndefined()
  })

  it('may be named in the input of a tool', () => {
    const input = { session_id: 'b' }
    const request = { subtype: 'can_use_tool', tool_name: 'mcp__x__y', input }
    const { output } = play([init('a'), { type: 'control_request', request_id: 'r', request }])
    expect(output.asks).toMatchObject([{ name: 'mcp__x__y', input }])
  })
})

describe('the session of the run', () => {
  it('is another one after a turn that began one, as `/clear` does', () => {
    const lines = [
      init('a'),
      says('Of a.', 'a'),
      // It counts no texts that came before the turn.
      result('Done.', 'a'),
      init('b'),
      result('', 'b'),
      init('b'),
      says('Of b.', 'b'),
      result('Done as well.', 'b'),
    ]
    const { told, raw, outcome } = play(lines, { texts: ['/clear', 'Go on.'] })
    expect(raw).toEqual([])
    expect(told('text')).toEqual([{ text: 'Of a.' }, { text: 'Of b.' }])
    expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: 'b' })
  })

  it('may be another one than the run was told to go on with', () => {
    const { told, raw } = play([init('b'), says('Of b.', 'b')], { resumeSessionId: 'a' })
    expect(raw).toEqual([])
    expect(told('session')).toEqual([{ sessionId: 'b', resumed: false }])
  })

  it('speaks by its subagents, too', () => {
    const { told, raw } = play([init('a'), says('Below.', 'a', { parent_tool_use_id: 't' })])
    expect(raw).toEqual([])
    expect(told('text')).toEqual([{ text: 'Below.', parentToolCallId: 't' }])
  })

  it('is another one after `/clear`, as claude itself writes it', () => {
    // Nobody answers what was asked then.
    const dialogue = claudeDialogue(specOf({ permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' } }))
    for (const text of ['/clear', 'And then this.']) dialogue.input(text)
    const { events } = dialogue.push(recording('claude', 'clear'))
    const sessions = events.flatMap((event) => (event.kind === 'session' ? [event.data.sessionId] : []))
    expect(new Set(sessions).size).toBe(2)
    expect(events.filter(({ kind }) => kind === 'tool_result')).toHaveLength(1)
    expect(dialogue.outcome(left)).toMatchObject({ exitReason: 'completed', sessionId: sessions.at(-1) })
  })

  it.each(recordingNames('claude').filter((name) => name !== 'clear'))(
    'is the only one that claude names: "%s"',
    (name) => {
      const whole = recording('claude', name).toString()
      const unnamed = whole.replaceAll(/"session_id":"[^"]*",?/g, (field) =>
        // A last field leaves no comma behind.
        field.endsWith(',') ? '' : '"unnamed":true',
      )
      const read = (text: string) => {
        const dialogue = claudeDialogue(specOf())
        return { ...merged([dialogue.push(Buffer.from(text)), dialogue.end()]), outcome: dialogue.outcome(left) }
      }
      const kinds = ({ events }: ReturnType<typeof read>) =>
        events.flatMap(({ kind }) => (kind === 'raw' ? [] : [kind]))
      const [one, other] = [read(whole), read(unnamed)]
      expect(kinds(one).filter((kind) => kind !== 'session')).toEqual(kinds(other))
      expect(one.asks).toHaveLength(other.asks.length)
    },
  )
})

describe('texts that wait for a turn of their own', () => {
  const state = (now: string) => ({ type: 'system', subtype: 'session_state_changed', state: now, session_id: 'a' })
  const call = {
    type: 'control_request',
    request_id: 'r',
    request: {
      subtype: 'hook_callback',
      callback_id: 'gate',
      input: { tool_name: 'Bash', tool_input: {}, tool_use_id: 't' },
    },
  }
  const turn = [init('a'), says('Of a.', 'a'), result('Done.', 'a')]
  const push = (dialogue: ReturnType<typeof claudeDialogue>, ...lines: object[]) =>
    merged(lines.map((line) => dialogue.push(Buffer.from(lineOf(line)))))
  const requestIn = (write: string | undefined): unknown =>
    (JSON.parse(write?.trim().split('\n').at(-1) ?? '') as { request_id: unknown }).request_id
  const answerTo = (requestId: unknown) => ({
    type: 'control_response',
    response: { subtype: 'success', request_id: requestId },
  })

  it('keep the input open, so that their calls are asked', () => {
    const { dialogue, output } = play([state('running'), ...turn], { texts: ['/review'] })
    expect(output).toMatchObject({ finished: false, closeInput: false })
    const second = push(dialogue, init('a'), call)
    expect(second.asks).toHaveLength(1)
    expect(push(dialogue, result('Reviewed.', 'a'), state('idle'))).toMatchObject({ finished: true, closeInput: true })
  })

  it('may be fewer than there seem to be: a text was taken in the middle of a turn', () => {
    const { dialogue, output } = play([state('running'), ...turn], { texts: ['And this.'] })
    expect(output.finished).toBe(false)
    const idle = push(dialogue, state('idle'))
    expect(idle.finished).toBe(false)
    expect(push(dialogue, answerTo(requestIn(idle.write)))).toMatchObject({ finished: true, closeInput: true })
  })

  it('may come when claude has just begun to rest: the run ends after them', () => {
    const { dialogue } = play([state('running'), ...turn], { texts: ['And this.'] })
    const first = requestIn(push(dialogue, state('idle')).write)
    const late = dialogue.input('Late.').write
    expect(late).toContain('Late.')
    expect(push(dialogue, answerTo(first)).finished).toBe(false)
    expect(requestIn(late)).not.toBe(first)
    expect(push(dialogue, state('running'), answerTo(requestIn(late))).finished).toBe(false)
    const again = push(dialogue, init('a'), call, result('Done as well.', 'a'), state('idle'))
    expect(again.asks).toHaveLength(1)
    expect(push(dialogue, answerTo(requestIn(again.write))).finished).toBe(true)
  })

  it('are not waited for where claude does not tell its state', () => {
    expect(play(turn, { texts: ['And this.'] }).output.finished).toBe(true)
  })
})

it('counts a result that comes twice once', () => {
  const twice = result('Done.', 'a', { uuid: 'u', queued_turn_count: 1 })
  const { told, raw } = play([init('a'), twice, twice, init('a'), result('Done as well.', 'a', { uuid: 'v' })])
  expect(raw).toEqual([twice])
  expect(told('result')).toHaveLength(2)
  expect(told('usage').at(-1)).toMatchObject({ inputTokens: 20, outputTokens: 10 })
})
