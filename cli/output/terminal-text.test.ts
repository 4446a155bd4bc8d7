import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jsonText, plainText, terminalText } from './terminal-text.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const red = '\u001b[31m'
const end = '\u001b[0m'

describe('output to a terminal', () => {
  test.for([
    ['plain', 'plain'],
    ['one\n\ttwo', 'one\n\ttwo'],
    [`${red}red${end} plain`, `${red}red${end} plain`],
    [`${red}red`, `${red}red${end}`],
    [`${red}red\n`, `${red}red${end}\n`],
    ['\u001b[38;5;8mgrey\u001b[m', '\u001b[38;5;8mgrey\u001b[m'],
    ['\u001b[38;2;8;8;8mx\u001b[0m', '\u001b[38;2;8;8;8mx\u001b[0m'],
    ['\u001b[8mhidden', 'hidden'],
    ['\u001b[0;8mhidden', 'hidden'],
    ['a\u001b]52;c;cm0gLXJm\u0007b', 'ab'],
    ['a\u001b]52;c;cm0gLXJm\u001b\\b', 'ab'],
    ['a\u009d52;c;cm0gLXJm\u009cb', 'ab'],
    ['a\u001b]0;title\u0007b', 'ab'],
    ['a\u001b]8;;http://evil\u001b\\link\u001b]8;;\u001b\\b', 'alinkb'],
    ['a\u001b]52;c;never ended', 'a52;c;never ended'],
    ['a\u001bP+q544e\u001b\\b', 'ab'],
    ['a\u001b_apc\u001b\\b\u001b^pm\u001b\\c\u001bXsos\u001b\\d', 'abcd'],
    ['a\u001b[2J\u001b[H\u001b[?1049h\u001b[5nb', 'ab'],
    ['a\u009b2Jb\u009b31mc', `ab${red}c${end}`],
    ['a\u001b[>4;1mb', 'ab'],
    ['a\u001bcb\u001b(0c\u001b7d', 'abcd'],
    ['a\u001b', 'a'],
    ['\u001b\u001b[31m\u001b', `${red}${end}`],
    ['a\u0007\b\b\u0000\u007fb\u000bc\u000ed', 'abcd'],
    ['a\r\nb', 'a\nb'],
    ['safe\rrm -rf', 'safe\nrm -rf'],
    ['a\u202eb\u2066c', 'a\u{fffd}b\u{fffd}c'],
    ['\u05d0\u200f é 😀 \u0301', '\u05d0\u200f é 😀 \u0301'],
  ] as const)('%j becomes %j', ([text, shown]) => expect(terminalText(text)).toBe(shown))

  test('keeps only colour sequences of any text, in linear time', () => {
    const piece = fc.constantFrom(
      '\u001b',
      '[',
      ']',
      'P',
      '31',
      ';',
      'm',
      '\u0007',
      '\\',
      '\u009b',
      '\u009d',
      '\u009c',
      'x',
      '\r',
      '\n',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 40 }), (pieces) => {
        const shown = terminalText(pieces.join(''))
        expect(plainText(shown).replaceAll(/[\n\t]/g, '')).not.toMatch(/\p{Cc}/u)
        expect(terminalText(shown)).toBe(shown)
      }),
    )
    for (const text of ['\u001b]', '\u001b[', '\u001b[31', '\u001b\u001b', '\r', '\u0090', '\u009d0;a'])
      expect(cpuMsOf(() => terminalText(text.repeat(500_000)))).toBeLessThan(3_000)
  })
})

test('removes colours from table cells', () => expect(plainText(`${red}a${end}\u0007b`)).toBe('ab'))

test('JSON keeps its value and contains no control characters', () => {
  const value = { 'k\u009b': ['\u001b]52;\u0007', '\u0080\u009f\u007f', '\u202e', '\u2028', 'é😀'] }
  const text = jsonText(value)
  expect(JSON.parse(text)).toEqual(value)
  expect(text).not.toMatch(/\p{Cc}|[\u202a-\u202e]/u)
  expect(text).toContain('é😀')
})
