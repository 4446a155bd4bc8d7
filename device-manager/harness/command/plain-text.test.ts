import { expect, test } from 'vitest'
import { plainTextReader } from './plain-text.ts'
import { cpuMsOf } from '../../../test/kit/cpu-time.ts'

const readIn = (chunks: Iterable<Uint8Array>, maxBytes = 64 * 1024) => {
  const reader = plainTextReader(maxBytes)
  for (const chunk of chunks) reader.push(chunk)
  return reader.take()
}
const read = (text: string, maxBytes?: number) => readIn([Buffer.from(text)], maxBytes).text

const esc = '\u001B'

test('of a line that was written over the last state is left', () => {
  expect(read(' 10%\r 50%\r100%\ndone\n')).toBe('100%\ndone\n')
  expect(read('one\r\ntwo\r\r\nthree\r')).toBe('one\ntwo\nthree')
  expect(read(`Working 1\r${esc}[KWorking 2\r${esc}[K\nOk`)).toBe('\nOk')
  expect(read(`long words${esc}[2K\rshort\n`)).toBe('short\n')
  expect(read(`kept${esc}[K\nkept${esc}[1K`)).toBe('kept\nkept')
  expect(read('\r\n\r\n')).toBe('\n\n')
  expect(read('a\n\rb')).toBe('a\nb')
  expect(read('|\b/\b-\b \bdone')).toBe('done')
  expect(read('N\bNA\bAM\bM \u{1F600}\bx')).toBe('NAM x')
})

test('what a sequence carries is gone with it, however it is ended', () => {
  const image = 'A'.repeat(45_000)
  for (const begin of [
    `${esc}P`,
    `${esc}]`,
    `${esc}X`,
    `${esc}^`,
    `${esc}_`,
    '\u0090',
    '\u009D',
    '\u0098',
    '\u009E',
    '\u009F',
  ])
    for (const end of [`${esc}\\`, '\u0007', '\u009C', '\u0018', '\u001A'])
      expect([begin, end, read(`a${begin}Gf=100\r\n${image}${end}b\n`)]).toEqual([begin, end, 'ab\n'])
  // One within another, as tmux passes them on, and one that is broken off by another sequence.
  expect(read(`a${esc}Ptmux;${esc}${esc}]1337;File=:${image}\u0007${esc}\\b`)).toBe('ab')
  expect(read(`a${esc}P${image}${esc}[0mb`)).toBe('ab')
  expect(read(`${esc}]8;;http://x.example${esc}\\link${esc}]8;;${esc}\\`)).toBe('link')
})

test('no other control character is left, and no letter of a sequence', () => {
  const all = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code))
  for (const char of all)
    for (const text of [`a${char}b`, `a${esc}${char}b`, `a${esc}[${char}b`, `a${esc}[1;3${char}`])
      expect(read(text)).not.toMatch(/[^\P{Cc}\t\n]/u)
  expect(read(`${esc}[1;31mred${esc}[0m ${esc}(B${esc}=x${esc}7y${esc}[?25l${esc}[38:2::1:2:3mz\u009B0m`)).toBe(
    'red xyz',
  )
  expect(read('bell\u0007 nul\0 del\u007F tab\t.')).toBe('bell nul del tab\t.')
  expect(read('next\u0085page\fend\v')).toBe('next\npage\nend\n')
  expect(readIn([Buffer.from([0x61, 0xff, 0x9b, 0x31, 0x62])]).text).toBe('a\uFFFD\uFFFD1b')
})

test('it is the same in whatever pieces it comes', () => {
  const bytes = Buffer.from(
    `ä 1\rö 2${esc}[2K\r€ 3\r\n${esc}]0;tïtle\u0007${esc}P${'q'.repeat(30)}${esc}\\\u{1F600}\b€\n`,
  )
  const whole = readIn([bytes])
  expect(whole.text).toBe('€ 3\n€\n')
  for (let size = 1; size < 12; size++) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    )
    expect(readIn(pieces)).toEqual(whole)
  }
})

test('whole lines read as character by character', () => {
  const parts = [
    'one\n',
    'two\r\n',
    '\tthree\n',
    '\n',
    '\r\n',
    '\r\r\n',
    'é\u{1F600}\n',
    'x\r',
    'y\u000B',
    'z\u0085',
    'a\b',
    `${esc}[1m`,
    'end',
  ]
  let seed = 7
  const next = (most: number) => (seed = (seed * 48_271) % 2_147_483_647) % most
  for (let round = 0; round < 2_000; round++) {
    const text = Array.from({ length: next(12) }, () => parts[next(parts.length)]).join('')
    const single = Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte))
    for (const maxBytes of [8, 64 * 1024])
      expect([text, readIn([Buffer.from(text)], maxBytes)]).toEqual([text, readIn(single, maxBytes)])
  }
})

test('only what is read counts for the end that is kept', () => {
  const progress = Array.from({ length: 5_000 }, (_, n) => `${n} of 5000\r`).join('')
  const noise = `${esc}_G${'A'.repeat(100_000)}${esc}\\`
  expect(readIn([Buffer.from(`first\n${progress}\n${noise}last\n`)], 100)).toEqual({
    text: 'first\n4999 of 5000\nlast\n',
    droppedBytes: 0,
  })
  const long = readIn([Buffer.from(`€${'x'.repeat(1_000)}€\n`)], 100)
  expect(long).toEqual({ text: `${'x'.repeat(96)}€\n`, droppedBytes: 3 + 904 })
})

test('costly output takes time by its length', () => {
  const units = ['x\b', `${esc}P`, `${esc}[1`, 'x\r', 'xy\b', '\u009B', `\r${esc}[K`, 'x\u0007']
  expect(cpuMsOf(() => units.map((unit) => read(unit.repeat(300_000))))).toBeLessThan(10_000)
})
