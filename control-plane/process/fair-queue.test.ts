import { expect, test } from 'vitest'
import { FairQueue, type QueuedItem } from './fair-queue.ts'

interface Item extends QueuedItem {
  name: string
}
const item = (group: string, member: string, name: string): Item => ({ group, member, name })

const fill = (...items: Item[]) => {
  const turns = new FairQueue<Item>()
  for (const one of items) turns.add(one)
  return turns
}

const drain = (turns: FairQueue<Item>) => {
  const names: string[] = []
  for (let next = turns.take(); next !== null; next = turns.take()) names.push(next.name)
  return names
}

test('groups take turns, and so do the members of a group, however many requests one makes', () => {
  const greedy = Array.from({ length: 4 }, (_, at) => item('w1', 'a', `a${at}`))
  const turns = fill(...greedy, item('w1', 'b', 'b0'), item('w2', 'c', 'c0'), item('w2', 'c', 'c1'))
  expect(drain(turns)).toEqual(['a0', 'c0', 'b0', 'c1', 'a1', 'a2', 'a3'])
})

test('a request that cannot be served now keeps its place', () => {
  const turns = fill(item('w1', 'a', 'a0'), item('w2', 'b', 'b0'))
  expect(turns.take(({ group }) => group !== 'w1')?.name).toBe('b0')
  expect(turns.take(({ group }) => group !== 'w1')).toBeNull()
  expect(drain(turns)).toEqual(['a0'])
})

test('counts match the waiting requests', () => {
  const [one, two] = [item('w', 'a', '1'), item('w', 'a', '2')]
  const turns = fill(one, two)
  expect(turns.countOf('a')).toBe(2)
  expect([turns.remove(one), turns.remove(one)]).toEqual([true, false])
  expect([turns.countOf('a'), turns.all()]).toEqual([1, [two]])
  drain(turns)
  expect([turns.countOf('a'), turns.all()]).toEqual([0, []])
})
