import { expect, test } from 'vitest'
import { ClockWatch } from './clock-watch.ts'
import { realWorld, type World } from './world.ts'

/** A clock whose timer fires when the test says so. */
function watched() {
  let now = 0
  let timer: (() => void) | null = null
  const after: World['after'] = (_, work) => {
    timer = work
    return () => void (timer = null)
  }
  const jumps: number[] = []
  const world = { ...realWorld, now: () => now, after }
  const watch = new ClockWatch({ world, jumpMs: 10_000, onJump: (ms) => void jumps.push(ms) })
  const pass = (ms: number) => void (now += ms)
  return { watch, jumps, pass, fire: () => timer?.(), isRunning: () => timer !== null }
}

test('only a jump by more than it says is told, once, in both directions', () => {
  const { watch, jumps, pass, fire } = watched()
  watch.start(5_000)
  for (const ms of [5_000, 10_000, 10_001, 5_000, -20_000, 5_000]) {
    pass(ms)
    fire()
  }
  expect(jumps).toEqual([10_001, -20_000])
})

test('who looks before the timer is told, and the timer does not tell it again', () => {
  const { watch, jumps, pass, fire } = watched()
  watch.start(5_000)
  pass(3_600_000)
  watch.check()
  expect(jumps).toEqual([3_600_000])
  fire()
  expect(jumps).toHaveLength(1)
})

test('time before its start is no jump, and it ends when it is stopped', () => {
  const { watch, jumps, pass, fire, isRunning } = watched()
  pass(3_600_000)
  watch.start(5_000)
  fire()
  expect(jumps).toEqual([])
  watch.stop()
  expect(isRunning()).toBe(false)
})
