import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { foldersAround, gitFileTarget, repositoryFolders } from './git-file.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-around-')))
afterAll(() => rmSync(root, { recursive: true }))

test('names a folder and all above it, as given and without links, and the main checkout of a worktree', () => {
  for (const folder of ['main/.git/worktrees/w', 'trees/w/deep']) mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, 'trees/w/.git'), `gitdir: ${join(root, 'main/.git/worktrees/w')}\n`)
  symlinkSync(join(root, 'trees'), join(root, 'link'))
  const found = foldersAround(join(root, 'link/w/deep'))
  const named = ['link/w/deep', 'link/w', 'link', 'trees/w/deep', 'trees/w', 'trees', 'main'].map((name) =>
    join(root, name),
  )
  expect(found).toEqual(expect.arrayContaining([...named, root, '/']))
  expect(found).not.toContain(join(root, 'main/.git'))
})

test('reads a path with characters that other programs take for the end of a line', () => {
  const gitDir = join(root, 'ma\u2028in\u0085/.git/worktrees/w')
  const folder = join(root, 'of-odd-name')
  for (const each of [gitDir, folder]) mkdirSync(each, { recursive: true })
  writeFileSync(join(folder, '.git'), `gitdir: ${gitDir}\n`)
  expect(foldersAround(folder)).toContain(join(root, 'ma\u2028in\u0085'))
  expect(gitFileTarget(folder)).toBe(gitDir)
})

test('takes a folder that is not there as it is, and a .git that says something else for none', () => {
  expect(foldersAround('/nowhere/at/all')).toEqual(['/nowhere/at/all', '/nowhere/at', '/nowhere', '/'])
  const odd = join(root, 'odd')
  mkdirSync(odd)
  writeFileSync(join(odd, '.git'), 'gitdir: \n'.repeat(10_000))
  expect(foldersAround(odd)).toEqual(
    foldersAround(join(root, 'other')).map((folder) => folder.replace(/other$/, 'odd')),
  )
})

test('the folders of a repository end at its root, and are one folder where there is no repository', () => {
  const repository = join(root, 'given')
  mkdirSync(join(repository, '.git'), { recursive: true })
  mkdirSync(join(repository, 'packages/web'), { recursive: true })
  mkdirSync(join(root, 'plain/deep'), { recursive: true })
  expect(repositoryFolders(join(repository, 'packages/web'))).toEqual([
    join(repository, 'packages/web'),
    join(repository, 'packages'),
    repository,
  ])
  expect(repositoryFolders(repository)).toEqual([repository])
  expect(repositoryFolders(join(root, 'plain/deep'))).toEqual([join(root, 'plain/deep')])
})
