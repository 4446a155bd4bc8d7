import { expect, test } from 'vitest'
import { gone, isCurrent, slugsOfFile, titleOfFile } from './ingest-rules.ts'
import { readPage } from '../read-page.ts'

const titleOf = (body: string) => {
  const { heading } = readPage({ kind: 'markdown', body })
  return titleOfFile({ path: 'guide/page.md', heading })
}

test.each([
  ['# One #\ntext', 'One'],
  ['---\nx: 1\n---\n\n  #  Two  \n# Three', 'Two'],
  ['#no heading', 'page'],
  ['#\n', 'page'],
  [`# ${'😀'.repeat(200)}`, '😀'.repeat(150)],
  ['# a\u0007b', 'a b'],
  ['```sh\n# install\n```\n\n# Setting up', 'Setting up'],
  ['~~~\n# install\n~~~', 'page'],
  ['    # in code\n', 'page'],
  ['> # quoted\n\n- # of an item\n', 'page'],
  ['## Below\n\nAbove\n=====\n', 'Above'],
  ['# \n# Named', 'Named'],
])('the title of %j is %j', (body, title) => expect(titleOf(body)).toBe(title))

test('a table has the name of its file', () => {
  const { heading } = readPage({ kind: 'csv', body: '# not one' })
  expect(titleOfFile({ path: 'a/ports.csv', heading })).toBe('ports')
  expect(titleOfFile({ path: '\u{200b}.md', heading: null })).not.toBe('')
})

test('a page has the slug of its path, or one with a number', () => {
  expect(slugsOfFile('Guide/Über uns.v2.md').slice(0, 3)).toEqual([
    'guide-über-uns-v2',
    'guide-über-uns-v2-2',
    'guide-über-uns-v2-3',
  ])
  expect(slugsOfFile('!!!.md')[0]).toBe('page')
  for (const slug of slugsOfFile(`${'ab/'.repeat(160)}c.md`)) expect(slug.length).toBeLessThanOrEqual(200)
})

test('a file is current when its page is live and has its text', () => {
  const file = { path: 'a.md', sha256: 'a' }
  expect(isCurrent(file, undefined)).toBe(false)
  expect(isCurrent(file, { sha256: 'b', archivedAt: null })).toBe(false)
  expect(isCurrent(file, { sha256: 'a', archivedAt: 5 })).toBe(false)
  expect(isCurrent(file, { sha256: 'a', archivedAt: null })).toBe(true)
})

test('what is live and not listed is gone', () => {
  const known = [
    { path: 'a.md', sha256: 'a', archivedAt: null },
    { path: 'b.md', sha256: 'a', archivedAt: null },
    { path: 'c.md', sha256: 'a', archivedAt: 5 },
  ]
  expect(gone(known, [{ path: 'a.md', sha256: 'x' }]).map(({ path }) => path)).toEqual(['b.md'])
})

test('a heading that is the whole text is cut to a title', () => {
  expect(titleOfFile({ path: 'a.md', heading: 'x '.repeat(130_000) })).toHaveLength(299)
})
