import { expect, test } from 'vitest'
import { chunksOf } from './chunks.ts'

const paragraph = (word: string) => `${`${word} `.repeat(60)}\n\n`

test('a page is cut at its headings, each chunk with those above it', () => {
  const body = `${paragraph('intro')}# Deploy\n${paragraph('deploy')}## Roll back ##\n${paragraph('back')}Old\n===\n${paragraph('old')}`
  const { chunks, headings } = chunksOf('markdown', body)
  expect(chunks.map(({ heading }) => heading)).toEqual(['', 'Deploy', 'Deploy > Roll back', 'Old'])
  expect(headings).toEqual(['Deploy', 'Roll back', 'Old'])
  for (const { start, text } of chunks) expect(body.slice(start, start + text.length)).toBe(text)
  expect(chunks.map(({ text }) => text).join('')).toBe(body)
})

test('code has no headings', () => {
  const { headings } = chunksOf(
    'markdown',
    '```sh\n# not one\n```\n~~~~\n# nor this\n~~~\n# nor that\n~~~~\n# One\n- item\n---\n',
  )
  expect(headings).toEqual(['One'])
  // Code within a line opens no fence.
  expect(chunksOf('markdown', '```npm ci``` installs.\n\n# Two\n').headings).toEqual(['Two'])
})

test('short sections share a chunk, under the first heading of them', () => {
  const { chunks } = chunksOf('markdown', '# A\n## B\ntext\n## C\nmore\n')
  expect(chunks).toEqual([{ heading: 'A > B', start: 0, text: '# A\n## B\ntext\n## C\nmore\n' }])
})

test('a chunk is bounded, and no character is cut in two', () => {
  for (const unit of ['😀', 'a', 'word ', 'line\n', 'para\n\n']) {
    const body = `x${unit.repeat(3_000)}`
    const { chunks } = chunksOf('markdown', body)
    expect(chunks.map(({ text }) => text).join('')).toBe(body)
    for (const { text } of chunks) {
      expect(text.length).toBeLessThanOrEqual(1_600)
      expect(text.isWellFormed()).toBe(true)
    }
  }
})

test('a body of headings alone, of signs or of blanks has few chunks or none', () => {
  expect(chunksOf('markdown', '#\n'.repeat(131_072)).chunks.length).toBeLessThanOrEqual(262_144 / 199)
  expect(chunksOf('markdown', '# #'.repeat(87_000)).chunks.length).toBeLessThanOrEqual(262_144 / 199)
  expect(chunksOf('markdown', ' \n'.repeat(10_000)).chunks).toEqual([])
  expect(chunksOf('csv', '').chunks).toEqual([])
})

test('a table is cut at lines, each chunk under its first one', () => {
  const body = `name,owner\n${'service,team\n'.repeat(300)}`
  const { chunks, headings } = chunksOf('csv', body)
  expect(headings).toEqual(['name,owner'])
  expect(chunks.length).toBeGreaterThan(1)
  for (const { heading, text } of chunks) {
    expect(heading).toBe('name,owner')
    expect(text.endsWith('\n')).toBe(true)
  }
})
