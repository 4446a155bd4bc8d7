import { expect, it } from 'vitest'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { WordJoiner } from './word-joiner.ts'

const text = (said: string, parentToolCallId?: string): RunEventBody => ({
  kind: 'text',
  data: { text: said, ...(parentToolCallId !== undefined && { parentToolCallId }) },
})
const thought = (said: string): RunEventBody => ({ kind: 'thinking', data: { text: said } })
const result: RunEventBody = { kind: 'result', data: { text: 'done', isError: false } }

/** A joiner whose clock goes by the test. */
function joinerAt() {
  let now = 0
  let timer: { at: number; fn: () => void } | null = null
  const told: [number, ...string[]][] = []
  const joiner = new WordJoiner({
    world: {
      monotonic: () => now,
      after(ms, fn) {
        timer = { at: now + ms, fn }
        return () => (timer = null)
      },
    },
    tell: (bodies) =>
      void told.push([now, ...bodies.map(({ kind, data }) => `${kind} ${'text' in data ? data.text : ''}`)]),
  })
  const goTo = (at: number) => {
    while (timer !== null && timer.at <= at) {
      const due = timer
      now = due.at
      timer = null
      due.fn()
    }
    now = at
  }
  return { joiner, told, goTo }
}

it('tells the first piece at once, and those that follow closely as one, 50 ms later', () => {
  const { joiner, told, goTo } = joinerAt()
  for (const [at, piece] of [
    [0, 'It '],
    [10, 'is '],
    [20, 'so'],
    [60, ', '],
    [70, 'yes'],
    [500, '.'],
  ] as const) {
    goTo(at)
    joiner.take([text(piece)])
  }
  goTo(1_000)
  expect(told).toEqual([
    [0, 'text It '],
    [50, 'text is so'],
    [100, 'text , yes'],
    [500, 'text .'],
  ])
})

it('tells all else at once, behind the words before it, and joins no words of two kinds or of two speakers', () => {
  const { joiner, told, goTo } = joinerAt()
  joiner.take([text('a')])
  goTo(10)
  joiner.take([text('b'), thought('c'), thought('d'), text('e'), text('f', 'call'), text('g', 'call')])
  goTo(20)
  joiner.take([result])
  expect(told).toEqual([
    [0, 'text a'],
    [10, 'text b', 'thinking cd', 'text e'],
    [20, 'text fg', 'result done'],
  ])
})

it('joins no more than 16 Ki characters, and leaves bytes that are no text as they are', () => {
  const { joiner, told, goTo } = joinerAt()
  joiner.take([text('a')])
  goTo(10)
  joiner.take([text('b'.repeat(10_000)), text('c'.repeat(10_000)), { kind: 'text', data: { base64: 'AA==' } }])
  expect(told.at(-1)!.map((each) => (typeof each === 'number' ? each : each.length))).toEqual([10, 10_005, 10_005, 5])
})

it('tells what it holds when it is asked to, and nothing twice', () => {
  const { joiner, told, goTo } = joinerAt()
  joiner.take([text('a')])
  joiner.take([text('b')])
  joiner.flush()
  joiner.flush()
  goTo(1_000)
  expect(told).toEqual([
    [0, 'text a'],
    [0, 'text b'],
  ])
})
