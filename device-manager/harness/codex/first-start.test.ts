import { expect, test } from 'vitest'
import { codexFirstStart } from './first-start.ts'
import { ids } from './lines.ts'

const began = { id: ids.thread, result: { thread: { id: 'thr_1' } } }
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
  const said = [{ id: ids.initialize, result: {} }, { method: 'thread/started' }, began, { id: ids.item, result: {} }]
  const asked = [...opening, 'thread/inject_items', 'thread/delete', 'end']
  expect(talkTo(...said, { id: ids.deletion, result: {} })).toEqual(asked)
})

test('an answer that comes again, or before its question, is ignored', () => {
  expect(talkTo({ id: ids.deletion, result: {} }, { id: ids.item, result: {} }, began, began, began)).toEqual([
    ...opening,
    'thread/inject_items',
  ])
})

test('one that refuses the thread or the item is left alone; one that keeps the thread fails', () => {
  expect(talkTo(refused(ids.thread))).toEqual([...opening, 'end'])
  expect(talkTo(began, refused(ids.item))).toEqual([...opening, 'thread/inject_items', 'end'])
  expect(() => talkTo(began, { id: ids.item, result: {} }, refused(ids.deletion))).toThrow('did not delete the thread')
  expect(() => talkTo({ id: ids.thread, result: { thread: {} } })).toThrow('invalid_type')
})
