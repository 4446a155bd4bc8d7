import { idFrom } from '../../../shared/lib/ids.ts'
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, inject, onTestFinished } from 'vitest'
import { computeChangeSet, releaseBase } from '../../../device-manager/change-set/diff.ts'
import type { ChangeSetLimits } from '../../../device-manager/change-set/limits.ts'
import { takeBase, type BaseSnapshot } from '../../../device-manager/change-set/snapshot.ts'
import type { ChangedFile, ChangeSet, ChangeSetResult } from '../../../shared/device/change-set.ts'
import { realWorld as world } from '../../../shared/lib/world.ts'

export interface Repo {
  dir: string
  git(...args: string[]): string
  write(path: string, content: string | Buffer): void
  remove(path: string): void
  link(path: string, target: string): void
  executable(path: string): void
  commit(message?: string): string
}

export function tempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'svc-change-set-')))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Environment of a person with no settings of their own. */
const env = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.com',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@example.com',
  GIT_EDITOR: 'true',
  GIT_ALLOW_PROTOCOL: 'file',
}

export function gitIn(
  dir: string,
  args: readonly string[],
  extra: Record<string, string> = {},
  input?: string,
): string {
  return programIn(dir, ['git', ...args], { extra, input })
}

/** Runs several git commands in one shell. A process as large as a test's needs some ten milliseconds to start a program. */
export function scriptIn(
  dir: string,
  script: string,
  { args = [], ...how }: { args?: readonly string[]; extra?: Record<string, string>; input?: string } = {},
): string {
  return programIn(dir, ['sh', '-ec', script, 'sh', ...args], how)
}

function programIn(
  dir: string,
  [program, ...args]: readonly [string, ...string[]],
  { extra = {}, input }: { extra?: Record<string, string>; input?: string | undefined },
): string {
  return execFileSync(program, args, {
    cwd: dir,
    env: { ...env, ...extra },
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(input === undefined ? {} : { input }),
  })
}

const commitAll = 'git add -A; git commit -q --allow-empty -m "$1"; git rev-parse HEAD'

export function repoAt(dir: string): Repo {
  const at = (path: string) => join(dir, path)
  const git = (...args: string[]) => gitIn(dir, args)
  return {
    dir,
    git,
    write: (path, content) => {
      mkdirSync(dirname(at(path)), { recursive: true })
      writeFileSync(at(path), content)
    },
    remove: (path) => rmSync(at(path), { recursive: true }),
    link: (path, target) => symlinkSync(target, at(path)),
    executable: (path) => chmodSync(at(path), 0o755),
    commit: (message = 'change') => scriptIn(dir, commitAll, { args: [message] }).trim(),
  }
}

const templates = new Map<string, string>()

/** A repository with one commit of a few files. Each is a copy: to make one takes git several programs. */
export function tempRepo(initArgs: readonly string[] = []): Repo {
  const kind = initArgs.join(' ')
  let template = templates.get(kind)
  if (template === undefined) {
    template = newTemplate(initArgs)
    templates.set(kind, template)
  }
  const dir = join(tempDir(), 'repo')
  cpSync(template, dir, { recursive: true })
  // The index knows files by their places on the disk, too.
  gitIn(dir, ['update-index', '-q', '--refresh'])
  return repoAt(dir)
}

function newTemplate(initArgs: readonly string[]): string {
  const root = mkdtempSync(join(realpathSync(inject('databases').folder), 'repository-'))
  const dir = join(root, 'repo')
  gitIn(root, ['init', '-q', '-b', 'main', ...initArgs, dir])
  const repo = repoAt(dir)
  repo.write('readme.md', 'hello\nworld\n')
  repo.write('src/a.ts', lines('a', 20))
  repo.write('src/b.ts', lines('b', 20))
  repo.write('picture.bin', Buffer.from([1, 0, 2, 0, 3]))
  repo.write('.gitignore', 'ignored/\n*.log\n')
  repo.commit('first')
  return dir
}

export function lines(word: string, count: number): string {
  return Array.from({ length: count }, (_, index) => `${word} ${index}\n`).join('')
}

/** Beside the repository, as a device's state folder is; the folder is in one of `tempDir`. */
export function storeOf(folder: string, runId = 'run_test'): string {
  const root = /^.*\/svc-change-set-[^/]+/.exec(folder)?.[0] ?? tempDir()
  return join(root, 'state', 'runs', runId, 'change-set')
}

export async function baseOf(
  folder: string,
  runId = 'run_test',
  limits?: ChangeSetLimits,
  ownFolders: readonly string[] = [],
): Promise<BaseSnapshot> {
  const result = await takeBase({
    folder,
    runId: idFrom(runId),
    storeDir: storeOf(folder, runId),
    ownFolders,
    world,
    ...(limits === undefined ? {} : { limits }),
  })
  if (!result.ok) throw new Error(`${result.code}: ${result.message}`)
  return result.base
}

export async function resultOf(base: BaseSnapshot, limits?: ChangeSetLimits): Promise<ChangeSetResult> {
  const folder = join(base.topLevel, base.prefix)
  const runId = base.refName.split('/')[3]!
  return computeChangeSet({ base, folder, runId: idFrom(runId), world, ...(limits === undefined ? {} : { limits }) })
}

export async function changesOf(base: BaseSnapshot, limits?: ChangeSetLimits): Promise<ChangeSet> {
  const result = await resultOf(base, limits)
  if (!result.ok) throw new Error(`${result.code}: ${result.message}`)
  return result.changeSet
}

/** `status path` of each file, renames as `renamed old -> new`. */
export function summary(files: readonly ChangedFile[]): string[] {
  return files.map((file) => `${file.status} ${file.oldPath === null ? '' : `${file.oldPath} -> `}${file.path}`)
}

/**
 * Proves a change-set in another way than it was made: its diff, applied to the tree of the base, gives the tree that
 * plain `git add -A` makes of a copy of the working tree. Only for change-sets without left out patches.
 */
export function proveAgainstCopy(base: BaseSnapshot, changeSet: ChangeSet): void {
  const scratch = tempDir()
  const apply = changeSet.diff === '' ? '' : 'git apply --cached --binary --whitespace=nowarn -;'
  const applied = scriptIn(scratch, `git read-tree "$1"; ${apply} git write-tree`, {
    args: [base.tree],
    extra: { GIT_DIR: base.storeDir, GIT_INDEX_FILE: join(scratch, 'index') },
    input: changeSet.diff,
  }).trim()
  const copy = join(scratch, 'copy')
  cpSync(base.topLevel, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
  const whole = scriptIn(copy, 'git add -A; git write-tree').trim()
  const where = { GIT_DIR: base.storeDir, GIT_ALTERNATE_OBJECT_DIRECTORIES: join(copy, '.git', 'objects') }
  const part = base.prefix === '' ? '' : `:${base.prefix.slice(0, -1)}`
  const listing = (tree: string) => gitIn(scratch, ['ls-tree', '-r', `${tree}${part}`], where)
  expect(listing(applied)).toBe(listing(whole))
}

/** Base, then the harness's work, then the change-set, proven unless plain git is meant to see something else. */
export async function runIn(
  repo: Repo,
  work: () => void | Promise<void>,
  { isProven = true } = {},
): Promise<ChangeSet> {
  const base = await baseOf(repo.dir)
  try {
    await work()
    const changeSet = await changesOf(base)
    if (isProven) proveAgainstCopy(base, changeSet)
    return changeSet
  } finally {
    await releaseBase(base)
  }
}
