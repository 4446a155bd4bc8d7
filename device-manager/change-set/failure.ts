import type { changeSetErrorCodes } from '../../shared/device/change-set.ts'
import type { GitFailure } from './git.ts'

export type ChangeSetErrorCode = (typeof changeSetErrorCodes)[number]

/** Thrown inside this folder only; what is exported answers it as a value. */
export class ChangeSetFailure extends Error {
  readonly code: ChangeSetErrorCode
  /** git could not be started or took too long: that says nothing of the repository, and may be over soon. */
  readonly isPassing: boolean
  constructor(code: ChangeSetErrorCode, message: string, isPassing = false) {
    super(message)
    this.code = code
    this.isPassing = isPassing
  }
}

/** git's words for what is wrong with a repository, and ours. The first that fits is told. */
const repositoryFaults: readonly (readonly [RegExp, string])[] = [
  [/dubious ownership/, 'of its ownership: it belongs to another user.'],
  [/not a git repository/, 'there is no repository.'],
  [/index file|bad signature|bad index/, 'its index is corrupt.'],
  [/bad config|bad \w+ config value/, 'its config is bad.'],
  [/unknown repository extension|expected git repo version/, 'this git is too old for it.'],
  [/[Pp]ermission denied/, 'permission is denied.'],
  [/Read-only file system/, 'the file system is read-only.'],
  [/cannot (mkdir|open|lock)|unable to (create|open|write)/, 'a file of it cannot be opened or written.'],
]
const otherFaults: readonly (readonly [RegExp, string])[] = [
  [/No space left/, 'the disk is full.'],
  [/[Oo]ut of memory|cannot allocate/, 'there is no memory left.'],
  [/bad object|unable to read|missing|corrupt|invalid object|not a valid object/, 'objects are missing or corrupt.'],
  [/packed-refs/, 'its packed refs cannot be read.'],
]

/**
 * Returns what a failed git process means for the change-set. In our own words: git quotes lines of the files that it reads, and a
 * link in a git folder makes it read any file of the device.
 */
export function failureOf(failure: GitFailure, doing: string): ChangeSetFailure {
  if (failure.reason === 'failed') {
    const fits = ([pattern]: readonly [RegExp, string]) => pattern.test(failure.stderr)
    const fault = repositoryFaults.find(fits)
    const why = (fault ?? otherFaults.find(fits))?.[1] ?? `it ended with status ${failure.exitCode}.`
    return new ChangeSetFailure(fault ? 'repo_unavailable' : 'diff_unavailable', `git failed ${doing}: ${why}`)
  }
  const { code, message } = meanings[failure.reason]
  const isPassing = failure.reason === 'no_git' || failure.reason === 'timeout'
  return new ChangeSetFailure(code, `${message.slice(0, -1)}, ${doing}.`, isPassing)
}

const meanings = {
  no_git: { code: 'repo_unavailable', message: 'The git program is not installed or cannot be run.' },
  no_folder: { code: 'repo_unavailable', message: 'The folder does not exist or cannot be entered.' },
  timeout: { code: 'diff_unavailable', message: 'git took too long.' },
  too_much_output: { code: 'too_large', message: 'git listed more than can be kept.' },
} as const

export function asRefusal(error: unknown): { ok: false; code: ChangeSetErrorCode; message: string } {
  if (error instanceof ChangeSetFailure) return { ok: false, code: error.code, message: error.message }
  const code = (error as NodeJS.ErrnoException | null)?.code
  const missing = code === 'ENOENT' || code === 'ENOTDIR'
  if (missing) return { ok: false, code: 'repo_unavailable', message: 'The folder or its repository is not there.' }
  const message = error instanceof Error ? error.message : String(error)
  const refused = code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
  return { ok: false, code: refused ? 'repo_unavailable' : 'diff_unavailable', message: message.slice(0, 500) }
}
