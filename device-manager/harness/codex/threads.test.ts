import { describe, expect, it } from 'vitest'
import { merged, outputBytes, recording, recordingNames, specOf } from '../../../test/kit/harness-recordings.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { codexDialogue } from './dialogue.ts'

const left = { exitCode: 0, signal: null, stoppedFor: null }
const full: RunSpec['permissions'] = { allow: [], ask: [], deny: [], defaultMode: 'full' }
const begin = [
  { id: 2, result: { thread: { id: 'main' } } },
  { id: 3, result: { turn: { id: 'turn' } } },
]
const item = (threadId: string, fields: object) => ({ method: 'item/completed', params: { threadId, item: fields } })
const says = (text: string, threadId = 'main') => item(threadId, { type: 'agentMessage', id: `m-${text}`, text })
const spawns = (threads: readonly string[], threadId = 'main', id = 'spawn') =>
  item(threadId, {
    type: 'collabAgentToolCall',
    id,
    tool: 'spawnAgent',
    status: 'completed',
    receiverThreadIds: threads,
  })
const last = { inputTokens: 10, cachedInputTokens: 0, cacheWriteInputTokens: 0, outputTokens: 5 }
const used = (threadId = 'main', turnId = 'turn') => ({
  method: 'thread/tokenUsage/updated',
  params: { threadId, turnId, tokenUsage: { last } },
})
const failed = (message: string, threadId = 'main') => ({
  method: 'error',
  params: { threadId, turnId: 'x', willRetry: false, error: { message, codexErrorInfo: 'usageLimitExceeded' } },
})
const ends = (turn: object = {}, threadId = 'main') => ({
  method: 'turn/completed',
  params: { threadId, turn: { id: 'turn', status: 'completed', ...turn } },
})

function play(lines: readonly object[]) {
  const dialogue = codexDialogue(specOf({ harness: 'codex', permissions: full }))
  const bytes = [...begin, ...lines].map((line) => Buffer.from(`${JSON.stringify(line)}\n`))
  const output = merged([dialogue.open(), ...bytes.map((each) => dialogue.push(each))])
  const told = (kind: string) => output.events.flatMap((event) => (event.kind === kind ? [event.data] : []))
  const raw = output.events.flatMap((event) =>
    event.kind === 'raw' ? [JSON.parse(String(outputBytes(event))) as object] : [],
  )
  return { output, told, raw, outcome: dialogue.outcome(left) }
}

describe('a thread that the run did not begin', () => {
  it('is kept raw, and is neither words, usage, error nor result of the run', () => {
    const foreign = [says('Of nobody.', 'b'), used('b'), failed('No more.', 'b'), ends({ status: 'failed' }, 'b')]
    const { output, told, raw, outcome } = play([...foreign, says('Mine.'), used(), ends()])
    expect(raw).toEqual(foreign)
    expect(told('text')).toEqual([{ text: 'Mine.' }])
    expect(told('error')).toEqual([])
    expect(told('usage')).toMatchObject([{ inputTokens: 10, outputTokens: 5 }])
    expect(told('result')).toEqual([{ text: 'Mine.', isError: false }])
    expect(output.finished).toBe(true)
    expect(outcome).toMatchObject({ exitReason: 'completed', sessionId: 'main' })
  })

  it('names no subagents of the run', () => {
    expect(play([spawns(['c'], 'b'), says('Of nobody.', 'c')]).told('text')).toEqual([])
  })
})

describe('a subagent', () => {
  it('speaks under the call that named it, and counts, but neither ends nor fails the run', () => {
    const { told, raw, outcome } = play([
      spawns(['sub']),
      says('Below.', 'sub'),
      spawns(['deep'], 'sub'),
      says('Deeper.', 'deep'),
      used('sub', 'other-turn'),
      failed('No more.', 'sub'),
      ends({ status: 'failed' }, 'sub'),
      ends({ status: 'failed', error: null }),
    ])
    expect(raw).toEqual([])
    expect(told('text')).toEqual([
      { text: 'Below.', parentToolCallId: 'spawn' },
      { text: 'Deeper.', parentToolCallId: 'sub/spawn' },
    ])
    expect(told('usage')).toMatchObject([{ inputTokens: 10 }])
    expect(told('error')).toMatchObject([{ message: 'No more.' }])
    expect(outcome).toMatchObject({ exitReason: 'error', message: 'codex failed without saying why.' })
  })

  it('is known by what codex itself writes', () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex', permissions: full }))
    const { events } = dialogue.push(recording('codex', 'subagent'))
    const texts = events.flatMap((event) => (event.kind === 'text' ? [event.data] : []))
    const [spawn] = events.flatMap((event) => (event.kind === 'tool_call' ? [event.data.toolCallId] : []))
    expect(texts).toEqual([{ text: 'words' }, { text: 'words', parentToolCallId: spawn }])
    expect(dialogue.outcome(left)).toMatchObject({ exitReason: 'completed' })
  })
})

describe("usage that is told again, as with news of the account's limits", () => {
  const total = (inputTokens: number, turnId = 'turn') => {
    const { method, params } = used('main', turnId)
    return { method, params: { ...params, tokenUsage: { last, total: { inputTokens } } } }
  }

  it('counts once', () => {
    const { told } = play([total(10), total(10), total(20)])
    expect(told('usage')).toMatchObject([{ inputTokens: 10 }, { inputTokens: 20, outputTokens: 10 }])
  })

  it('is not of this run where the session had it before', () => {
    const { told } = play([total(500, 'earlier'), total(500), total(510)])
    expect(told('usage')).toMatchObject([{ inputTokens: 10, outputTokens: 5 }])
  })
})

describe('the end of a turn', () => {
  it('that is not the turn of the prompt ends nothing', () => {
    const stale = ends({ id: 'earlier' })
    const { output, raw, outcome } = play([stale])
    expect(output.finished).toBe(false)
    expect(raw).toEqual([stale])
    expect(outcome).toMatchObject({ exitReason: 'error' })
  })

  it('counts once', () => {
    const again = ends({ status: 'failed' })
    const { told, raw, outcome } = play([says('Mine.'), ends(), again])
    expect(raw).toEqual([again])
    expect(told('result')).toHaveLength(1)
    expect(outcome).toMatchObject({ exitReason: 'completed' })
  })
})

it.each([0, 1, 2, 3, 5, 9])('an error for the request %i, which waits for no answer, does not end the run', (id) => {
  const stray = { id, error: { message: 'What?' } }
  const { output, raw, outcome } = play([stray, says('Mine.'), ends()])
  expect(raw).toEqual([stray])
  expect(output.events.at(-1)).toMatchObject({ kind: 'result' })
  expect(outcome).toMatchObject({ exitReason: 'completed' })
})

it.each(recordingNames('codex'))('nothing that codex wrote is of a strange thread or turn: "%s"', (name) => {
  const dialogue = codexDialogue(specOf({ harness: 'codex', permissions: full }))
  const raw = dialogue
    .push(recording('codex', name))
    .events.flatMap((event) => (event.kind === 'raw' ? [String(outputBytes(event))] : []))
  expect(raw.filter((line) => /"method":"(item|turn|thread|error)/.test(line))).toEqual([])
})
