import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadCatalog } from './catalog.ts'
import { costOf, fromNanoUsd, monthOf, spentNow, toCents, toNanoUsd, withCost } from './price.ts'

const price = { input: '3', output: '15', cacheRead: '0.3', cacheWrite: '3.75' }

describe('money', () => {
  it('converts exactly in both directions', () => {
    expect(toNanoUsd('0.1') + toNanoUsd('0.2')).toBe(toNanoUsd('0.3'))
    expect(toNanoUsd('12')).toBe(12_000_000_000n)
    expect(toNanoUsd('0.1234567899')).toBe(123_456_789n)
    fc.assert(fc.property(fc.bigInt(0n, 10n ** 18n), (nano) => toNanoUsd(fromNanoUsd(nano)) === nano))
  })

  it('rounds half cents up', () => {
    expect([0, 4_999_999, 5_000_000, 10_000_000, 14_999_999, 15_000_000].map(toCents)).toEqual([0, 0, 1, 1, 1, 2])
  })
})

describe('the price of a run', () => {
  it('counts each kind of token at its own price', () => {
    expect(costOf({ inputTokens: 1_000_000 }, price)).toBe('3')
    expect(costOf({ outputTokens: 1 }, price)).toBe('0.000015')
    expect(costOf({ inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 }, price)).toBe(
      '0.0000489',
    )
    expect(costOf({}, price)).toBe('0')
    // Half a nano-dollar is rounded up, less is not.
    expect(costOf({ inputTokens: 1 }, { ...price, input: '0.0005' })).toBe('0.000000001')
    expect(costOf({ inputTokens: 1 }, { ...price, input: '0.0004' })).toBe('0')
  })

  it('is never off by more than the rounding, and grows with the tokens', () => {
    const count = fc.integer({ min: 0, max: 1_000_000_000 })
    fc.assert(
      fc.property(count, count, (inputTokens, outputTokens) => {
        const cost = toNanoUsd(costOf({ inputTokens, outputTokens }, price))
        return cost === BigInt(inputTokens) * 3_000n + BigInt(outputTokens) * 15_000n
      }),
    )
  })

  it('is the one the harness reports, else that of the model it used, else that of the run’s model', () => {
    const catalog = loadCatalog(null)
    expect(withCost({ costUsd: '0.5', inputTokens: 9 }, 'gpt-5', catalog).costUsd).toBe('0.5')
    const usage = { inputTokens: 1_000_000 }
    expect(withCost({ ...usage, model: 'gpt-5-mini' }, 'gpt-5', catalog).costUsd).toBe('0.25')
    expect(withCost(usage, 'gpt-5', catalog).costUsd).toBe('1.25')
    expect(withCost(usage, null, catalog)).toEqual(usage)
    expect(withCost(usage, 'unheard-of', catalog)).toEqual(usage)
  })
})

it('a month is over at midnight UTC of its last day', () => {
  const end = Date.parse('2026-03-01T00:00:00Z')
  expect([monthOf(end - 1), monthOf(end)]).toEqual(['2026-02', '2026-03'])
  const spent = { month: '2026-02', nanoUsd: 7 }
  expect([spentNow(spent, end - 1), spentNow(spent, end)]).toEqual([7, 0])
  expect(spentNow({ month: null, nanoUsd: 7 }, end)).toBe(0)
})
