import { idFrom } from '../../../shared/lib/ids.ts'
import {
  chmodSync,
  chownSync,
  existsSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { computeChangeSet } from '../../../device-manager/change-set/diff.ts'
import { takeBase } from '../../../device-manager/change-set/snapshot.ts'
import { realWorld as world } from '../../../shared/lib/world.ts'
import { whyNoSmallDisk } from '../../kit/small-disk.ts'
import {
  baseOf,
  changesOf,
  gitIn,
  lines,
  proveAgainstCopy,
  repoAt,
  resultOf,
  runIn,
  storeOf,
  summary,
  tempDir,
  tempRepo,
  type Repo,
} from './repo.ts'

const take = async (folder: string, runId = 'run_test') =>
  takeBase({ folder, runId: idFrom(runId), storeDir: storeOf(folder, runId), world })

/** All that git shows a person of a repository, and the index byte by byte. */
function visibleState(repo: Repo): Record<string, string> {
  const index = join(repo.dir, '.git', 'index')
  return {
    index: existsSync(index) ? createHash('sha256').update(readFileSync(index)).digest('hex') : 'none',
    head: readFileSync(join(repo.dir, '.git', 'HEAD'), 'utf8'),
    refs: repo.git('for-each-ref', 'refs/heads', 'refs/tags', 'refs/stash', 'refs/remotes'),
    objects: repo.git('count-objects', '-v'),
    config: readFileSync(join(repo.dir, '.git', 'config'), 'utf8'),
    status: gitIn(repo.dir, ['--no-optional-locks', 'status', '--porcelain=v2', '--branch']),
  }
}

test('what was dirty, staged, untracked, deleted or renamed before the run is not the run’s', async () => {
  const repo = tempRepo()
  repo.write('readme.md', 'dirty\n')
  repo.write('untracked.txt', 'mine\n')
  repo.write('staged.txt', 'staged\n')
  repo.git('add', 'staged.txt')
  repo.write('staged.txt', 'staged, then changed\n')
  repo.remove('src/b.ts')
  repo.git('mv', 'src/a.ts', 'src/moved.ts')
  const changeSet = await runIn(repo, () => {
    repo.write('untracked.txt', 'mine\nand the run’s\n')
    repo.write('staged.txt', 'the run’s\n')
  })
  expect(summary(changeSet.files)).toEqual(['modified staged.txt', 'modified untracked.txt'])
  expect(changeSet.additions).toBe(2)
})

test('taking a base and computing leave index, head, refs, objects, config and status as they were', async () => {
  const repo = tempRepo()
  repo.write('readme.md', 'dirty\n')
  repo.write('untracked.txt', 'mine\n')
  repo.write('staged.txt', 'staged\n')
  repo.git('add', 'staged.txt')
  repo.git('stash', 'store', repo.git('stash', 'create').trim())
  const before = visibleState(repo)
  const base = await baseOf(repo.dir)
  await changesOf(base)
  expect(visibleState(repo)).toEqual(before)
})

test('an unborn branch', async () => {
  const dir = join(tempDir(), 'repo')
  gitIn(tmpdir(), ['init', '-q', '-b', 'trunk', dir])
  const repo = repoAt(dir)
  repo.write('before.txt', 'before\n')
  repo.write('staged.txt', 'staged\n')
  repo.git('add', 'staged.txt')
  const base = await baseOf(dir)
  expect(base).toMatchObject({ commit: null, branch: 'trunk' })
  repo.write('after.txt', 'after\n')
  const commit = repo.commit()
  const changeSet = await changesOf(base)
  expect(changeSet.base).toEqual({ commit: null, branch: 'trunk' })
  expect(changeSet.head).toEqual({ commit, branch: 'trunk' })
  expect(summary(changeSet.files)).toEqual(['added after.txt'])
  proveAgainstCopy(base, changeSet)
})

test('an unborn branch that stays unborn, without any file', async () => {
  const dir = join(tempDir(), 'repo')
  gitIn(tmpdir(), ['init', '-q', '-b', 'trunk', dir])
  const changeSet = await changesOf(await baseOf(dir))
  expect(changeSet).toMatchObject({ head: { commit: null, branch: 'trunk' }, files: [] })
})

test('a detached head', async () => {
  const repo = tempRepo()
  repo.git('checkout', '-q', '--detach')
  const changeSet = await runIn(repo, () => repo.write('x', 'x\n'))
  expect(changeSet.base).toEqual({ commit: repo.git('rev-parse', 'HEAD').trim(), branch: null })
  expect(changeSet.head.branch).toBeNull()
})

test('a shallow clone', async () => {
  const origin = tempRepo()
  origin.write('readme.md', 'second\n')
  origin.commit('second')
  const dir = join(tempDir(), 'clone')
  gitIn(origin.dir, ['clone', '-q', '--depth=1', `file://${origin.dir}`, dir])
  const repo = repoAt(dir)
  const changeSet = await runIn(repo, () => {
    repo.write('readme.md', 'third\n')
    repo.commit('third')
  })
  expect(summary(changeSet.files)).toEqual(['modified readme.md'])
})

test('a clone without its blobs fetches nothing', async () => {
  const origin = tempRepo()
  origin.git('config', 'uploadpack.allowFilter', 'true')
  const dir = join(tempDir(), 'clone')
  gitIn(origin.dir, ['clone', '-q', '--filter=blob:none', '--no-checkout', `file://${origin.dir}`, dir])
  const repo = repoAt(dir)
  repo.git('sparse-checkout', 'set', '--no-cone', '/readme.md')
  repo.git('checkout', '-q', 'main')
  const present = repo.git('count-objects', '-v')
  const base = await baseOf(dir)
  repo.write('readme.md', 'changed\n')
  expect(summary((await changesOf(base)).files)).toEqual(['modified readme.md'])
  expect(repo.git('count-objects', '-v')).toBe(present)
})

test('in the middle of a merge and of a rebase with conflicts', async () => {
  const repo = tempRepo()
  repo.git('checkout', '-q', '-b', 'other')
  repo.write('readme.md', 'theirs\n')
  repo.remove('src/b.ts')
  repo.commit('theirs')
  repo.git('checkout', '-q', 'main')
  repo.write('readme.md', 'ours\n')
  repo.write('src/b.ts', 'ours\n')
  repo.commit('ours')
  for (const command of [
    ['merge', 'other'],
    ['rebase', 'other'],
  ]) {
    expect(() => repo.git(...command)).toThrow(/CONFLICT|could not apply|Command failed/)
    const base = await baseOf(repo.dir)
    expect(summary((await changesOf(base)).files)).toEqual([])
    repo.write('readme.md', 'resolved\n')
    expect(summary((await changesOf(base)).files)).toEqual(['modified readme.md'])
    repo.git(command[0]!, '--abort')
  }
})

test('a conflict outside the run’s folder', async () => {
  const repo = tempRepo()
  repo.git('checkout', '-q', '-b', 'other')
  repo.write('readme.md', 'theirs\n')
  repo.commit('theirs')
  repo.git('checkout', '-q', 'main')
  repo.write('readme.md', 'ours\n')
  repo.commit('ours')
  expect(() => repo.git('merge', 'other')).toThrow(/Command failed/)
  const base = await baseOf(join(repo.dir, 'src'))
  repo.write('src/a.ts', 'x\n')
  expect(summary((await changesOf(base)).files)).toEqual(['modified src/a.ts'])
})

test('a bare repository, the git folder itself, no repository and no folder are refused by their code', async () => {
  const dir = tempDir()
  gitIn(dir, ['init', '-q', '--bare', 'bare'])
  gitIn(dir, ['init', '-q', 'repo'])
  expect(await take(join(dir, 'bare'))).toMatchObject({
    ok: false,
    code: 'repo_unavailable',
    message: expect.stringContaining('bare'),
  })
  expect(await take(join(dir, 'repo', '.git'))).toMatchObject({ ok: false, code: 'repo_unavailable' })
  expect(await take(dir)).toMatchObject({ ok: false, code: 'source_unknown' })
  expect(await take(join(dir, 'gone'))).toMatchObject({ ok: false, code: 'repo_unavailable' })
  expect(await take(dir, '../../etc')).toMatchObject({ ok: false })
})

test('a folder that the run removed is told so', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  rmSync(repo.dir, { recursive: true })
  expect(await resultOf(base)).toEqual({
    ok: false,
    code: 'repo_unavailable',
    message: 'The folder or its repository is not there.',
  })
})

test('a linked worktree', async () => {
  const repo = tempRepo()
  const dir = join(tempDir(), 'linked')
  repo.git('worktree', 'add', '-q', '-b', 'side', dir)
  const linked = repoAt(dir)
  repo.write('readme.md', 'dirt in the main one\n')
  linked.write('src/a.ts', 'dirt\n')
  const base = await baseOf(dir)
  expect(base).toMatchObject({ topLevel: dir, branch: 'side' })
  linked.write('src/b.ts', 'changed\n')
  const commit = linked.commit()
  const changeSet = await changesOf(base)
  expect(changeSet.head).toEqual({ commit, branch: 'side' })
  expect(summary(changeSet.files)).toEqual(['modified src/b.ts'])
})

test('of a repository only the run’s sub-folder counts, with paths from the top', async () => {
  const repo = tempRepo()
  repo.write('src-not/x', 'x\n')
  repo.commit()
  const base = await baseOf(join(repo.dir, 'src'))
  expect(base.prefix).toBe('src/')
  repo.write('readme.md', 'outside\n')
  repo.write('outside.txt', 'outside\n')
  repo.write('src-not/x', 'outside\n')
  repo.write('src/a.ts', 'inside\n')
  repo.write('src/deep/new.ts', 'inside\n')
  const changeSet = await changesOf(base)
  expect(summary(changeSet.files)).toEqual(['modified src/a.ts', 'added src/deep/new.ts'])
  proveAgainstCopy(base, changeSet)
})

test('a folder reached by a symlink, and one whose name has spaces, quotes and Unicode', async () => {
  const dir = join(tempDir(), 'my "köde": a')
  gitIn('/', ['init', '-q', dir])
  const repo = repoAt(dir)
  repo.write('x', 'x\n')
  repo.commit()
  const link = join(tempDir(), 'link')
  symlinkSync(dir, link)
  const base = await baseOf(link)
  expect(base.topLevel).toBe(dir)
  repo.write('x', 'y\n')
  const result = await computeChangeSet({ base, folder: link, runId: idFrom('run_test'), world })
  expect(result.ok && summary(result.changeSet.files)).toEqual(['modified x'])
})

test.each([['--cone', ['src']] as const, ['--no-cone', ['/src/']] as const])(
  'a sparse checkout (%s)',
  async (kind, patterns) => {
    const repo = tempRepo()
    repo.write('docs/guide.md', lines('guide', 5))
    repo.commit()
    repo.git('sparse-checkout', 'set', kind, ...(kind === '--cone' ? ['--sparse-index'] : []), ...patterns)
    expect(existsSync(join(repo.dir, 'docs'))).toBe(false)
    const base = await baseOf(repo.dir)
    expect((await changesOf(base)).files).toEqual([])
    repo.write('src/a.ts', 'x\n')
    repo.write('docs/guide.md', 'written although it is not checked out\n')
    expect(summary((await changesOf(base)).files)).toEqual(['modified docs/guide.md', 'modified src/a.ts'])
  },
)

test('a repository of SHA-256 objects', async () => {
  const repo = tempRepo(['--object-format=sha256'])
  repo.write('dirty.txt', 'before\n')
  const changeSet = await runIn(repo, () => {
    repo.write('dirty.txt', 'after\n')
    repo.write('new.bin', Buffer.from([0, 1, 2]))
  })
  expect(summary(changeSet.files)).toEqual(['modified dirty.txt', 'added new.bin'])
})

test('a split index, an index of version 4, and one with the untracked cache', async () => {
  const repo = tempRepo()
  const variants = [
    ['update-index', '--split-index'],
    ['update-index', '--no-split-index', '--index-version', '4'],
    ['update-index', '--force-untracked-cache'],
  ]
  for (const [at, variant] of variants.entries()) {
    repo.git(...variant)
    const changeSet = await runIn(repo, () => repo.write('readme.md', `round ${at}\n`))
    expect(summary(changeSet.files)).toEqual(['modified readme.md'])
  }
})

test('a lock on the index holds nothing up and stays', async () => {
  const repo = tempRepo()
  writeFileSync(join(repo.dir, '.git', 'index.lock'), '')
  const base = await baseOf(repo.dir)
  repo.write('readme.md', 'changed\n')
  expect(summary((await changesOf(base)).files)).toEqual(['modified readme.md'])
  expect(existsSync(join(repo.dir, '.git', 'index.lock'))).toBe(true)
})

test('a corrupt index, head, config or object is a typed refusal', async () => {
  const harm: [string, (repo: Repo) => void][] = [
    ['index', (repo) => writeFileSync(join(repo.dir, '.git', 'index'), 'junk that is no index at all')],
    ['index cut', (repo) => truncateSync(join(repo.dir, '.git', 'index'), 40)],
    ['head', (repo) => writeFileSync(join(repo.dir, '.git', 'HEAD'), 'junk')],
    ['config', (repo) => writeFileSync(join(repo.dir, '.git', 'config'), '[core\nbroken')],
    ['objects', (repo) => rmSync(join(repo.dir, '.git', 'objects'), { recursive: true })],
  ]
  for (const [name, act] of harm) {
    const repo = tempRepo()
    act(repo)
    const result = await take(repo.dir)
    const answer = result.ok ? 'ok' : result.code
    expect({ name, answer }).toEqual({
      name,
      answer: expect.stringMatching(/^(?:repo_unavailable|source_unknown|diff_unavailable)$/),
    })
  }
})

test('a repository of another user, or without permissions, is refused', async () => {
  const repo = tempRepo()
  const isRoot = process.getuid?.() === 0
  // Only root can give a folder away; only others are stopped by permissions.
  if (isRoot) for (const path of ['', '.git']) chownSync(join(repo.dir, path), 12_345, 12_345)
  else chmodSync(join(repo.dir, '.git', 'objects'), 0o000)
  const result = await take(repo.dir)
  if (!isRoot) chmodSync(join(repo.dir, '.git', 'objects'), 0o700)
  expect(result).toMatchObject({ ok: false, message: expect.stringMatching(isRoot ? /ownership/ : /./) })
})

test('a base is only compared with its own run and folder', async () => {
  const repo = tempRepo()
  const other = tempRepo()
  const base = await baseOf(repo.dir)
  expect(await computeChangeSet({ base, folder: repo.dir, runId: idFrom('run_other'), world })).toMatchObject({
    ok: false,
    code: 'source_unknown',
  })
  expect(await computeChangeSet({ base, folder: other.dir, runId: idFrom('run_test'), world })).toMatchObject({
    ok: false,
    code: 'repo_unavailable',
  })
})

test('a repository on a read-only file system has a base, and what changes once it can be written to is told', async ({
  skip,
}) => {
  const why = whyNoSmallDisk()
  if (why !== null) skip(why)
  const repo = tempRepo()
  // In a mount namespace of its own, which ends with it.
  const moduleAt = (path: string) => join(import.meta.dirname, '../../..', path)
  const script = `
    import { execFileSync } from 'node:child_process'
    import { writeFileSync } from 'node:fs'
    import { computeChangeSet } from '${moduleAt('device-manager/change-set/diff.ts')}'
    import { takeBase } from '${moduleAt('device-manager/change-set/snapshot.ts')}'
    import { realWorld as world } from '${moduleAt('shared/lib/world.ts')}'
    const [folder, storeDir] = ${JSON.stringify([repo.dir, storeOf(repo.dir, 'run_test')])}
    const remount = (how) => execFileSync('mount', ['-o', 'remount,bind,' + how, folder])
    execFileSync('mount', ['--bind', folder, folder])
    remount('ro')
    const taken = await takeBase({ folder, runId: 'run_test', storeDir, world })
    const compare = () => computeChangeSet({ base: taken.base, folder, runId: 'run_test', world })
    const first = taken.ok ? await compare() : taken
    remount('rw')
    writeFileSync(folder + '/readme.md', 'changed' + String.fromCharCode(10))
    console.log(JSON.stringify([first, taken.ok ? await compare() : taken]))
  `
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript']
  const told = execFileSync('unshare', ['-m', '--propagation', 'private', ...node, '-e', script], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
  })
  const [first, then] = JSON.parse(told) as unknown[]
  expect(first).toMatchObject({ ok: true, changeSet: { files: [] } })
  expect(then).toMatchObject({ ok: true, changeSet: { files: [{ path: 'readme.md', status: 'modified' }] } })
})
