import { stat } from 'node:fs/promises'
import { execa } from 'execa'

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
  const child = execa('git', [...settings, ...call.args], {
    cwd: call.cwd,
    env: environment(call),
    extendEnv: false,
    ...(call.input === undefined ? { stdin: 'ignore' as const } : { input: call.input }),
    encoding: 'buffer',
    stripFinalNewline: false,
    buffer: { stdout: call.onChunk === undefined, stderr: true },
    maxBuffer: { stdout: call.maxBytes ?? 1024 * 1024, stderr: 1024 * 1024 },
    timeout: call.timeoutMs,
    killSignal: 'SIGKILL',
    reject: false,
  })
  let stopped = false
  if (call.onChunk !== undefined) {
    const onChunk = call.onChunk
    child.stdout?.on('data', (chunk: Buffer) => {
      if (stopped || onChunk(chunk)) return
      stopped = true
      child.kill()
    })
  }
  const result = await child
  const stdout = toBuffer(result.stdout)
  if (!result.failed) return { ok: true, stdout }
  const stderr = toBuffer(result.stderr).toString('utf8')
  const exitCode = result.exitCode ?? null
  if (stopped || result.isMaxBuffer) return { ok: false, reason: 'too_much_output', exitCode, stdout, stderr }
  if (result.timedOut) return { ok: false, reason: 'timeout', exitCode, stdout, stderr }
  if (exitCode === null && result.code !== undefined && result.signal === undefined) {
    const hasFolder = await stat(call.cwd).then(
      (found) => found.isDirectory(),
      () => false,
    )
    return { ok: false, reason: hasFolder ? 'no_git' : 'no_folder', exitCode, stdout, stderr }
  }
  return { ok: false, reason: 'failed', exitCode, stdout, stderr }
}

function toBuffer(bytes: unknown): Buffer {
  return bytes instanceof Uint8Array ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) : Buffer.alloc(0)
}
