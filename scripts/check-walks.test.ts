import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { filesOf, staleMentions } from './check-walks.ts'

const root = join(import.meta.dirname, '..')
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

it.each(pages)('%s names files and functions that are there', (page) => {
  expect(staleMentions(readFileSync(join(root, page), 'utf8'), filesOf(root))).toEqual([])
})

it('a file that moved and a function that was renamed are found', () => {
  const read = (file: string) => (file === 'control-plane/a.ts' ? 'export function here() {}' : null)
  const page = 'See `control-plane/a.ts`, `control-plane/a.ts:here`, `control-plane/a.ts:gone` and `cli/b.ts`.'
  expect(staleMentions(page, read)).toEqual(['control-plane/a.ts has no gone', 'cli/b.ts is not there'])
})
