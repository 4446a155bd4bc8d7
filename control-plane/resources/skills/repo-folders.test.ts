import { expect, test } from 'vitest'
import type { TreeEntry } from '../../repo-source/tree.ts'
import { filesByFolder, skillFoldersOf } from './repo-folders.ts'

const entry = (path: string): TreeEntry => ({ path, kind: 'file', executable: false, oid: path, sizeBytes: 1 })
/** Returns the paths of the files by folder. */
function grouped(paths: readonly string[], isSubdir = false) {
  const entries = paths.map(entry)
  const files = filesByFolder(entries, skillFoldersOf(entries, { isSubdir }))
  return Object.fromEntries([...files].map(([folder, own]) => [folder, own.map(({ path }) => path)]))
}

test('a skill has the files below its folder, and that of the root what no other has', () => {
  const paths = [
    'SKILL.md',
    'a/b.md',
    'skills/one/SKILL.md',
    'skills/one/refs/a.md',
    'skills/none/a.md',
    'skillset/a.md',
  ]
  expect(grouped(paths)).toEqual({
    '': ['SKILL.md', 'a/b.md', 'skillset/a.md'],
    'skills/one': ['SKILL.md', 'refs/a.md'],
  })
  expect(grouped(['one/SKILL.md', 'skills/SKILL.md', 'skills/two/SKILL.md'], true)).toEqual({
    one: ['SKILL.md'],
    skills: ['SKILL.md', 'two/SKILL.md'],
    'skills/two': ['SKILL.md'],
  })
})

test('as many folders as a list of files can name are grouped at once', () => {
  const paths = Array.from({ length: 100_000 }, (_, at) => `skills/${at}/SKILL.md`)
  expect(Object.keys(grouped(['SKILL.md', ...paths]))).toHaveLength(100_001)
})
