import { becomeNobody } from '../../kit/nobody.ts'
import { chmodSync, mkdirSync, renameSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { defaultLimits } from '../../../device-manager/change-set/limits.ts'
import { isLong, repeats } from '../../kit/forms.ts'
import { changeSet as changeSetSchema } from '../../../shared/device/change-set.ts'
import {
  baseOf,
  changesOf,
  gitIn,
  lines,
  proveAgainstCopy,
  resultOf,
  runIn,
  summary,
  tempDir,
  tempRepo,
} from './repo.ts'

test('nothing changed: no files, an empty diff', async () => {
  const repo = tempRepo()
  const changeSet = await runIn(repo, () => undefined)
  const point = { commit: repo.git('rev-parse', 'HEAD').trim(), branch: 'main' }
  expect(changeSet).toMatchObject({ base: point, head: point, files: [], diff: '', additions: 0, deletions: 0 })
})

test('added, modified, deleted and renamed files with their counts', async () => {
  const repo = tempRepo()
  const changeSet = await runIn(repo, () => {
    repo.write('readme.md', 'hello\nthere\nworld\n')
    repo.write('new/file.ts', 'one\ntwo\n')
    repo.remove('src/a.ts')
    renameSync(join(repo.dir, 'src/b.ts'), join(repo.dir, 'src/c.ts'))
    repo.write('src/c.ts', lines('b', 20) + 'more\n')
    repo.write('ignored/out.txt', 'x')
    repo.write('empty', '')
  })
  expect(summary(changeSet.files)).toEqual([
    'added empty',
    'added new/file.ts',
    'modified readme.md',
    'deleted src/a.ts',
    'renamed src/b.ts -> src/c.ts',
  ])
  expect(changeSet.files.map(({ additions, deletions }) => [additions, deletions])).toEqual([
    [0, 0],
    [2, 0],
    [1, 0],
    [0, 20],
    [1, 0],
  ])
  expect([changeSet.additions, changeSet.deletions]).toEqual([4, 20])
  expect(changeSetSchema.parse(changeSet)).toEqual(changeSet)
})

test('binary files, text in another encoding, modes, symlinks and type changes', async () => {
  const repo = tempRepo()
  repo.link('link', 'readme.md')
  repo.commit()
  const changeSet = await runIn(repo, () => {
    repo.write('picture.bin', Buffer.from([1, 0, 2, 0, 4, 5]))
    repo.write('new.bin', Buffer.from([0, 255, 254]))
    repo.write('latin.txt', Buffer.from('caf\u00e9\n', 'latin1'))
    repo.executable('src/a.ts')
    repo.remove('link')
    repo.write('link', 'a file now\n')
    repo.remove('src/b.ts')
    repo.link('src/b.ts', 'b.ts')
    repo.link('dangling', '/nowhere')
  })
  const byPath = Object.fromEntries(changeSet.files.map((file) => [file.path, file]))
  expect(byPath['picture.bin']).toMatchObject({
    status: 'modified',
    binary: true,
    additions: null,
    patchOmitted: false,
  })
  expect(byPath['new.bin']).toMatchObject({ status: 'added', binary: true, oldMode: null, newMode: '100644' })
  expect(byPath['latin.txt']).toMatchObject({ status: 'added', binary: false, additions: 1, patchOmitted: false })
  expect(byPath['src/a.ts']).toMatchObject({ status: 'modified', oldMode: '100644', newMode: '100755', additions: 0 })
  expect(byPath['link']).toMatchObject({ status: 'type_changed', kind: 'file', oldMode: '120000', newMode: '100644' })
  expect(byPath['src/b.ts']).toMatchObject({ status: 'type_changed', kind: 'symlink', newMode: '120000' })
  expect(byPath['dangling']).toMatchObject({ status: 'added', kind: 'symlink' })
})

test('a folder in the place of a file, and a file or symlink in the place of a folder', async () => {
  const repo = tempRepo()
  repo.write('deep/er/x', 'x\n')
  repo.write('other/y', 'y\n')
  repo.commit()
  const changeSet = await runIn(repo, () => {
    repo.remove('readme.md')
    repo.write('readme.md/inner', 'inner\n')
    repo.remove('deep')
    repo.write('deep', 'flat\n')
    repo.remove('other')
    repo.link('other', 'src')
  })
  expect(summary(changeSet.files)).toEqual([
    'added deep',
    'deleted deep/er/x',
    'added other',
    'deleted other/y',
    'deleted readme.md',
    'added readme.md/inner',
  ])
})

test('odd names: spaces, quotes, newlines, Unicode, bytes that are no UTF-8, names that look like options', async () => {
  const repo = tempRepo()
  const names = [
    'a b',
    'new\nline',
    'tab\t"q"\\',
    'ümläut-日本',
    '-n',
    '--output=x',
    ':(top)x',
    '*.ts',
    "it's",
    ' lead',
    'diff --git a/x b/x',
  ]
  const changeSet = await runIn(repo, () => {
    for (const name of names) repo.write(name, 'x\n')
    writeFileSync(Buffer.concat([Buffer.from(`${repo.dir}/caf`), Buffer.from([0xe9]), Buffer.from('.txt')]), 'x\n')
  })
  expect(changeSet.files.map((file) => file.path).toSorted()).toEqual([...names, '"caf\\351.txt"'].toSorted())
})

test('content that looks like a diff is counted as content', async () => {
  const repo = tempRepo()
  const trap = 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\nBinary files a and b differ\n\n'
  const changeSet = await runIn(repo, () => repo.write('trap.patch', trap))
  expect(changeSet.files).toHaveLength(1)
  expect(changeSet.files[0]).toMatchObject({ path: 'trap.patch', additions: 8, deletions: 0, binary: false })
})

test('a touched file, or one rewritten with the same content, is no change', async () => {
  const repo = tempRepo()
  const changeSet = await runIn(repo, () => {
    utimesSync(join(repo.dir, 'readme.md'), 1, 1)
    repo.write('src/a.ts', lines('a', 20))
  })
  expect(changeSet.files).toEqual([])
})

test('a change of the same size at the same moment as the base is seen', async () => {
  const repo = tempRepo()
  for (let round = 0; round < repeats('SAME_MOMENTS', { short: 1, long: 10 }); round++) {
    repo.write('readme.md', `dirty\nx${round}\n`)
    const changeSet = await runIn(repo, () => repo.write('readme.md', `after\ny${round}\n`))
    expect(summary(changeSet.files)).toEqual(['modified readme.md'])
  }
})

test.each(isLong ? ['true', 'input', 'false'] : ['true'])('line ends under core.autocrlf=%s', async (setting) => {
  const repo = tempRepo()
  repo.write('.gitattributes', '*.txt text\n*.bat text eol=crlf\n')
  repo.write('a.txt', 'one\ntwo\n')
  repo.write('b.bat', 'one\r\ntwo\r\n')
  repo.write('c.md', 'one\r\ntwo\r\n')
  repo.commit()
  repo.git('config', 'core.autocrlf', setting)
  const changeSet = await runIn(repo, () => {
    repo.write('a.txt', 'one\r\ntwo\r\n')
    repo.write('b.bat', 'one\r\ntwo\r\nthree\r\n')
    repo.write('c.md', 'one\r\n2\r\n')
    repo.write('d.md', 'fresh\r\n')
  })
  expect(summary(changeSet.files)).toEqual(['modified b.bat', 'modified c.md', 'added d.md'])
  expect(changeSet.files[0]).toMatchObject({ additions: 1, deletions: 0 })
})

test('submodules are told by their commit and not looked into', async () => {
  const repo = tempRepo()
  const inner = tempRepo()
  repo.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', inner.dir, 'sub')
  repo.commit()
  const changeSet = await runIn(repo, () => {
    repo.write('sub/dirty.txt', 'not counted\n')
    gitIn(join(repo.dir, 'sub'), ['commit', '-q', '--allow-empty', '-m', 'moved'])
    gitIn(repo.dir, ['init', '-q', 'nested'])
    gitIn(join(repo.dir, 'nested'), ['commit', '-q', '--allow-empty', '-m', 'x'])
  })
  expect(summary(changeSet.files)).toEqual(['added nested', 'modified sub'])
  expect(changeSet.files.map((file) => [file.kind, file.additions])).toEqual([
    ['submodule', null],
    ['submodule', null],
  ])
})

test('a nested repository without a commit is ignored', async () => {
  const repo = tempRepo()
  gitIn(repo.dir, ['init', '-q', 'before'])
  const base = await baseOf(repo.dir)
  gitIn(repo.dir, ['init', '-q', 'after'])
  repo.write('x', 'x\n')
  expect(summary((await changesOf(base)).files)).toEqual(['added x'])
})

test('a patch over the limit for one file is left out, the file is listed with its counts', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  repo.write('big.txt', lines('word', 60_000))
  repo.write('noise.bin', Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)).buffer))
  repo.write('small.txt', 'x\n')
  const changeSet = await changesOf(base, { ...defaultLimits, filePatchBytes: 50_000 })
  expect(changeSet.files.map(({ path, patchOmitted, additions }) => [path, patchOmitted, additions])).toEqual([
    ['big.txt', true, 60_000],
    ['noise.bin', true, null],
    ['small.txt', false, 1],
  ])
  expect(changeSet.diff).toContain('small.txt')
  expect(changeSet.diff).not.toContain('big.txt')
})

test('new files, changed files and a diff over the limit are too large', { timeout: 300_000 }, async () => {
  const limits = isLong ? defaultLimits : { ...defaultLimits, files: 200, diffBytes: 400 * 1024 }
  const tooMany = limits.files * 1.5
  const repo = tempRepo()
  for (let at = 0; at < tooMany; at++) repo.write(`many/${at}`, `${at}\n`)
  const base = await baseOf(repo.dir, 'run_test', limits)
  expect(await resultOf(base, limits)).toMatchObject({ ok: true, changeSet: { files: [] } })
  for (let at = 0; at < tooMany; at++) repo.write(`many/${at}`, `changed ${at}\n`)
  expect(await resultOf(base, limits)).toMatchObject({ ok: false, code: 'too_large' })
  const second = await baseOf(repo.dir, 'run_second', limits)
  for (let at = 0; at < tooMany; at++) repo.write(`more/${at}`, `${at}\n`)
  expect(await resultOf(second, limits)).toMatchObject({ ok: false, code: 'too_large' })
  repo.remove('more')
  // Each less than a file's patch may have.
  const wide = lines('a line', 12_000)
  for (let at = 0; at * wide.length < limits.diffBytes * 1.5; at++) repo.write(`wide/${at}`, wide)
  expect(await resultOf(second, limits)).toMatchObject({ ok: false, code: 'too_large' })
})

test('a 2 GB file is not read to its end: before the run, made by it, grown, unchanged and removed', async () => {
  const repo = tempRepo()
  const sparse = (path: string, size: number) => {
    writeFileSync(join(repo.dir, path), '')
    truncateSync(join(repo.dir, path), size)
  }
  const huge = 2 * 1024 ** 3
  for (const name of ['kept', 'changed', 'removed']) sparse(name, huge)
  const began = performance.now()
  const base = await baseOf(repo.dir)
  truncateSync(join(repo.dir, 'changed'), huge + 1)
  repo.remove('removed')
  sparse('made', huge)
  sparse('readme.md', huge)
  const changeSet = await changesOf(base)
  expect(performance.now() - began).toBeLessThan(15_000)
  expect(summary(changeSet.files)).toEqual(['modified changed', 'added made', 'modified readme.md', 'deleted removed'])
  for (const file of changeSet.files) expect(file).toMatchObject({ binary: true, patchOmitted: true, additions: null })
  expect(changeSet.diff).toBe('')
})

test('a deleted large binary does not go through memory', async () => {
  const repo = tempRepo()
  repo.write('large.bin', Buffer.alloc(20 * 1024 * 1024, 'ab\0'))
  repo.commit()
  const base = await baseOf(repo.dir)
  repo.remove('large.bin')
  const changeSet = await changesOf(base)
  expect(changeSet.files).toMatchObject([{ path: 'large.bin', status: 'deleted', binary: true, patchOmitted: true }])
})

test('more untracked files than are hashed are watched by their stat data', async () => {
  const repo = tempRepo()
  for (let at = 0; at < 20; at++) repo.write(`u/${String(at).padStart(2, '0')}`, `${at}\n`)
  const base = await baseOf(repo.dir, 'run_test', { ...defaultLimits, baseFiles: 10 })
  repo.write('u/01', 'changed\n')
  repo.write('u/18', 'changed\n')
  repo.remove('u/19')
  const { files } = await changesOf(base)
  expect(files.map((file) => `${file.status} ${file.path} ${file.patchOmitted}`)).toEqual([
    'modified u/01 false',
    'modified u/18 true',
    'deleted u/19 true',
  ])
})

test('a named pipe in the place of a file, and a new one, hold nothing up', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  repo.remove('readme.md')
  execFileSync('mkfifo', [join(repo.dir, 'readme.md'), join(repo.dir, 'pipe')])
  mkdirSync(join(repo.dir, 'hollow'))
  const began = performance.now()
  const { files } = await changesOf(base)
  expect(performance.now() - began).toBeLessThan(5_000)
  expect(summary(files)).toEqual(['type_changed readme.md'])
})

test('a file that git ignores but the harness committed is counted', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  repo.write('ignored/kept.txt', 'kept\n')
  repo.write('ignored/not.txt', 'not\n')
  repo.git('add', '-f', 'ignored/kept.txt')
  const changeSet = await changesOf(base)
  expect(summary(changeSet.files)).toEqual(['added ignored/kept.txt'])
  proveAgainstCopy(base, changeSet)
})

test('the person’s ignore file, the repository’s exclude file and their attributes are in force', async () => {
  const repo = tempRepo()
  const home = tempDir()
  writeFileSync(join(home, '.gitconfig'), '[core]\n\texcludesFile = ~/ignored-by-me\n')
  writeFileSync(join(home, 'ignored-by-me'), '*.mine\n')
  repo.write('.git/info/exclude', '*.here\n')
  repo.write('.git/info/attributes', '*.blob -diff\n')
  const before = process.env['HOME']
  process.env['HOME'] = home
  try {
    const base = await baseOf(repo.dir)
    for (const name of ['a.mine', 'a.here', 'a.blob', 'a.txt']) repo.write(name, 'x\n')
    const { files } = await changesOf(base)
    expect(files.map(({ path, binary }) => [path, binary])).toEqual([
      ['a.blob', true],
      ['a.txt', false],
    ])
  } finally {
    process.env['HOME'] = before
  }
})

const asOtherUser = `
  const [dir, module] = process.argv.slice(1)
  const { takeBase } = await import(module + 'snapshot.ts')
  const { computeChangeSet } = await import(module + 'diff.ts')
  const { realWorld: world } = await import(module + '../../shared/lib/world.ts')
  const { chmodSync, writeFileSync } = await import('node:fs')
  ${becomeNobody}
  const options = { folder: dir, runId: 'run_test', storeDir: dir + '/../state/runs/run_test/change-set', world }
  const taken = await takeBase(options)
  if (!taken.ok) throw new Error(taken.message)
  writeFileSync(dir + '/later', 'x', { mode: 0o200 })
  writeFileSync(dir + '/readme.md', 'closed')
  chmodSync(dir + '/readme.md', 0o200)
  const result = await computeChangeSet({ ...options, base: taken.base })
  console.log(JSON.stringify(result.ok ? result.changeSet.files : result))`

test('files that may not be read are listed without content and stop nothing', () => {
  const repo = tempRepo()
  repo.write('closed', 'x\n')
  chmodSync(join(repo.dir, 'closed'), 0o200)
  // Root may read everything, so this runs as another user where there is the right to become one.
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', '65534', dirname(repo.dir)])
  const module = new URL('../../../device-manager/change-set/', import.meta.url).pathname
  const args = ['--input-type=module', '-e', asOtherUser, repo.dir, module]
  const files: unknown = JSON.parse(execFileSync(process.execPath, args, { cwd: '/', encoding: 'utf8' }))
  expect(files).toMatchObject([
    { path: 'later', status: 'added', patchOmitted: true },
    { path: 'readme.md', status: 'modified', patchOmitted: true },
  ])
})
