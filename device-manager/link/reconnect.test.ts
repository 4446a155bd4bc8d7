import { describe, expect, it } from 'vitest'
import { linkLimits } from '../../shared/device/limits.ts'
import { reconnectSpread } from '../../shared/device/reconnect.ts'
import { delayWithRunsMs, linkStep, startState, type LinkEvent, type LinkState } from './machine.ts'

// The link machines of many devices against one server, on a clock of their own.

const delays = { minMs: linkLimits.reconnectMinMs, maxMs: linkLimits.reconnectMaxMs }

/** mulberry32: the same numbers every time. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Loss {
  devices: number
  /** From the loss until the server takes connections again. */
  awayMs: number
  /** Says how it is lost: the server ends, or nothing is heard any more. */
  by: 'server' | 'silence'
  retryAfterMs?: number
  holdsRuns?: boolean
  seed?: number
}

/** When each device is back, in milliseconds after the server (or the wire) is. */
function returns({ devices, awayMs, by, retryAfterMs, holdsRuns = false, seed = 1 }: Loss): number[] {
  const random = numbers(seed)
  const spreadMs = by === 'server' ? reconnectSpread(devices) : 0
  return Array.from({ length: devices }, () => {
    let state: LinkState = startState
    const apply = (event: LinkEvent): number => {
      const [next, effects] = linkStep(state, event, delays)
      state = next
      const wait = effects.find((effect) => effect.type === 'wait')
      return wait ? wait.ms : 0
    }
    const closed = (now: number): LinkEvent => ({
      type: 'closed',
      code: 1006,
      now,
      random: random(),
      retryAfterMs: now === 0 ? null : (retryAfterMs ?? null),
      spreadMs,
      hasLiveRuns: holdsRuns,
      runsWithinMs: holdsRuns ? delayWithRunsMs(delays, reconnectSpread(devices)) : null,
    })
    apply({ type: 'start' })
    apply({ type: 'opened' })
    apply({ type: 'welcomed', now: -linkLimits.stableMs })
    let now = 0
    for (let wait = apply(closed(now)); ; wait = apply(closed(now))) {
      now += wait
      apply({ type: 'due' })
      if (now >= awayMs) return now - awayMs
    }
  })
}

function busiestSecond(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b)
  let most = 0
  let first = 0
  // Any second, not only those that begin at a full one.
  for (let last = 0; last < sorted.length; last++) {
    while (sorted[last]! - sorted[first]! >= 1_000) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

const seeds = Array.from({ length: 20 }, (_, at) => at + 1)
const aways = [0, 500, 3_000, 10_000, 35_000, 60_000, 200_000]

describe('500 devices that lose their server at once', () => {
  it.each(aways)('come back spread, when it is away for %s ms', (awayMs) => {
    const devices = 500
    const most = seeds.map((seed) => busiestSecond(returns({ devices, awayMs, by: 'server', seed })))
    // Row 25: at most three times the mean of the first minute, which is 25 a second; any second of any of these histories
    // is held to a little more, since it is chance that counts there.
    const mean = most.reduce((sum, each) => sum + each) / most.length
    expect(mean).toBeLessThanOrEqual((3 * devices) / 60)
    expect(Math.max(...most)).toBeLessThanOrEqual(35)
  })

  it.each(aways)('are all back within a minute, when it is away for %s ms', (awayMs) => {
    for (const seed of seeds) {
      const times = returns({ devices: 500, awayMs, by: 'server', seed })
      expect(Math.max(...times)).toBeLessThanOrEqual(60_000)
    }
  })

  it('would come back all at once without the spread', () => {
    expect(busiestSecond(returns({ devices: 500, awayMs: 500, by: 'silence' }))).toBeGreaterThan(200)
  })

  it('keep a Retry-After, and do not all come when it is over', () => {
    const times = returns({ devices: 500, awayMs: 3_000, by: 'server', retryAfterMs: 2_000 })
    expect(busiestSecond(times)).toBeLessThanOrEqual(35)
  })
})

describe('one device', () => {
  it.each([
    { name: 'alone, whose server restarts', devices: 1, by: 'server' },
    { name: 'of a dozen, whose server restarts', devices: 12, by: 'server' },
    { name: 'of 500, whose own wire is cut', devices: 500, by: 'silence' },
  ] as const)('$name, is back soon', ({ devices, by }) => {
    for (const seed of seeds) {
      const after = (awayMs: number) => Math.max(...returns({ devices, awayMs, by, seed }))
      expect(after(0)).toBeLessThanOrEqual(1_000)
      // Row 18: within 5 s of healing after 10 s; row 19: within 15 s after 100 s.
      expect(after(10_000)).toBeLessThanOrEqual(5_000)
      expect(after(100_000)).toBeLessThanOrEqual(15_000)
    }
  })
})

it('the spread grows with the devices, up to a minute', () => {
  expect([0, 1, 12, 500, 750, 10_000].map(reconnectSpread)).toEqual([0, 80, 960, 40_000, 60_000, 60_000])
})

describe('devices that hold runs', () => {
  it.each(['server', 'silence'] as const)('come back within 5 s, 19 of 20, however long the %s lasts', (by) => {
    for (const awayMs of [3_000, 60_000, 180_000, 3_600_000]) {
      const times = seeds
        .flatMap((seed) => returns({ devices: 20, awayMs, by, holdsRuns: true, seed }))
        .toSorted((a, b) => a - b)
      expect(times[Math.ceil(times.length * 0.95) - 1]).toBeLessThanOrEqual(5_000)
    }
  })

  it.each([
    ['server', 60_000],
    ['server', 180_000],
    ['server', 3_600_000],
    // A shorter silence is that of a wire, and each device's own matter.
    ['silence', 3_600_000],
  ] as const)('are spread where they are 10,000, after a %s of %s ms', (by, awayMs) => {
    const times = returns({ devices: 10_000, awayMs, by, holdsRuns: true })
    expect(busiestSecond(times)).toBeLessThan(500)
    expect(Math.max(...times)).toBeLessThanOrEqual(66_000)
  })
})
