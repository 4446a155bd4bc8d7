import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { closeCodes, linkLimits } from '../../shared/device/limits.ts'
import { delayWithRunsMs, linkStep, startState, type LinkEvent, type LinkState } from './machine.ts'

const delays = { minMs: 1_000, maxMs: 60_000 }
const closed = (changes: Partial<LinkEvent & { type: 'closed' }> = {}): LinkEvent => ({
  type: 'closed',
  code: 1006,
  now: 0,
  random: 1,
  retryAfterMs: null,
  spreadMs: 0,
  runsWithinMs: null,
  hasLiveRuns: false,
  ...changes,
})

function play(...events: LinkEvent[]) {
  let state: LinkState = startState
  const waits: number[] = []
  const effects: string[] = []
  for (const event of events) {
    const [next, wanted] = linkStep(state, event, delays)
    state = next
    for (const effect of wanted) {
      effects.push(effect.type)
      if (effect.type === 'wait') waits.push(effect.ms)
    }
  }
  return { state, waits, effects }
}

const fall: LinkEvent[] = [{ type: 'due' }, closed()]

describe('the link machine', () => {
  it('connects, greets and opens', () => {
    const { state, effects } = play({ type: 'start' }, { type: 'opened' }, { type: 'welcomed', now: 5 })
    expect(effects).toEqual(['connect', 'hello'])
    expect(state).toMatchObject({ phase: 'open', openedAt: 5 })
  })

  it('doubles the delay, up to 4 s at first, then 12 s, then a minute', () => {
    const { waits } = play({ type: 'start' }, closed(), ...Array.from({ length: 41 }, () => fall).flat())
    expect(waits.slice(0, 5)).toEqual([1_000, 2_000, 4_000, 4_000, 4_000])
    expect(waits.slice(11, 13)).toEqual([4_000, 12_000])
    expect(waits.slice(39)).toEqual([12_000, 60_000, 60_000])
  })

  it('keeps the delay of a device that holds runs at 4 s, or at what the server asked for, however long it is down', () => {
    const down = (runsWithinMs: number) =>
      play(
        { type: 'start' },
        ...Array.from({ length: 60 }, () => [closed({ runsWithinMs }), { type: 'due' } as const]).flat(),
      )
    expect(down(delayWithRunsMs(delays, 0)).waits.slice(2)).toEqual(Array.from({ length: 58 }, () => 4_000))
    expect(Math.max(...down(delayWithRunsMs(delays, 9_000)).waits)).toBe(9_000)
    expect(Math.max(...down(delayWithRunsMs(delays, 60_000)).waits)).toBe(60_000)
    expect(down(delayWithRunsMs(delays, 60_000)).waits.slice(0, 3)).toEqual([1_000, 2_000, 4_000])
  })

  it('starts over only after a stable minute', () => {
    const up = (now: number): LinkEvent[] => [{ type: 'due' }, { type: 'opened' }, { type: 'welcomed', now }]
    const short = play({ type: 'start' }, closed(), ...up(0), closed({ now: 10_000 }))
    expect(short.waits.at(-1)).toBe(2_000)
    const long = play({ type: 'start' }, closed(), ...fall, ...up(0), closed({ now: linkLimits.stableMs }))
    expect(long.waits.at(-1)).toBe(1_000)
  })

  it('ignores the end of a connection that it does not have', () => {
    expect(play(closed()).effects).toEqual([])
    const again = play({ type: 'start' }, closed({ now: 7 }), closed({ now: 9_000 }))
    expect(again.effects).toEqual(['connect', 'wait'])
    expect(again.state).toMatchObject({ attempt: 1, dueAt: 1_007 })
  })

  it('counts a stable minute from the welcome, and an attempt that was never welcomed as none', () => {
    const up = (now: number): LinkEvent[] => [{ type: 'due' }, { type: 'opened' }, { type: 'welcomed', now }]
    const late = play({ type: 'start' }, closed(), ...up(50_000), closed({ now: 50_000 + linkLimits.stableMs - 1 }))
    expect(late.waits.at(-1)).toBe(2_000)
    const greeted: LinkEvent[] = [{ type: 'due' }, { type: 'opened' }, closed({ now: 10 * linkLimits.stableMs })]
    expect(play({ type: 'start' }, closed(), ...greeted).waits).toEqual([1_000, 2_000])
  })

  it('keeps a Retry-After', () => {
    expect(play({ type: 'start' }, closed({ retryAfterMs: 7_000 })).waits).toEqual([7_000])
  })

  it('spreads its return where the server asks for longer than the delay, and keeps its place in it', () => {
    const up: LinkEvent[] = [{ type: 'opened' }, { type: 'welcomed', now: 0 }]
    const lost = (random: number, spreadMs: number) => closed({ now: linkLimits.stableMs, random, spreadMs })
    for (const random of [0, 0.25, 1]) {
      const { waits } = play({ type: 'start' }, ...up, lost(random, 40_000), { type: 'due' }, lost(random, 40_000))
      expect(waits).toEqual([40_000 * random, 40_000 * (0.9 + 0.2 * random)])
    }
    // Shorter than the delay it is no matter.
    expect(play({ type: 'start' }, ...up, lost(0, 900)).waits).toEqual([250])
    expect(
      play({ type: 'start' }, ...up, closed({ retryAfterMs: 2_000, random: 0.5, spreadMs: 40_000 })).waits,
    ).toEqual([22_000])
  })

  it('stops for ever at a fatal close and at no other', () => {
    for (const [name, { code, fatal }] of Object.entries(closeCodes)) {
      const { state, effects } = play({ type: 'start' }, { type: 'opened' }, closed({ code }))
      expect([name, effects.includes('fatal')]).toEqual([name, fatal])
      expect(state.phase).toBe(fatal ? 'stopped' : 'waiting')
    }
  })

  it('asks again within a minute, and not at once, while runs are live and the token is not known', () => {
    const refused = (random: number) =>
      play({ type: 'start' }, closed({ code: closeCodes.auth_failed.code, hasLiveRuns: true, random }), { type: 'due' })
    expect([refused(0).waits, refused(1).waits]).toEqual([[30_000], [60_000]])
    expect(refused(0).effects).toEqual(['connect', 'refused', 'wait', 'connect'])
    for (const [name, { code, fatal }] of Object.entries(closeCodes)) {
      const { state } = play({ type: 'start' }, { type: 'opened' }, closed({ code, hasLiveRuns: true }))
      expect([name, state.phase]).toEqual([name, fatal && name !== 'auth_failed' ? 'stopped' : 'waiting'])
    }
  })

  it('never connects twice at once and never leaves `stopped`', () => {
    const event = fc.constantFrom<LinkEvent>(
      { type: 'start' },
      { type: 'due' },
      { type: 'opened' },
      { type: 'welcomed', now: 1 },
      closed(),
      closed({ code: closeCodes.revoked.code }),
      closed({ code: closeCodes.auth_failed.code, hasLiveRuns: true }),
      { type: 'stop' },
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let state: LinkState = startState
        let sockets = 0
        for (const each of events) {
          const [next, effects] = linkStep(state, each, delays)
          if (each.type === 'closed' && state.phase !== next.phase) sockets = 0
          for (const effect of effects) if (effect.type === 'connect') sockets++
          expect(sockets).toBeLessThanOrEqual(1)
          if (state.phase === 'stopped') expect(next).toBe(state)
          state = next
        }
      }),
      { numRuns: 5_000 },
    )
  })
})
