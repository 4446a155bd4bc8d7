import { maxPageBytes } from '../../shared/lib/wiki-limits.ts'

// Pages of the greatest length that are made to cost as much as they can.

const filled = (piece: string, before = '') =>
  (before + piece.repeat(Math.ceil(maxPageBytes / piece.length))).slice(0, maxPageBytes)
const counted = (piece: (n: number) => string) => filled(Array.from({ length: 30_000 }, (_, n) => piece(n)).join(''))

/** By what they are full of. */
export const hostilePages: Readonly<Record<string, string>> = {
  brackets: filled('['),
  'images in images': filled('![[]('),
  'beginnings of links': filled('[a][b'),
  'beginnings of page links': filled('[[a'),
  'beginnings of citations': filled('[1,'),
  'rows of tables': filled('|[|\n', '|a|\n|-|\n'),
  'cells of a table': filled('a|', '|a|\n|-|\n|'),
  quotes: filled('> '),
  definitions: counted((n) => `[r${n}]: x\n`),
  'different links': counted((n) => `[a](p${n})`),
  'lists in lists': filled('- '),
  backticks: counted((n) => `${'`'.repeat(n % 600)}a`),
  URLs: filled('http://'),
  digits: filled('1'),
}
