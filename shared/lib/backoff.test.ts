import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffMs } from './backoff.ts'

it('stays between a quarter of the least and the doubled ceiling', () => {
  fc.assert(
    fc.property(fc.nat(50), fc.double({ min: 0, max: 0.999, noNaN: true }), (attempt, random) => {
      const ms = backoffMs(attempt, { minMs: 1_000, maxMs: 60_000, random })
      expect(ms).toBeGreaterThanOrEqual(250)
      expect(ms).toBeLessThanOrEqual(Math.min(60_000, 1_000 * 2 ** attempt))
    }),
  )
})
