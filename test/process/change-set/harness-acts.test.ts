import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { repeats } from '../../kit/forms.ts'
import {
  baseOf,
  changesOf,
  lines,
  proveAgainstCopy,
  repoAt,
  resultOf,
  runIn,
  summary,
  tempDir,
  tempRepo,
  type Repo,
} from './repo.ts'

test('commits, amends, new branches and merges of the harness count from the base', async () => {
  const repo = tempRepo()
  repo.write('mine.txt', 'mine, not committed\n')
  const changeSet = await runIn(repo, () => {
    repo.write('one.txt', 'one\n')
    repo.commit('one')
    repo.write('two.txt', 'two\n')
    repo.git('add', '-A')
    repo.git('commit', '-q', '--amend', '-m', 'one and two')
    repo.git('checkout', '-q', '-b', 'feature')
    repo.remove('src/a.ts')
    repo.commit('without a')
    repo.git('checkout', '-q', 'main')
    repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'feature')
  })
  expect(summary(changeSet.files)).toEqual(['added one.txt', 'deleted src/a.ts', 'added two.txt'])
  expect(changeSet.head).toEqual({ commit: repo.git('rev-parse', 'main').trim(), branch: 'main' })
  expect(changeSet.base.commit).not.toBe(changeSet.head.commit)
})

test('a rebase and a switch of branches count as what they change in the working tree', async () => {
  const repo = tempRepo()
  repo.git('checkout', '-q', '-b', 'upstream')
  repo.write('upstream.txt', 'up\n')
  repo.commit('upstream')
  repo.git('checkout', '-q', 'main')
  repo.write('local.txt', 'local\n')
  repo.commit('local')
  const changeSet = await runIn(repo, () => {
    repo.git('rebase', '-q', 'upstream')
    repo.git('checkout', '-q', '-b', 'elsewhere')
  })
  expect(summary(changeSet.files)).toEqual(['added upstream.txt'])
  expect(changeSet.head.branch).toBe('elsewhere')
})

test('the head is told with loose, packed, nested and symbolic refs', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  const commit = repo.git('rev-parse', 'HEAD').trim()
  repo.git('pack-refs', '--all')
  expect((await changesOf(base)).head).toEqual({ commit, branch: 'main' })
  const next = repo.commit('next')
  expect((await changesOf(base)).head).toEqual({ commit: next, branch: 'main' })
  repo.git('checkout', '-q', '-b', 'team/ünï/x')
  expect((await changesOf(base)).head).toEqual({ commit: next, branch: 'team/ünï/x' })
  repo.git('checkout', '-q', '--detach', commit)
  expect((await changesOf(base)).head).toEqual({ commit, branch: null })
  repo.git('checkout', '-q', '--orphan', 'fresh')
  expect((await changesOf(base)).head).toEqual({ commit: null, branch: 'fresh' })
})

test('a reset that throws dirty work away is counted', async () => {
  const repo = tempRepo()
  repo.write('readme.md', 'work of a person\n')
  repo.write('new.txt', 'work of a person\n')
  const changeSet = await runIn(repo, () => {
    repo.git('reset', '-q', '--hard')
    repo.git('clean', '-fdq')
  })
  expect(summary(changeSet.files)).toEqual(['deleted new.txt', 'modified readme.md'])
  expect(changeSet.diff).toContain('-work of a person')
})

test('the base outlives gc, expired reflogs and a moved branch, staged files included', async () => {
  const repo = tempRepo()
  repo.write('readme.md', 'second\n')
  repo.commit('second')
  repo.write('staged.txt', lines('staged', 50))
  repo.git('add', 'staged.txt')
  repo.write('dirty.txt', 'dirty\n')
  const base = await baseOf(repo.dir)
  repo.git('reset', '-q', '--hard', 'HEAD~1')
  rmSync(join(repo.dir, 'dirty.txt'))
  repo.git('reflog', 'expire', '--expire=now', '--all')
  repo.git('gc', '-q', '--prune=now', '--aggressive')
  expect(repo.git('cat-file', '-t', base.commit!).trim()).toBe('commit')
  const changeSet = await changesOf(base)
  expect(summary(changeSet.files)).toEqual(['deleted dirty.txt', 'modified readme.md', 'deleted staged.txt'])
  expect(changeSet.diff).toContain('-staged 49')
  proveAgainstCopy(base, changeSet)
  expect(() => repo.git('fsck', '--strict')).not.toThrow()
})

test('a deleted or broken .git is a typed refusal', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  repo.write('readme.md', 'x\n')
  rmSync(join(repo.dir, '.git', 'objects'), { recursive: true })
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'diff_unavailable' })
  rmSync(join(repo.dir, '.git'), { recursive: true })
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'repo_unavailable' })
  rmSync(repo.dir, { recursive: true })
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'repo_unavailable' })
})

test('a new repository in the place of the old one is a typed refusal', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  rmSync(join(repo.dir, '.git'), { recursive: true })
  repo.git('init', '-q')
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'repo_unavailable' })
})

test('a moved private folder, a wrong record and a wrong index are typed refusals', async () => {
  for (const name of ['base.json', 'index', 'objects/info/alternates']) {
    const repo = tempRepo()
    repo.write('untracked.txt', 'kept in the private folder\n')
    const base = await baseOf(repo.dir)
    repo.write('readme.md', 'x\n')
    rmSync(join(base.storeDir, name))
    writeFileSync(join(base.storeDir, name), '{"junk":')
    expect(await resultOf(base)).toMatchObject({ ok: false })
  }
})

/** With rules that changed in between git no longer tells what the run did. */
const unlikeGit = { isProven: false }

test('an ignore rule of the harness does not hide what was there', async () => {
  const repo = tempRepo()
  repo.write('notes.txt', 'notes\n')
  const changeSet = await runIn(
    repo,
    () => {
      repo.write('.gitignore', 'notes.txt\n')
      repo.write('notes.txt', 'changed\n')
    },
    unlikeGit,
  )
  expect(summary(changeSet.files)).toEqual(['modified .gitignore', 'modified notes.txt'])
})

/** Files of one moment have one change time: waits for the next one of the file system's clock. */
async function nextMoment(repo: Repo): Promise<void> {
  const probe = join(repo.dir, '.git', 'probe')
  const now = () => {
    writeFileSync(probe, '')
    return statSync(probe, { bigint: true }).ctimeNs
  }
  const before = now()
  await vi.waitUntil(() => now() > before, { timeout: 5_000, interval: 1 })
  rmSync(probe)
}

test.each([
  ['is taken out', (repo: Repo) => repo.write('.gitignore', 'ignored/\n'), 'modified .gitignore'],
  ['goes with its file', (repo: Repo) => repo.remove('.gitignore'), 'deleted .gitignore'],
  ['is taken out of the exclude file', (repo: Repo) => repo.write('.git/info/exclude', ''), null],
])('an ignore rule that %s shows of what was ignored only what the run wrote', async (_, remove, told) => {
  const repo = tempRepo()
  if (told === null) {
    repo.write('.gitignore', '')
    repo.commit()
    repo.write('.git/info/exclude', '*.log\n')
  }
  for (const name of ['private', 'written', 'moved']) repo.write(`${name}.log`, `${name}\n`)
  repo.write('elsewhere.txt', 'of the person\n')
  await nextMoment(repo)
  const changeSet = await runIn(
    repo,
    () => {
      remove(repo)
      repo.write('new.log', 'by the run\n')
      repo.write('written.log', 'by the run\n')
      renameSync(join(repo.dir, 'moved.log'), join(repo.dir, 'here.log'))
    },
    unlikeGit,
  )
  expect(summary(changeSet.files)).toEqual([
    ...(told === null ? [] : [told]),
    'added here.log',
    'added new.log',
    'added written.log',
  ])
})

test('what the run makes is counted when it changes no rule, whatever its times say', async () => {
  const repo = tempRepo()
  const changeSet = await runIn(repo, () => {
    repo.write('old.txt', 'unpacked\n')
    utimesSync(join(repo.dir, 'old.txt'), 1, 1)
  })
  expect(summary(changeSet.files)).toEqual(['added old.txt'])
})

test('two runs in one repository: each counts all that changed since its own base', async () => {
  const repo = tempRepo()
  const first = await baseOf(repo.dir, 'run_first')
  repo.write('one.txt', 'by the first\n')
  const second = await baseOf(repo.dir, 'run_second')
  repo.write('two.txt', 'by either\n')
  const [one, two] = await Promise.all([changesOf(first), changesOf(second)])
  expect(summary(one.files)).toEqual(['added one.txt', 'added two.txt'])
  expect(summary(two.files)).toEqual(['added two.txt'])
  proveAgainstCopy(first, one)
  proveAgainstCopy(second, two)
})

const busyHarness = `
  import { rmSync, writeFileSync } from 'node:fs'
  let pauseMs = 2
  process.stdin.on('data', () => (pauseMs = 500)).on('end', () => process.exit())
  for (let round = 0; ; round++) {
    const path = 'busy/' + ((round * 7) % 50)
    if (round % 3 === 0) rmSync(path, { force: true })
    else writeFileSync(path, 'round\\n'.repeat(round % 100))
    if (round % 10 === 0) writeFileSync('busy/new-' + (round % 70), String(round))
    if (round === 100) process.stdout.write('busy')
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }`

test('asked again and again while files change, it answers each time and ends right', async () => {
  const repo = tempRepo()
  for (let at = 0; at < 50; at++) repo.write(`busy/${at}`, lines('start', 50))
  const base = await baseOf(repo.dir)
  const args = ['--input-type=module', '-e', busyHarness]
  const harness = spawn(process.execPath, args, { cwd: repo.dir, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(harness, 'exit')
  await once(harness.stdout, 'data')
  const codes: string[] = []
  const rounds = repeats('BUSY_ROUNDS', { short: 2, long: 10 })
  // Git may never come through a folder between two changes of it: then they come less often.
  for (let round = 0; round < rounds || (!codes.includes('ok') && round < 30); round++) {
    if (round === rounds) harness.stdin.write('slower')
    for (const result of await Promise.all([resultOf(base), resultOf(base)])) codes.push(result.ok ? 'ok' : result.code)
  }
  harness.stdin.end()
  await ended
  expect(codes.filter((code) => code !== 'ok' && code !== 'diff_unavailable')).toEqual([])
  expect(codes).toContain('ok')
  proveAgainstCopy(base, await changesOf(base))
})

test('a tree that was copied with cp and has foreign stat data', async () => {
  const origin = tempRepo()
  const dir = join(tempDir(), 'copy')
  cpSync(origin.dir, dir, { recursive: true })
  const repo = repoAt(dir)
  const changeSet = await runIn(repo, () => repo.write('readme.md', 'x\n'))
  expect(summary(changeSet.files)).toEqual(['modified readme.md'])
})
