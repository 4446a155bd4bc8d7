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

const repositoryFaults =
  /dubious ownership|not a git repository|index file|bad signature|bad index|bad config|unknown repository extension|expected git repo version|[Pp]ermission denied|cannot (mkdir|open|lock)|unable to (create|open|write)|Read-only file system/

/** Returns what a failed git process means for the change-set. The message keeps git's own first lines. */
export function failureOf(failure: GitFailure, doing: string): ChangeSetFailure {
  const said = failure.stderr.trim().split('\n').slice(0, 3).join(' ').slice(0, 500)
  if (failure.reason === 'failed') {
    const code = repositoryFaults.test(failure.stderr) ? 'repo_unavailable' : 'diff_unavailable'
    return new ChangeSetFailure(code, `git failed ${doing}: ${said || `status ${failure.exitCode}`}`)
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
