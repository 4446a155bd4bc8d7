import { describe, expect, test } from 'vitest'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { Watchdog, type Trip, type WatchLimits } from './watchdog.ts'

const minute = 60_000

/** A world whose clocks are moved by hand; `jump` moves some of them without running timers in between, as a suspended machine does. */
function handWorld() {
  let wall = 1_767_225_600_000
  let monotonic = 1_000
  let boot = 5_000_000
  let timers: { at: number; fn: () => void }[] = []
  const world: World = {
    ...realWorld,
    now: () => wall,
    monotonic: () => monotonic,
    after: (ms, fn) => {
      const timer = { at: monotonic + ms, fn }
      timers.push(timer)
      return () => {
        timers = timers.filter((each) => each !== timer)
      }
    },
  }
  const run = () => {
    for (let due = timers.find(({ at }) => at <= monotonic); due; due = timers.find(({ at }) => at <= monotonic)) {
      timers = timers.filter((each) => each !== due)
      due.fn()
    }
  }
  return {
    world,
    sinceBoot: () => boot,
    pass(ms: number) {
      for (let left = ms; left > 0; left -= 1_000) {
        wall += Math.min(left, 1_000)
        monotonic += Math.min(left, 1_000)
        boot += Math.min(left, 1_000)
        run()
      }
    },
    jump(clocks: { wall?: number; monotonic?: number; boot?: number }) {
      wall += clocks.wall ?? 0
      monotonic += clocks.monotonic ?? 0
      boot += clocks.boot ?? 0
      run()
    },
  }
}

function watch(change: Partial<WatchLimits> = {}) {
  const hand = handWorld()
  const trips: Trip[] = []
  const watchdog = new Watchdog(
    hand,
    { runMs: 24 * 60 * minute, noProgressMs: 60 * minute, firstEventMs: 5 * minute, toolCalls: 3, ...change },
    (trip) => trips.push(trip),
  )
  watchdog.start()
  return { ...hand, watchdog, reasons: () => trips.map(({ exitReason }) => exitReason) }
}

describe('limits of a run', () => {
  test('no first event', () => {
    const run = watch()
    run.pass(4.5 * minute)
    expect(run.reasons()).toEqual([])
    run.pass(minute)
    expect(run.reasons()).toEqual(['harness_start_failed'])
  })

  test('silence after the first event; each event starts it anew', () => {
    const run = watch()
    run.watchdog.sawEvent()
    run.pass(59 * minute)
    run.watchdog.sawEvent()
    run.pass(59 * minute)
    expect(run.reasons()).toEqual([])
    run.pass(2 * minute)
    expect(run.reasons()).toEqual(['no_progress'])
  })

  test('the whole time, whatever happens in between', () => {
    const run = watch({ runMs: 2 * 60 * minute })
    for (let i = 0; i < 13; i++) {
      run.watchdog.sawEvent()
      run.pass(10 * minute)
    }
    expect(run.reasons()).toEqual(['timeout'])
  })

  test('a night’s sleep is no silence, whichever clock went on; but it counts for the whole time', () => {
    const run = watch({ runMs: 9 * 60 * minute })
    run.watchdog.sawEvent()
    run.pass(10 * minute)
    const night = 8 * 60 * minute
    run.jump({ wall: night, monotonic: night, boot: night })
    run.pass(minute)
    expect(run.reasons()).toEqual([])
    run.jump({ wall: 55 * minute, boot: 55 * minute })
    run.pass(minute)
    expect(run.reasons()).toEqual(['timeout'])
  })

  test.for([24 * 60, 365 * 24 * 60, -24 * 60])(
    'a wall clock that is set by %i minutes ends nothing and spares nothing',
    (minutes) => {
      const run = watch({ runMs: 2 * 60 * minute })
      run.watchdog.sawEvent()
      run.pass(30 * minute)
      run.jump({ wall: minutes * minute })
      run.pass(29 * minute)
      run.watchdog.sawEvent()
      run.pass(30 * minute)
      run.jump({ wall: -minutes * minute })
      expect(run.reasons()).toEqual([])
      run.watchdog.sawEvent()
      run.pass(32 * minute)
      expect(run.reasons()).toEqual(['timeout'])
    },
  )

  test('two hours of sleep count, although neither timers nor the monotonic clock see them', () => {
    const run = watch({ runMs: 3 * 60 * minute })
    run.watchdog.sawEvent()
    run.pass(50 * minute)
    run.watchdog.sawEvent()
    run.jump({ wall: 2 * 60 * minute, boot: 2 * 60 * minute })
    run.pass(9 * minute)
    expect(run.reasons()).toEqual([])
    run.pass(2 * minute)
    expect(run.reasons()).toEqual(['timeout'])
  })

  test('one tool call too many, once', () => {
    const run = watch()
    for (let i = 0; i < 3; i++) run.watchdog.sawToolCall()
    expect(run.reasons()).toEqual([])
    for (let i = 0; i < 3; i++) run.watchdog.sawToolCall()
    expect(run.reasons()).toEqual(['budget_exceeded'])
  })

  test('stopped is stopped', () => {
    const run = watch()
    run.watchdog.stop()
    run.pass(30 * 60 * minute)
    run.watchdog.sawToolCall()
    expect(run.reasons()).toEqual([])
  })
})
