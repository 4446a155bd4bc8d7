import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterLines, firstLines, linesOf } from './log-lines.ts'

const body = (lines: string[]) => Buffer.from(lines.map((line) => `${line}\n`).join(''))
const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' '))

describe('cutting a frame at its lines', () => {
  it('splits it in two that make the whole again, at every line', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 20 }), fc.nat(20), (lines, count) => {
        const whole = body(lines)
        const cut = Math.min(count, lines.length)
        expect(Buffer.concat([firstLines(whole, cut), afterLines(whole, cut)])).toEqual(whole)
        expect([...linesOf(firstLines(whole, cut))]).toHaveLength(cut)
        expect([...linesOf(whole)].map((each) => Buffer.from(each).toString())).toEqual(lines)
      }),
    )
  })

  it('returns nothing after more lines than there are', () => {
    expect(afterLines(body(['a']), 5)).toHaveLength(0)
  })
})
