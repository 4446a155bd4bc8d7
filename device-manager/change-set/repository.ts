import { realpath } from 'node:fs/promises'
import { ChangeSetFailure, failureOf } from './failure.ts'
import { runGit } from './git.ts'
import { readHead, unbornBranch, type Head } from './head.ts'

/** The repository that holds a folder, and its head. All paths are absolute. */
export interface Repository extends Head {
  topLevel: string
  /** The folder below `topLevel`, with a slash at its end; empty when the folder is the top. */
  prefix: string
  gitDir: string
  /** Differs from `gitDir` in a linked worktree. */
  commonDir: string
  objectFormat: 'sha1' | 'sha256'
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
  const [, , objectFormat, gitDir, commonDir, topLevel, prefix] = lines
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
  // git follows links to files that are none of the repository, so what it told of the head does not count.
  const head = await readHead(repository, timeoutMs)
  if (head.commit !== null) return { ...repository, ...head }
  throw new ChangeSetFailure('repo_unavailable', 'The head of the repository is no plain ref of its own.')
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
