import { spawn, type ChildProcess } from 'node:child_process'
import { stat } from 'node:fs/promises'

/**
 * The one place of the change-set that starts git. Repositories are not trusted: their config may name programs (hooks,
 * fsmonitor, external diffs, textconv, filters, ssh commands). The settings below switch off all of those that have a
 * switch. Filters and diff drivers have none, so a command that reads the working tree never runs with the repository's
 * own config at all, but with a private git folder (base-store.ts) whose config is written by us.
 */

export interface GitCall {
  args: readonly string[]
  cwd: string
  gitDir?: string
  workTree?: string
  indexFile?: string
  /** Where objects are, when not in the git folder. */
  objectDir?: string
  input?: Uint8Array
  timeoutMs: number
  maxBytes?: number
  /** Takes the output as it comes instead of keeping it; answering false stops git. */
  onChunk?: (chunk: Buffer) => boolean
}

export interface GitFailure {
  ok: false
  reason: 'failed' | 'timeout' | 'too_much_output' | 'no_git' | 'no_folder'
  exitCode: number | null
  stdout: Buffer
  stderr: string
}
export type GitOutcome = { ok: true; stdout: Buffer } | GitFailure

const hardening: readonly string[] = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.splitIndex=false',
  'core.logAllRefUpdates=false',
  'core.quotePath=true',
  'core.pager=cat',
  'core.askPass=true',
  'core.sshCommand=false',
  'credential.helper=',
  'protocol.allow=never',
  'diff.external=',
  'diff.ignoreSubmodules=dirty',
  'diff.suppressBlankEmpty=false',
  'submodule.recurse=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'advice.addEmbeddedRepo=false',
  'color.ui=false',
]

const settings = hardening.flatMap((setting) => ['-c', setting])

/** Only what git needs to be found and to find the person's own ignore rules: no GIT_* of ours reaches it. */
function environment(call: GitCall): Record<string, string> {
  const env: Record<string, string> = {
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'true',
    SSH_ASKPASS: 'true',
    GIT_SSH_COMMAND: 'false',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_NO_LAZY_FETCH: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_PAGER: 'cat',
    GIT_EDITOR: 'false',
  }
  for (const name of ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'TMPDIR', 'USER', 'LOGNAME', 'SUDO_UID']) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  if (call.gitDir !== undefined) env['GIT_DIR'] = call.gitDir
  if (call.workTree !== undefined) {
    env['GIT_WORK_TREE'] = call.workTree
    // The private folder's config holds all that counts of the person's own, which may name filters and drivers too.
    env['GIT_CONFIG_GLOBAL'] = '/dev/null'
  }
  if (call.indexFile !== undefined) env['GIT_INDEX_FILE'] = call.indexFile
  if (call.objectDir !== undefined) env['GIT_OBJECT_DIRECTORY'] = call.objectDir
  return env
}

/** Runs git to its end and says how that went; never throws. */
export async function runGit(call: GitCall): Promise<GitOutcome> {
  const ended = await untilEnded(call)
  const { exitCode, stdout } = ended
  if (exitCode === 0 && ended.stopped === null && ended.error === null) return { ok: true, stdout }
  const stderr = ended.stderr.toString('utf8')
  if (ended.stopped !== null) return { ok: false, reason: ended.stopped, exitCode, stdout, stderr }
  if (ended.error === null) return { ok: false, reason: 'failed', exitCode, stdout, stderr }
  const hasFolder = await stat(call.cwd).then(
    (found) => found.isDirectory(),
    () => false,
  )
  return { ok: false, reason: hasFolder ? 'no_git' : 'no_folder', exitCode, stdout, stderr }
}

interface Ended {
  exitCode: number | null
  /** Why we stopped it; null: it ended by itself. */
  stopped: 'timeout' | 'too_much_output' | null
  /** It could not be started. */
  error: Error | null
  stdout: Buffer
  stderr: Buffer
}

const maxStderrBytes = 1024 * 1024

function untilEnded(call: GitCall): Promise<Ended> {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  let child: ChildProcess
  try {
    child = spawn('git', [...settings, ...call.args], {
      cwd: call.cwd,
      env: environment(call),
      stdio: [call.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
  } catch (error) {
    // A path that cannot be an argument, or no memory for a process.
    const none = Buffer.alloc(0)
    return Promise.resolve({ exitCode: null, stopped: null, error: error as Error, stdout: none, stderr: none })
  }
  const ended: Pick<Ended, 'stopped' | 'error'> = { stopped: null, error: null }
  const stop = (reason: NonNullable<Ended['stopped']>) => {
    ended.stopped ??= reason
    child.kill('SIGKILL')
  }
  const onExit = () => void child.kill('SIGKILL')
  process.once('exit', onExit)
  const timer = setTimeout(() => stop('timeout'), call.timeoutMs)
  const takeStdout = keeper(call.maxBytes ?? 1024 * 1024)
  const take = call.onChunk ?? ((chunk: Buffer) => takeStdout.push(chunk))
  const takeStderr = keeper(maxStderrBytes)
  child.stdout!.on('data', (chunk: Buffer) => {
    if (ended.stopped !== null) return
    if (!take(chunk)) stop('too_much_output')
  })
  child.stderr!.on('data', (chunk: Buffer) => {
    if (!takeStderr.push(chunk)) stop('too_much_output')
  })
  // git may end without having read all of it; its status says whether that was right.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(call.input)
  child.on('error', (error) => (ended.error ??= error))
  child.on('close', (exitCode) => {
    clearTimeout(timer)
    process.off('exit', onExit)
    resolve({
      ...ended,
      exitCode: ended.error === null ? exitCode : null,
      stdout: takeStdout.whole(),
      stderr: takeStderr.whole(),
    })
  })
  return promise
}

/** Keeps what fits; `push` answers false once it does not. */
function keeper(maxBytes: number): { push(chunk: Buffer): boolean; whole(): Buffer } {
  const chunks: Buffer[] = []
  let bytes = 0
  return {
    push(chunk) {
      bytes += chunk.length
      if (bytes <= maxBytes) chunks.push(chunk)
      return bytes <= maxBytes
    },
    whole: () => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)),
  }
}
