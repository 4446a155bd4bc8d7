import { expect, test } from 'vitest'
import { isSourcePath, sourceKind, sourceStem } from './source-path.ts'

test.each(['docs', 'guide/intro.md', 'über uns/a b.md', '.hidden/x', 'a..b', '...'])('%j is a path', (path) =>
  expect(isSourcePath(path)).toBe(true),
)

test.each([
  '',
  '/etc',
  '../up',
  'a/../../b',
  'a/..',
  '.',
  './a',
  'a//b',
  'a/',
  'a\0b',
  'a\nb',
  'a\\b',
  'C:x',
  '\u{d800}',
])('%j is none', (path) => expect(isSourcePath(path)).toBe(false))

test('files are told by their endings', () => {
  expect(['a.md', 'a.MARKDOWN', 'b/c.csv', 'a.txt', 'md', 'a.md/b'].map(sourceKind)).toEqual([
    'markdown',
    'markdown',
    'csv',
    null,
    null,
    null,
  ])
  expect(['a/b.md', 'a.b/c', 'a.tar.md'].map(sourceStem)).toEqual(['a/b', 'a.b/c', 'a.tar'])
})
