import { expect, it } from 'vitest'
import { findCsvFlaw } from './csv.ts'

it.each([
  ['empty', ''],
  ['one field', 'a'],
  ['records', 'a,b\nc,d\n'],
  ['CRLF, and no end of the last line', 'a,b\r\nc,d'],
  ['quotes, commas and lines within quotes', '"a ""b""","c,d\ne"\n1,2\n'],
  ['empty fields', ',\n"",\n'],
  ['empty fields at the very end', 'a,b\nc,'],
  ['a byte order mark', '\uFEFF"a",b\n1,2'],
])('takes %s', (_, text) => expect(findCsvFlaw(text)).toBeNull())

it.each([
  ['a quote that is not closed', 'a\n"b\nc', { line: 2, message: 'a quote is not closed' }],
  ['text after a quote', '"a"b,c', { line: 1, message: 'text follows a closing quote' }],
  ['a quote within a field', 'a\nb"c', { line: 2, message: 'a quote in a field without quotes' }],
  ['a record that is too short', '"a\n",b\nc\n', { line: 3, message: '1 fields where the first record has 2' }],
  ['a record that is too long', 'a\nb,c', { line: 2, message: '2 fields where the first record has 1' }],
  ['a record that ends with a comma too many', 'a\nb,', { line: 2, message: '2 fields where the first record has 1' }],
  ['an empty line', 'a,b\n\nc,d', { line: 2, message: '1 fields where the first record has 2' }],
  ['CR alone', 'a\rb', { line: 1, message: 'a line ends with CR alone' }],
])('finds %s', (_, text, flaw) => expect(findCsvFlaw(text)).toEqual(flaw))

it('reads a text of quotes alone in one pass', () => {
  expect(findCsvFlaw('"'.repeat(262_144))).toBeNull()
  expect(findCsvFlaw('"'.repeat(262_143))).toEqual({ line: 1, message: 'a quote is not closed' })
})
