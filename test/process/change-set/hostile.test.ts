import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { checkFolder, inspectFolder } from '../../../device-manager/folders/check.ts'
import { releaseBase } from '../../../device-manager/change-set/diff.ts'
import { defaultLimits } from '../../../device-manager/change-set/limits.ts'
import type { BaseSnapshot } from '../../../device-manager/change-set/snapshot.ts'
import { baseOf, changesOf, gitIn, repoAt, resultOf, summary, tempDir, tempRepo, type Repo } from './repo.ts'

const home = process.env['HOME']
afterEach(() => {
  process.env['HOME'] = home
})

/** A program that leaves its name in a file when anything runs it. */
function trap(): { marker: string; program: string } {
  const dir = tempDir()
  const marker = join(dir, 'marker')
  const program = join(dir, 'program')
  writeFileSync(program, `#!/bin/sh\necho "$0 $*" >> '${marker}'\ncat 2>/dev/null\nexit 0\n`)
  chmodSync(program, 0o755)
  return { marker, program }
}

/** Everything in a git config that names a program and that reading a repository could reach. */
function hostileConfig(program: string): string {
  return `
[core]
  fsmonitor = ${program}
  hooksPath = ${program}-hooks
  pager = ${program}
  editor = ${program}
  askPass = ${program}
  sshCommand = ${program}
  gitProxy = ${program}
  alternateRefsCommand = ${program}
[filter "evil"]
  clean = ${program} clean
  smudge = ${program} smudge
  required = true
[filter "worse"]
  process = ${program} process
[diff]
  external = ${program}
[diff "evil"]
  command = ${program}
  textconv = ${program}
[credential]
  helper = ${program}
[alias]
  diff-files = !${program}
  ls-files = !${program}
[gpg]
  program = ${program}
[submodule]
  recurse = true
[status]
  submoduleSummary = true
[remote "origin"]
  url = ext::${program}
  promisor = true
  uploadpack = ${program}
  vcs = evil
[extensions]
  partialClone = origin
`
}

function hooksOf(program: string): string {
  const dir = `${program}-hooks`
  mkdirSync(dir)
  const names = [
    'post-index-change',
    'reference-transaction',
    'pre-commit',
    'post-checkout',
    'fsmonitor-watchman',
    'pre-auto-gc',
  ]
  for (const name of names) {
    writeFileSync(join(dir, name), `#!/bin/sh\nexec '${program}' ${name}\n`)
    chmodSync(join(dir, name), 0o755)
  }
  return dir
}

function prepare(): Repo {
  const repo = tempRepo()
  repo.write('a.evil', 'one\n')
  repo.write('b.worse', 'one\n')
  repo.write('c.diff', 'one\n')
  repo.commit()
  repo.write('.gitattributes', '*.evil filter=evil diff=evil\n*.worse filter=worse\n*.diff diff=evil\n')
  repo.commit()
  return repo
}

async function wholeRun(repo: Repo, between: (base: BaseSnapshot) => void = () => undefined): Promise<string[]> {
  repo.write('a.evil', 'dirty\n')
  const base = await baseOf(repo.dir)
  between(base)
  for (const name of ['a.evil', 'b.worse', 'c.diff', 'd.evil', 'readme.md']) repo.write(name, 'changed\n')
  const changeSet = await changesOf(base)
  await releaseBase(base)
  await checkFolder(repo.dir)
  await inspectFolder(repo.dir)
  return summary(changeSet.files)
}

const expected = ['modified a.evil', 'modified b.worse', 'modified c.diff', 'added d.evil', 'modified readme.md']

test('the traps are live: plain git runs them', () => {
  const { marker, program } = trap()
  const repo = prepare()
  hooksOf(program)
  writeFileSync(join(repo.dir, '.git', 'config'), hostileConfig(program), { flag: 'a' })
  repo.write('a.evil', 'changed\n')
  try {
    repo.git('diff')
  } catch {
    // What the trapped git makes of it does not matter.
  }
  expect(existsSync(marker)).toBe(true)
})

test('git appends to no file that the person’s config names, which a run may have written', async () => {
  const repo = prepare()
  const homeDir = tempDir()
  const victim = join(homeDir, 'device-token')
  writeFileSync(victim, 'the token')
  const targets = ['normalTarget', 'perfTarget', 'eventTarget'].map((name) => `  ${name} = ${victim}\n`)
  writeFileSync(join(homeDir, '.gitconfig'), `[trace2]\n${targets.join('')}`)
  process.env['HOME'] = homeDir
  expect(await wholeRun(repo)).toEqual(expected)
  expect(readFileSync(victim, 'utf8')).toBe('the token')
})

test('nothing that the repository’s config names is executed', async () => {
  const { marker, program } = trap()
  const repo = prepare()
  hooksOf(program)
  writeFileSync(join(repo.dir, '.git', 'config'), hostileConfig(program), { flag: 'a' })
  expect(await wholeRun(repo)).toEqual(expected)
  expect(existsSync(marker)).toBe(false)
})

test('nor what it includes, what the worktree’s own config says, or the hooks of the git folder', async () => {
  const { marker, program } = trap()
  const repo = prepare()
  const included = join(tempDir(), 'included')
  writeFileSync(included, hostileConfig(program).replace(/ *hooksPath.*\n/, ''))
  const hooks = hooksOf(program)
  rmSync(join(repo.dir, '.git', 'hooks'), { recursive: true, force: true })
  mkdirSync(join(repo.dir, '.git', 'hooks'))
  for (const name of ['post-index-change', 'reference-transaction']) {
    writeFileSync(join(repo.dir, '.git', 'hooks', name), `#!/bin/sh\nexec '${hooks}/${name}'\n`, { mode: 0o755 })
  }
  writeFileSync(
    join(repo.dir, '.git', 'config'),
    `[include]\n path = ${included}\n[includeIf "gitdir:${repo.dir}/"]\n path = ${included}\n[extensions]\n worktreeConfig = true\n`,
    { flag: 'a' },
  )
  writeFileSync(join(repo.dir, '.git', 'config.worktree'), hostileConfig(program))
  expect(await wholeRun(repo)).toEqual(expected)
  expect(existsSync(marker)).toBe(false)
})

test('nor what the person’s own config names', async () => {
  const { marker, program } = trap()
  const repo = prepare()
  hooksOf(program)
  const homeDir = tempDir()
  writeFileSync(join(homeDir, '.gitconfig'), hostileConfig(program).replace(/\[extensions\][^[]*/, ''))
  process.env['HOME'] = homeDir
  expect(await wholeRun(repo)).toEqual(expected)
  expect(existsSync(marker)).toBe(false)
})

/** Writes the files in a git folder from which git takes a program, or another config. */
function plant(gitDir: string, repository: string, program: string): void {
  mkdirSync(join(gitDir, 'info'), { recursive: true })
  mkdirSync(join(gitDir, 'hooks'), { recursive: true })
  for (const name of ['post-index-change', 'reference-transaction'])
    writeFileSync(join(gitDir, 'hooks', name), `#!/bin/sh\nexec '${program}' ${name}\n`, { mode: 0o755 })
  writeFileSync(join(gitDir, 'commondir'), `${repository}\n`)
  writeFileSync(join(gitDir, 'config.worktree'), hostileConfig(program))
  writeFileSync(join(gitDir, 'gitdir'), `${repository}\n`)
}

test('nor what a harness writes into the config, or into the private folder, during the run', async () => {
  const { marker, program } = trap()
  const repo = prepare()
  hooksOf(program)
  const act = (base: BaseSnapshot) => {
    writeFileSync(join(repo.dir, '.git', 'config'), hostileConfig(program), { flag: 'a' })
    writeFileSync(join(base.storeDir, 'config'), hostileConfig(program), { flag: 'a' })
    plant(base.storeDir, join(repo.dir, '.git'), program)
  }
  expect(await wholeRun(repo, act)).toEqual(expected)
  expect(existsSync(marker)).toBe(false)
})

test('nor what lies ready in the repository for the private folder, which is not in it', async () => {
  const { marker, program } = trap()
  const repo = prepare()
  hooksOf(program)
  writeFileSync(join(repo.dir, '.git', 'config'), hostileConfig(program), { flag: 'a' })
  plant(join(repo.dir, '.git', 'svc', 'runs', 'run_test'), join(repo.dir, '.git'), program)
  const act = (base: BaseSnapshot) => {
    expect(base.storeDir.startsWith(`${repo.dir}/`)).toBe(false)
    expect(statSync(join(base.storeDir, '..')).mode & 0o777).toBe(0o700)
  }
  expect(await wholeRun(repo, act)).toEqual(expected)
  expect(existsSync(marker)).toBe(false)
})

test('nor a git that lies in the repository, where the PATH is careless', async () => {
  const { marker, program } = trap()
  const repo = prepare()
  writeFileSync(join(repo.dir, 'git'), `#!/bin/sh\nexec '${program}' git\n`, { mode: 0o755 })
  repo.commit()
  const path = process.env['PATH']
  process.env['PATH'] = `:.:${path}`
  try {
    expect(await wholeRun(repo)).toEqual(expected)
  } finally {
    process.env['PATH'] = path
  }
  expect(existsSync(marker)).toBe(false)
})

test('nor what a submodule or a nested repository names', async () => {
  const { marker, program } = trap()
  const repo = tempRepo()
  const inner = prepare()
  repo.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', inner.dir, 'sub')
  repo.commit()
  gitIn(repo.dir, ['init', '-q', 'nested'])
  const nested = repoAt(join(repo.dir, 'nested'))
  nested.commit('x')
  hooksOf(program)
  writeFileSync(join(repo.dir, '.git', 'modules', 'sub', 'config'), hostileConfig(program), { flag: 'a' })
  writeFileSync(join(nested.dir, '.git', 'config'), hostileConfig(program), { flag: 'a' })
  const base = await baseOf(repo.dir)
  repo.write('sub/a.evil', 'changed\n')
  nested.write('a.evil', 'changed\n')
  expect((await changesOf(base)).files).toEqual([])
  expect(existsSync(marker)).toBe(false)
})

test('a working tree that the config moves elsewhere is refused', async () => {
  const repo = tempRepo()
  repo.git('config', 'core.worktree', '/etc')
  await expect(baseOf(repo.dir)).rejects.toThrow(/repo_unavailable|source_unknown/)
})

test.for([
  ['another index', true],
  ['a file that is not there', false],
] as const)('an index that is a link to %s writes nothing there', async ([, exists]) => {
  const repo = tempRepo()
  const index = join(repo.dir, '.git', 'index')
  const target = join(tempDir(), 'index')
  if (exists) copyFileSync(index, target)
  rmSync(index)
  symlinkSync(target, index)
  repo.write('readme.md', 'dirty before the run\n')
  repo.write('new.md', 'new before the run\n')
  const before = exists ? readFileSync(target) : null
  const base = await baseOf(repo.dir)
  expect(existsSync(target) ? readFileSync(target) : null).toEqual(before)
  repo.write('new.md', 'changed by the run\n')
  expect(summary((await changesOf(base)).files)).toEqual(['modified new.md'])
})

test('a pipe that nobody writes to in the place of an ignore file is waited for once', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  repo.remove('.gitignore')
  execFileSync('mkfifo', [join(repo.dir, '.gitignore')])
  const before = performance.now()
  const result = await resultOf(base, { ...defaultLimits, gitMs: 1_500 })
  expect(result).toMatchObject({ ok: false, code: 'diff_unavailable' })
  // Five tries would take at least 7.5 s.
  expect(performance.now() - before).toBeLessThan(6_000)
})

test('GIT_* of the daemon’s environment do not reach git', async () => {
  const repo = tempRepo()
  const { marker, program } = trap()
  const names = {
    GIT_DIR: '/nowhere',
    GIT_INDEX_FILE: '/nowhere',
    GIT_EXTERNAL_DIFF: program,
    GIT_WORK_TREE: '/',
    GIT_TRACE: marker,
  }
  Object.assign(process.env, names)
  try {
    const base = await baseOf(repo.dir)
    repo.write('readme.md', 'x\n')
    expect(summary((await changesOf(base)).files)).toEqual(['modified readme.md'])
  } finally {
    for (const name of Object.keys(names)) delete process.env[name]
  }
  expect(existsSync(marker)).toBe(false)
})

test('files under a filter are listed without content, dirty before the run or changed by it; others show theirs', async () => {
  const repo = tempRepo()
  repo.write('.gitattributes', '*.psd filter=lfs\n')
  const pointer = (size: number) =>
    `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize ${size}\n`
  for (const name of ['dirty.psd', 'kept.psd', 'changed.psd']) repo.write(name, pointer(5))
  repo.commit()
  repo.git('config', 'filter.lfs.process', 'git-lfs filter-process')
  repo.git('config', 'filter.lfs.required', 'true')
  repo.write('dirty.psd', 'dirty')
  const base = await baseOf(repo.dir)
  repo.write('changed.psd', 'pixel secret')
  repo.write('new.psd', 'pixel secret')
  repo.write('readme.md', 'shown\n')
  const changeSet = await changesOf(base)
  expect(changeSet.files.map((file) => `${file.status} ${file.path} ${file.patchOmitted}`)).toEqual([
    'modified changed.psd true',
    'added new.psd true',
    'modified readme.md false',
  ])
  expect(changeSet.diff).not.toContain('secret')
})
