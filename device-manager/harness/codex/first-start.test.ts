import { expect, test } from 'vitest'
import { codexFirstStart } from './first-start.ts'
import { codexRequestIds } from './lines.ts'

const began = { id: codexRequestIds.thread, result: { thread: { id: 'thr_1' } } }
const refused = (id: number) => ({ id, error: { message: 'no such method' } })

/** Plays the talk against these lines; returns the methods that were asked for, and `end` where its input was closed. */
function talkTo(...said: Record<string, unknown>[]): unknown[] {
  const talk = codexFirstStart.talk!()
  const methodsOf = (lines: string) =>
    lines
      .split('\n')
      .filter(Boolean)
      .map((line) => (JSON.parse(line) as { method: string }).method)
  return [
    ...methodsOf(talk.opening),
    ...said.map((line) => talk.answer(line)).flatMap((answer) => (answer === null ? ['end'] : methodsOf(answer))),
  ]
}

const opening = ['initialize', 'initialized', 'thread/start']

test('a thread is begun, takes an item and is deleted', () => {
  const said = [
    { id: codexRequestIds.initialize, result: {} },
    { method: 'thread/started' },
    began,
    { id: codexRequestIds.item, result: {} },
  ]
  const asked = [...opening, 'thread/inject_items', 'thread/delete', 'end']
  expect(talkTo(...said, { id: codexRequestIds.deletion, result: {} })).toEqual(asked)
})

test('an answer that comes again, or before its question, is ignored', () => {
  expect(
    talkTo({ id: codexRequestIds.deletion, result: {} }, { id: codexRequestIds.item, result: {} }, began, began, began),
  ).toEqual([...opening, 'thread/inject_items'])
})

test('one that refuses the thread or the item is left alone; one that keeps the thread fails', () => {
  expect(talkTo(refused(codexRequestIds.thread))).toEqual([...opening, 'end'])
  expect(talkTo(began, refused(codexRequestIds.item))).toEqual([...opening, 'thread/inject_items', 'end'])
  expect(() => talkTo(began, { id: codexRequestIds.item, result: {} }, refused(codexRequestIds.deletion))).toThrow(
    'did not delete the thread',
  )
  expect(() => talkTo({ id: codexRequestIds.thread, result: { thread: {} } })).toThrow('invalid_type')
})
