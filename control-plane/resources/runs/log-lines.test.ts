import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { linkLimits } from '../../../shared/device/limits.ts'
import { withinBounds, afterLines, firstLines, linesOf } from './log-lines.ts'

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

describe('lines that are too long', () => {
  const limit = linkLimits.lineBytes
  const long = (at: number, bytes: number) => `{"seq":7,"at":${at},"kind":"text","data":"`.padEnd(bytes, 'x')
  const gap = (seq: number, at: number, bytes: number) =>
    JSON.stringify({ seq, at, kind: 'gap', data: { bytes, reason: 'event_too_long' } })
  const bounded = (text: string, [firstSeq, lastSeq]: [number, number]) =>
    withinBounds(Buffer.from(text), { firstSeq, lastSeq }).toString()

  it('are declared gaps under the number of their place, and others stay as they came', () => {
    const lines = ['a', long(5, limit + 1), 'b', long(6, limit), 'no event'.padEnd(limit + 9, 'y'), 'c']
    const expected = ['a', gap(4, 5, limit + 1), 'b', lines[3], gap(7, 0, limit + 9), 'c']
    expect(bounded(`${lines.join('\n')}\n`, [3, 8])).toBe(`${expected.join('\n')}\n`)
    // A text without a line end at its end is bounded, too.
    expect(bounded(lines.slice(0, 2).join('\n'), [3, 4])).toBe(expected.slice(0, 2).join('\n'))
  })

  it('are cut off behind the last number, also after millions of empty lines', () => {
    const body = Buffer.concat([
      Buffer.from('a\n'),
      Buffer.alloc(8 * 1024 * 1024, '\n'),
      Buffer.from(long(1, limit + 1)),
    ])
    expect(withinBounds(body, { firstSeq: 1, lastSeq: 3 }).toString()).toBe('a\n\n\n')
  })

  it('a body without any is not copied', () => {
    const body = Buffer.from(`${'x'.repeat(limit)}\n`.repeat(3))
    expect(withinBounds(body, { firstSeq: 1, lastSeq: 3 })).toBe(body)
  })
})
