import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  deviceFlowLimits,
  mayDecide,
  pollOutcome,
  readUserCode,
  showUserCode,
  userCodeBytes,
  userCodeFrom,
  type PolledGrant,
} from './rules.ts'

const grant: PolledGrant = { status: 'pending', expiresAt: 1_000_000, intervalMs: 5_000, lastPolledAt: null }

describe('a poll', () => {
  test.each<[string, Partial<PolledGrant>, number, string]>([
    ['waits for the decision', {}, 0, 'authorization_pending'],
    ['gets what was approved', { status: 'approved' }, 0, 'redeem'],
    ['is told of a refusal', { status: 'denied' }, 0, 'access_denied'],
    ['is told of a refusal however soon it comes', { status: 'denied', lastPolledAt: 10 }, 10, 'access_denied'],
    ['comes too late by nothing', { status: 'approved' }, 1_000_000, 'expired_token'],
    ['comes in the last moment', { status: 'approved' }, 999_999, 'redeem'],
    ['finds a used code unknown, also when it is old', { status: 'redeemed' }, 2_000_000, 'invalid_grant'],
    ['may be a little early', { lastPolledAt: 0 }, 4_500, 'authorization_pending'],
    ['may not be early', { lastPolledAt: 0 }, 4_499, 'slow_down'],
    ['may not be early for what is approved either', { status: 'approved', lastPolledAt: 0 }, 4_499, 'slow_down'],
    ['keeps the interval it was told', { lastPolledAt: 0, intervalMs: 10_000 }, 9_000, 'slow_down'],
  ])('%s', (_, changes, now, expected) => {
    expect(pollOutcome({ ...grant, ...changes }, now)).toBe(expected)
  })
})

test('a waiting sign-in may be decided until it expires', () => {
  expect(mayDecide(grant, 999_999)).toBe(true)
  expect(mayDecide(grant, 1_000_000)).toBe(false)
  for (const status of ['approved', 'denied', 'redeemed'] as const)
    expect(mayDecide({ ...grant, status }, 0)).toBe(false)
})

describe('user codes', () => {
  test('are read in any form that people may type', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: userCodeBytes, maxLength: userCodeBytes, max: 239 }),
        fc.constantFrom('-', '', ' ', ' - ', '–'),
        (bytes, between) => {
          const code = userCodeFrom(bytes)
          expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{8}$/)
          const shown = showUserCode(code)
          expect(shown).toHaveLength(9)
          expect(readUserCode(shown)).toBe(code)
          expect(readUserCode(` ${shown.toLowerCase().replace('-', between)} `)).toBe(code)
        },
      ),
    )
  })

  test('are not read from anything else', () => {
    fc.assert(
      fc.property(fc.string(), (typed) => {
        const code = readUserCode(typed)
        if (code !== null) expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{8}$/)
      }),
    )
    for (const typed of ['', 'BCDF-GHJ', 'BCDF-GHJK-L', 'AEIO-UAEI', `BCDFGHJK${' '.repeat(20)}`])
      expect(readUserCode(typed)).toBeNull()
  })

  test('contain every letter equally often, and are hard to guess', () => {
    // Each usable byte once: twelve of each letter.
    const counts = new Map<string, number>()
    for (let byte = 0; byte < 240; byte++) {
      const letter = userCodeFrom(Uint8Array.from([255, ...Array<number>(8).fill(byte)]))[0]!
      counts.set(letter, (counts.get(letter) ?? 0) + 1)
    }
    expect([...counts.values()]).toEqual(Array<number>(20).fill(12))
    // A person that guesses all the time, with a thousand codes open at once, finds one in five years with a chance of 1 in 10.
    const windowsIn5Years = (5 * 365 * 86_400_000) / deviceFlowLimits.guessWindowMs
    expect((windowsIn5Years * deviceFlowLimits.guesses * 1000) / 20 ** 8).toBeLessThan(0.11)
  })

  test('throw when there are too few random bytes', () => {
    expect(() => userCodeFrom(new Uint8Array(64).fill(250))).toThrow(/random/)
  })
})
