import { expect, test } from 'vitest'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { Contact } from './client.ts'

const minute = 60_000
const everyMs = 15_000

/** A clock that a test moves to the next look, as many milliseconds late as it says. */
function look() {
  let now = 1_000_000
  let wall = 0
  let timer: { ms: number; work: () => void } | null = null
  const after: World['after'] = (ms, work) => {
    timer = { ms, work }
    return () => void (timer = null)
  }
  const world: World = { ...realWorld, now: () => now + wall, monotonic: () => now, after }
  const contact = new Contact(world, () => now)
  const seen: number[] = []
  contact.keepLooking(everyMs, (silentMs) => void seen.push(silentMs))
  return {
    contact,
    next: (lateMs = 0) => {
      const { ms, work } = timer!
      now += ms + lateMs
      work()
      return seen.at(-1)
    },
    isLooking: () => timer !== null,
    setWall: (ms: number) => void (wall += ms),
  }
}

test('the silence is what passed since the control plane was heard', () => {
  const { contact, next } = look()
  expect([next(), next()]).toEqual([everyMs, 2 * everyMs])
  contact.heard()
  expect(next(20_000)).toBe(everyMs + 20_000)
})

test('a machine that slept has a minute to reach the control plane', () => {
  const { contact, next } = look()
  const hours = 120 * minute
  expect([next(hours), next(), next(), next()]).toEqual([0, 0, 0, 0])
  expect(next()).toBe(hours + 5 * everyMs)
  expect([next(hours), next()]).toEqual([0, 0])
  contact.heard()
  expect([next(), next(), next()]).toEqual([0, 0, 3 * everyMs])
})

test.for([24 * 60, -60])('a wall clock that is set by %i minutes is neither silence nor sleep', (minutes) => {
  const { contact, next, setWall } = look()
  contact.heard()
  next()
  setWall(minutes * minute)
  expect([next(), next(), next(), next(), next()]).toEqual([2, 3, 4, 5, 6].map((looks) => looks * everyMs))
  // Not within the minute after a sleep either.
  next(120 * minute)
  setWall(minutes * minute)
  expect([next(), next(), next(), next()]).toEqual([0, 0, 0, expect.any(Number)])
})

test('nothing is looked at once it is stopped', () => {
  const { contact, next, isLooking } = look()
  next()
  contact.stop()
  expect(isLooking()).toBe(false)
})
