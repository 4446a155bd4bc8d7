import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { ChangeSetFailure, failureOf } from './failure.ts'
import { runGit } from './git.ts'
import { readRegularFile } from './regular-file.ts'

/** The repository that holds a folder, and its head. All paths are absolute. */
export interface Repository {
  topLevel: string
  /** The folder below `topLevel`, with a slash at its end; empty when the folder is the top. */
  prefix: string
  gitDir: string
  /** Differs from `gitDir` in a linked worktree. */
  commonDir: string
  objectFormat: 'sha1' | 'sha256'
  commit: string | null
  branch: string | null
  /** Its refs are files and its objects are named by SHA-1: what is simple may be read and written without git. */
  isPlain: boolean
}

const query = [
  'rev-parse',
  '--is-bare-repository',
  '--is-inside-work-tree',
  '--show-object-format',
  '--path-format=absolute',
  '--git-dir',
  '--git-common-dir',
  '--show-toplevel',
  '--show-prefix',
] as const

/**
 * Finds the repository that holds the folder. Fails with `source_unknown` when there is none and with
 * `repo_unavailable` when it is bare, belongs to someone else, or cannot be read.
 */
export async function locateRepository(folder: string, timeoutMs: number): Promise<Repository> {
  const args = [...query, 'HEAD', '--symbolic-full-name', 'HEAD'] as const
  const outcome = await runGit({ args, cwd: folder, timeoutMs })
  const lines = outcome.stdout.toString('utf8').split('\n')
  if (lines[0] === 'true')
    throw new ChangeSetFailure('repo_unavailable', 'The repository is bare: it has no working tree.')
  if (lines[1] === 'false')
    throw new ChangeSetFailure('repo_unavailable', 'The folder lies inside the git folder of a repository.')
  const isUnborn = !outcome.ok && outcome.reason === 'failed' && lines.length >= 8 && /HEAD/.test(outcome.stderr)
  if (!outcome.ok && !isUnborn) {
    if (/not a git repository/.test(outcome.stderr)) {
      throw new ChangeSetFailure('source_unknown', 'The folder is not in a git repository.')
    }
    throw failureOf(outcome, 'looking for the repository')
  }
  const [, , objectFormat, gitDir, commonDir, topLevel, prefix, commit, fullName] = lines
  if (
    gitDir === undefined ||
    commonDir === undefined ||
    topLevel === undefined ||
    prefix === undefined ||
    lines.length > 10
  ) {
    throw new ChangeSetFailure('repo_unavailable', 'The paths of the repository cannot be read.')
  }
  await demandInside(folder, topLevel, prefix)
  const repository = {
    topLevel,
    prefix,
    gitDir,
    commonDir,
    objectFormat: objectFormat === 'sha256' ? 'sha256' : 'sha1',
    isPlain: false,
  } as const
  if (isUnborn) return { ...repository, commit: null, branch: await unbornBranch(folder, timeoutMs) }
  return { ...repository, commit: commit ?? null, branch: branchOf(fullName) }
}

/** The repository's own config may set core.worktree to any place; only a top that holds the folder is taken. */
async function demandInside(folder: string, topLevel: string, prefix: string): Promise<void> {
  const real = await realpath(folder)
  const expected = prefix === '' ? topLevel : `${topLevel}/${prefix.slice(0, -1)}`
  if ((await realpath(expected)) === real) return
  throw new ChangeSetFailure(
    'repo_unavailable',
    'The repository keeps its working tree in another place than this folder.',
  )
}

async function unbornBranch(folder: string, timeoutMs: number): Promise<string | null> {
  const outcome = await runGit({ args: ['symbolic-ref', '-q', 'HEAD'], cwd: folder, timeoutMs })
  return outcome.ok ? branchOf(outcome.stdout.toString('utf8').trim()) : null
}

function branchOf(fullName: string | undefined): string | null {
  return fullName?.startsWith('refs/heads/') ? fullName.slice('refs/heads/'.length) : null
}

/** Commit and branch as they are now, by the git folder alone; nulls when they cannot be told. */
export async function readHead(gitDir: string, commonDir: string, timeoutMs: number): Promise<Head> {
  const quick = readHeadFiles(gitDir, commonDir)
  if (quick !== null) return quick
  const args = ['rev-parse', 'HEAD', '--symbolic-full-name', 'HEAD'] as const
  const outcome = await runGit({ args, cwd: gitDir, gitDir, timeoutMs })
  if (!outcome.ok) return { commit: null, branch: await unbornBranch(gitDir, timeoutMs) }
  const [commit, fullName] = outcome.stdout.toString('utf8').split('\n')
  return { commit: commit ?? null, branch: branchOf(fullName) }
}

export interface Head {
  commit: string | null
  branch: string | null
}

/** The usual case without a process: a plain head, or one that names a branch with a loose or packed ref. Else null. */
export function readHeadFiles(gitDir: string, commonDir: string): Head | null {
  try {
    const head = readRef(join(gitDir, 'HEAD'))
    if (objectId.test(head)) return { commit: head, branch: null }
    const branch = /^ref: refs\/heads\/([\w./-]+)$/.exec(head)?.[1]
    if (branch === undefined || branch.includes('..')) return null
    const commit = readLoose(join(commonDir, 'refs', 'heads', branch)) ?? findPacked(commonDir, branch)
    return commit !== null && objectId.test(commit) ? { commit, branch } : null
  } catch {
    return null
  }
}

/** Null when there is none: an empty folder of that name may be left of another branch. */
function readLoose(path: string): string | null {
  try {
    return readRef(path)
  } catch {
    return null
  }
}

function readRef(path: string): string {
  return (readRegularFile(path, { maxBytes: 4096, followLinks: true }) ?? '').toString().trimEnd()
}

function findPacked(commonDir: string, branch: string): string | null {
  const packed = readRegularFile(join(commonDir, 'packed-refs'), { maxBytes: 4 * 1024 * 1024, followLinks: true })
  const line = packed
    ?.toString('utf8')
    .split('\n')
    .find((one) => one.endsWith(` refs/heads/${branch}`))
  return line?.split(' ')[0] ?? null
}

const objectId = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/
