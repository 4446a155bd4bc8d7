import { expect, test } from 'vitest'
import { brokenLine, brokenLines } from './broken-lines.ts'
import { WordWrap } from './word-wrap.ts'
import { widthOf } from './width.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const text =
  'The first line is of many words, one behind the other, and longer than the terminal is wide.\n\n  - a point with 建筑工 and 👩‍👩‍👧‍👦 in it, and words\n    const code = here()\nhttps://example.com/a/very/long/address/that/no/line/has/room/for is whole. End'

/** In pieces of so many letters, each with what it showed. */
function inPieces(letters: number, width: number): string[] {
  const wrap = new WordWrap(width)
  const chars = text.match(/./gsu)!
  const shown: string[] = []
  for (let at = 0; at < chars.length; at += letters) shown.push(wrap.push(chars.slice(at, at + letters).join('')))
  return [...shown, wrap.end()]
}

test('text in pieces of any size is broken between words, and none of it is lost', () => {
  const plain = (shown: string) => shown.replaceAll(/\s+/g, ' ')
  for (const width of [30, 44, 80]) {
    const whole = inPieces(10_000, width).join('')
    for (const letters of [1, 2, 3, 7, 19]) {
      const shown = inPieces(letters, width).join('')
      expect(shown, `${letters} of ${width}`).toBe(whole)
    }
    expect(plain(whole)).toBe(plain(text))
    for (const line of whole.split('\n'))
      if (!line.startsWith('https:')) expect(widthOf(line), line).toBeLessThanOrEqual(width)
    expect(whole).toContain('\n    const code')
  }
})

test('what is far from the edge comes at once, and near it the end of a word at most is held back', () => {
  const wrap = new WordWrap(40)
  expect(wrap.push('He')).toBe('He')
  expect(wrap.push('llo, this is a li')).toBe('llo, this is a')
  expect(wrap.push('ne')).toBe('')
  expect(wrap.push(' of words that go')).toBe(' line of words that')
  expect(wrap.push('ing')).toBe('')
  expect(wrap.end()).toBe('\ngoing')
  expect(wrap.push('x')).toBe('x')
})

test('a line goes on below the beginning of its text, and a long word stays whole', () => {
  expect(brokenLines('short\n  - one two three four five six', 27)).toBe('short\n  - one two three four five\n    six')
  expect(brokenLines('a bbb ccc ddd eee fff ggg hhh iii', 24, undefined, 4)).toBe(
    'a bbb ccc ddd eee\n    fff ggg hhh iii',
  )
  expect(brokenLine(`x ${'y'.repeat(30)} z`, 10)).toEqual(['x', 'y'.repeat(30), 'z'])
  expect(brokenLines('1. aaaa bbbb', 8)).toBe('1. aaaa\nbbbb')
})

test('a text of a million spaces or letters takes no long time', () => {
  const spent = cpuMsOf(() => {
    for (const char of [' ', 'x', '\n', 'x ']) {
      const long = char.repeat(1_000_000 / char.length)
      const wrap = new WordWrap(80)
      for (let at = 0; at < long.length; at += 1_000) wrap.push(long.slice(at, at + 1_000))
      wrap.end()
      brokenLines(long, 80)
    }
  })
  expect(spent).toBeLessThan(3_000)
})
