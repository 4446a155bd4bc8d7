import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readBaseRecord } from '../../../device-manager/change-set/base-store.ts'
import { readGitSettings, readPlainConfig } from '../../../device-manager/change-set/carried-settings.ts'
import { comparePaths } from '../../../device-manager/change-set/compare.ts'
import { treeNotedIn, treeOfLooseCommit } from '../../../device-manager/change-set/index-tree.ts'
import { defaultLimits } from '../../../device-manager/change-set/limits.ts'
import { describeNewFiles } from '../../../device-manager/change-set/new-files.ts'
import { locatePlain } from '../../../device-manager/change-set/plain-repository.ts'
import { locateRepository } from '../../../device-manager/change-set/repository.ts'
import { seededRandom } from '../../kit/programs.ts'
import {
  baseOf,
  changesOf,
  lines,
  scriptIn,
  proveAgainstCopy,
  repoAt,
  runIn,
  summary,
  tempDir,
  tempRepo,
} from './repo.ts'

// What is done without git for speed must be what git does.

const ms = 60_000

test('a plain repository is found as git finds it, from the top and from a folder below', async () => {
  const repo = tempRepo()
  repo.git('config', 'core.autocrlf', 'input')
  repo.git('config', 'user.name', 'Some "One" \\ else')
  for (const folder of [repo.dir, join(repo.dir, 'src')]) {
    const plain = locatePlain(folder)
    expect(plain?.repository).toEqual({ ...(await locateRepository(folder, ms)), isPlain: true })
    expect(plain?.settings).toEqual(await readGitSettings(folder, ms))
  }
})

test('what is not plain is left to git', () => {
  const acts: Record<string, (dir: string, git: ReturnType<typeof tempRepo>['git']) => void> = {
    'another folder of work': (_, git) => git('config', 'core.worktree', '/etc'),
    'an included config': (_, git) => git('config', 'include.path', '/nonexistent'),
    'a config by condition': (_, git) => git('config', 'includeIf.gitdir:/x.path', '/nonexistent'),
    'an extension': (_, git) => git('config', 'extensions.worktreeConfig', 'true'),
    'a quoted value that counts': (_, git) => git('config', 'core.excludesFile', 'a#b'),
    'a section in capitals': (dir) => writeFileSync(join(dir, '.git/config'), '[INCLUDE]\npath = x\n', { flag: 'a' }),
    'a quote that is not closed': (dir) =>
      writeFileSync(join(dir, '.git/config'), '[user]\nname = "a\n', { flag: 'a' }),
    'an escape that git does not know': (dir) =>
      writeFileSync(join(dir, '.git/config'), '[user]\nname = \\-\n', { flag: 'a' }),
    'an entry that is very long': (dir) =>
      writeFileSync(join(dir, '.git/config'), `[user]\nname = "${'a'.repeat(20_000)}"\n`, { flag: 'a' }),
    'a value over two lines': (dir) =>
      writeFileSync(join(dir, '.git/config'), '[alias]\nx = a \\\n[core]\n', { flag: 'a' }),
    'an unborn branch': (_, git) => git('symbolic-ref', 'HEAD', 'refs/heads/none'),
    'a format to come': (_, git) => git('config', 'core.repositoryFormatVersion', '1'),
    'a named pipe as config': (dir) => {
      rmSync(join(dir, '.git/config'))
      execFileSync('mkfifo', [join(dir, '.git/config')])
    },
    'a named pipe as head': (dir) => {
      rmSync(join(dir, '.git/HEAD'))
      execFileSync('mkfifo', [join(dir, '.git/HEAD')])
    },
    'a shared store': (dir) => writeFileSync(join(dir, '.git/commondir'), '.\n'),
  }
  const repo = tempRepo()
  for (const [name, act] of Object.entries(acts)) {
    const copy = repoAt(join(tempDir(), 'copy'))
    cpSync(repo.dir, copy.dir, { recursive: true })
    expect(locatePlain(copy.dir)).not.toBe(null)
    act(copy.dir, (...args) => copy.git(...args))
    expect({ name, plain: locatePlain(copy.dir) }).toEqual({ name, plain: null })
  }
  const linked = join(tempDir(), 'linked')
  repo.git('worktree', 'add', '-q', linked)
  for (const folder of [linked, join(repo.dir, '.git'), join(repo.dir, '.git', 'objects'), tempDir()])
    expect(locatePlain(folder)).toBe(null)
})

test('a config that is read without git says what git reads in it', () => {
  const dir = tempDir()
  const seed = Math.floor(seededRandom('config')() * 2 ** 31)
  const line = fc.oneof(
    fc.constantFrom(
      '[core]',
      '[Core]',
      '[filter "lfs"]',
      '[filter "a b"]',
      '[user]',
      '[a-b]',
      '[core] ; x',
      '[x "y\\"z"]',
    ),
    fc.constantFrom('', '# note \\', '\tbare', ' bare = false', 'autocrlf=true ', 'eol = lf ; no', 'name = "a" b'),
    fc.constantFrom(
      'clean = lfs clean -- %f',
      'required',
      'smudge =',
      'k = a  b',
      'k= \ta',
      'k = a\r',
      '[core',
      'x = a\\',
    ),
    fc.constantFrom(
      'k = \u00a0a',
      'a_b = 1',
      '1a = 2',
      'k = a = b',
      'a-1 = [x]',
      '[core]eol = crlf',
      '[filter.o]',
      '\f',
    ),
    fc.constantFrom('q = "a', 'q = \\-', 'q = "\\n" \\t', 'q = "a#', 'q = "a"b" # "'),
    fc.string({ unit: fc.constantFrom('a', '=', ' ', '"', '\\', '#', '[', ']', '\t', '-', '.'), maxLength: 8 }),
  )
  const read = fc.sample(fc.array(line, { maxLength: 5 }), { numRuns: 400, seed }).flatMap((body) => {
    const text = `[core]\n${body.join('\n')}\n`
    const settings = readPlainConfig(text)
    return settings === null ? [] : [{ text, settings }]
  })
  expect(read.length).toBeGreaterThan(40)
  for (const [index, { text }] of read.entries()) writeFileSync(join(dir, `${index}`), text)
  // One shell for all, which starts git faster than this process would.
  const listEach = `for i in $(seq 0 ${read.length - 1}); do git config --file $i --list -z; printf '\\001'; done`
  const listed = scriptIn(dir, listEach).split('\u0001')
  const counted = (key: string) => /^(?:core|filter)\./.test(key)
  for (const [index, { text, settings }] of read.entries()) {
    const entries = listed[index]!.split('\0').filter(Boolean)
    const expected = entries.map((entry) => (entry.includes('\n') ? entry : `${entry}\ntrue`)).filter(counted)
    expect(settings.map(({ key, value }) => `${key}\n${value}`).filter(counted), text).toEqual(expected)
  }
})

test('the tree that an index notes is the one git makes of it, and is struck out by what is staged', async () => {
  const repo = tempRepo()
  const noted = () => treeNotedIn(readFileSync(join(repo.dir, '.git', 'index')))
  const head = repo.git('rev-parse', 'HEAD').trim()
  expect(noted()).toBe(repo.git('write-tree').trim())
  expect(await treeOfLooseCommit(join(repo.dir, '.git'), head)).toBe(repo.git('rev-parse', 'HEAD^{tree}').trim())
  repo.write(`deep/${'n'.repeat(200)}/${'m'.repeat(250)}`, 'x\n')
  repo.git('add', '-N', '.')
  expect(noted()).toBe(null)
  repo.git('add', '.')
  expect(noted()).toBe(null)
  repo.git('commit', '-q', '-m', 'deep')
  expect(noted()).toBe(repo.git('rev-parse', 'HEAD^{tree}').trim())
  repo.git('gc', '-q')
  expect(await treeOfLooseCommit(join(repo.dir, '.git'), repo.git('rev-parse', 'HEAD').trim())).toBe(null)
  repo.git('update-index', '--split-index')
  expect(noted()).toBe(null)
})

test('a clean base costs no tree and no object folder, and is right after a soft reset, packed and unpacked', async () => {
  const repo = tempRepo()
  repo.write('second.txt', lines('second', 3))
  repo.commit('second')
  for (const act of [() => {}, () => repo.git('gc', '-q'), () => repo.git('reset', '-q', '--soft', 'HEAD~1')]) {
    act()
    // Without this the file that was written again is dirty by its stat data.
    repo.git('status')
    const base = await baseOf(repo.dir)
    expect(base.tree).toBe(repo.git('write-tree').trim())
    const isClean = repo.git('status', '--porcelain') === ''
    expect(lstatSync(join(base.storeDir, 'objects')).isSymbolicLink()).toBe(isClean)
    expect(repo.git('rev-parse', base.refName)).toBe(repo.git('rev-parse', 'HEAD'))
    repo.write('second.txt', `${lines('second', 3)}third\n`)
    const changeSet = await changesOf(base)
    expect(summary(changeSet.files)).toEqual(['modified second.txt'])
    proveAgainstCopy(base, changeSet)
    repo.write('second.txt', lines('second', 3))
  }
})

test('a base whose ref cannot be written is refused, and a lock that a crash left is not taken away', async () => {
  const repo = tempRepo()
  const lock = join(repo.dir, '.git/refs/svc/runs/run_test/base.lock')
  await baseOf(repo.dir)
  writeFileSync(lock, '')
  await expect(baseOf(repo.dir)).rejects.toThrow(/unavailable/)
  expect(existsSync(lock)).toBe(true)
  rmSync(lock)
  await baseOf(repo.dir)
})

test('the patches of new files are byte by byte those of git', async () => {
  const piece = fc.constantFrom('a', '\n', '\n\n', '+x\n', '-y', '\r\n', 'é', '\t ', 'diff --git a/x b/x\n')
  const content = fc.oneof(
    fc.array(piece, { maxLength: 12 }).map((pieces) => Buffer.from(pieces.join(''))),
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
  )
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  const record = await readBaseRecord(base.storeDir)
  const limits = { ...defaultLimits, filePatchBytes: 240 }
  const view = { ...base, indexFile: join(base.storeDir, 'index'), limits, own: [] }
  let described = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(content, fc.boolean()), { minLength: 1, maxLength: 20 }), async (files) => {
      const entries = files.map(([bytes, isExecutable], index) => {
        const path = `src/new-${index}.txt`
        repo.write(path, bytes)
        if (isExecutable) repo.executable(path)
        return { path, mode: isExecutable ? '100755' : '100644', oid: null }
      })
      const { patched, rest } = await describeNewFiles(view, record, entries)
      const byGit = new Map((await comparePaths({ view, record, entries })).map((file) => [file.path, file]))
      expect(patched.length + rest.length).toBe(entries.length)
      expect(rest.every(({ path }) => byGit.get(path)!.binary)).toBe(true)
      for (const file of patched) expect(file).toEqual(byGit.get(file.path))
      described += patched.length
      for (const { path } of entries) repo.remove(path)
    }),
    { numRuns: 25 },
  )
  expect(described).toBeGreaterThan(50)
})

test('new files are left to git where something may change what they are, or a deleted one may be what they were', async () => {
  const crlf = 'one\r\ntwo\r\n'
  const acts: Record<string, (repo: ReturnType<typeof tempRepo>) => void> = {
    'attributes at the top': (repo) => repo.write('.gitattributes', '* text\n'),
    'attributes beside it': (repo) => repo.write('src/.gitattributes', '*.new text eol=crlf\n'),
    'attributes of the repository': (repo) => repo.write('.git/info/attributes', '* text=auto\n'),
    'line ends by a setting': (repo) => repo.git('config', 'core.autocrlf', 'input'),
    'a renamed file': (repo) => repo.remove('src/a.ts'),
  }
  for (const [name, act] of Object.entries(acts)) {
    const repo = tempRepo()
    act(repo)
    if (name === 'a renamed file') repo.git('checkout', '-q', '.')
    const changeSet = await runIn(repo, () => {
      repo.write('src/x.new', name === 'a renamed file' ? lines('a', 20) : crlf)
      if (name === 'a renamed file') repo.remove('src/a.ts')
    })
    const [file] = changeSet.files
    if (name === 'a renamed file') expect(summary(changeSet.files)).toEqual(['renamed src/a.ts -> src/x.new'])
    else
      expect({ name, path: file?.path, hasReturns: /\r/.test(changeSet.diff) }).toEqual({
        name,
        path: 'src/x.new',
        hasReturns: false,
      })
  }
  const other = repoAt(tempRepo().dir)
  const changeSet = await runIn(other, () => {
    other.write('src/x.new', crlf)
    other.write('ü.new', 'quoted\n')
    other.link('link', 'x')
    other.write('zero.bin', Buffer.from([1, 0]))
    other.write('empty', '')
  })
  expect(changeSet.diff).toMatch(/\+one\r\n/)
  expect(changeSet.files.map(({ path }) => path).toSorted()).toEqual([
    'empty',
    'link',
    'src/x.new',
    'zero.bin',
    'ü.new',
  ])
})
