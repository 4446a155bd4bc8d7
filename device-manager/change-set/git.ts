import { stat } from 'node:fs/promises'
import { delimiter, isAbsolute, dirname, join } from 'node:path'
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { spawnPiped } from '../process/program.ts'
import { systemPath } from '../wall/namespaces.ts'

export interface GitProgram {
  file: string
  /** A program of this user, so also a run, could put another one in its place. */
  isReplaceable: boolean
}

/** On macOS `/usr/bin/git` only starts one of these, and asks to install them where there is none. */
const appleFolders = [
  '/Library/Developer/CommandLineTools/usr/bin',
  '/Applications/Xcode.app/Contents/Developer/usr/bin',
]

/**
 * The git that svc runs, outside of any wall. That of the system, for a run may put a program of that name in a folder of
 * its user's that comes first on the PATH. Where the system has none: the first of the PATH that this user cannot replace, or else
 * the first. Null: there is none.
 */
export function findGit(path: string): GitProgram | null {
  const isMac = process.platform === 'darwin'
  const system = isMac ? appleFolders : systemPath.split(':')
  const ofSystem = programsIn(system)[0]
  if (ofSystem !== undefined) return { file: ofSystem, isReplaceable: false }
  const found = programsIn(path.split(delimiter).filter(isAbsolute))
  const others = isMac ? found.filter((file) => file !== '/usr/bin/git') : found
  const firm = others.find((file) => !isReplaceable(file))
  if (firm !== undefined) return { file: firm, isReplaceable: false }
  const first = others[0] ?? found[0]
  return first === undefined ? null : { file: first, isReplaceable: first !== '/usr/bin/git' }
}

function programsIn(folders: readonly string[]): string[] {
  return folders.map((folder) => join(folder, 'git')).filter(isProgram)
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

/** Root may replace everything, which is said of it anyway (isolation/trial.ts). */
function isReplaceable(file: string): boolean {
  const real = realpathSync(file)
  return [file, dirname(file), real, dirname(real)].some(isChangeable)
}

function isChangeable(path: string): boolean {
  const uid = process.getuid?.()
  if (uid === 0) return false
  try {
    if (statSync(path).uid === uid) return true
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

// The one place of the change-set that starts git. Repositories are not trusted: their config may name programs (hooks,
// fsmonitor, external diffs, textconv, filters, ssh commands). The settings below switch off all of those that have a
// switch. Filters, diff drivers and hooks of the config have none, so a command that reads the working tree or writes
// anything never runs with the repository's own config at all, but with a private git folder (base-store.ts) whose config is
// written by us. The types below keep to that.

interface AnyCall {
  cwd: string
  indexFile?: string
  /** The folder of objects, when it is not in the git folder. */
  objectDir?: string
  input?: Uint8Array
  timeoutMs: number
  maxBytes?: number
  /** Takes the output as it comes instead of keeping it; answering false stops git. */
  onChunk?: (chunk: Buffer) => boolean
}

/**
 * A question to a repository, under its own config and the person's. Only commands that read, start nothing on any version
 * of git, and change no ref and no index, for which hooks can be configured that no setting switches off (git 2.54):
 *
 *     rev-parse     paths of the repository, and the ids of names; it reads refs, no index, and an object only where refs are in a table
 *     symbolic-ref  of one name: the branch that HEAD names
 *     config        listing; the pager is only for terminals
 */
interface GitQuestion extends AnyCall {
  args: readonly ['rev-parse' | 'config' | 'symbolic-ref', ...string[]]
  gitDir?: string
  workTree?: undefined
}

/** Anything else, in a private git folder: its config is ours, and that of the person or the repository is not read. */
export interface GitCall extends AnyCall {
  args: readonly string[]
  gitDir: string
  workTree: string
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
function environment(call: GitCall | GitQuestion): Record<string, string> {
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
    // The person's configuration, which a run may write to, can have git append to any file.
    GIT_TRACE2: '0',
    GIT_TRACE2_EVENT: '0',
    GIT_TRACE2_PERF: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_PAGER: 'cat',
    GIT_EDITOR: 'false',
  }
  for (const name of ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'TMPDIR', 'USER', 'LOGNAME', 'SUDO_UID']) {
    const value = process.env[name]
    if (value !== undefined) env[name] = name === 'PATH' ? programPath(value) : value
  }
  if (call.gitDir !== undefined) env['GIT_DIR'] = call.gitDir
  if (call.workTree !== undefined) {
    env['GIT_WORK_TREE'] = call.workTree
    // A private folder is whole by itself: a file in it that names another one is not followed.
    env['GIT_COMMON_DIR'] = call.gitDir
    // The private folder's config holds all that counts of the person's own, which may name filters and drivers too.
    env['GIT_CONFIG_GLOBAL'] = '/dev/null'
  }
  if (call.indexFile !== undefined) env['GIT_INDEX_FILE'] = call.indexFile
  if (call.objectDir !== undefined) env['GIT_OBJECT_DIRECTORY'] = call.objectDir
  return env
}

/**
 * git starts in the repository: a part of the PATH that is not absolute would find programs there. And runs may write where
 * a person's PATH begins.
 */
const programPath = (path: string): string => [systemPath, ...path.split(delimiter).filter(isAbsolute)].join(delimiter)

/** Runs git to its end and says how that went; never throws. */
export async function runGit(call: GitCall | GitQuestion): Promise<GitOutcome> {
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

/** The system's git would be here; starting it fails as it should. */
const noGit = '/usr/bin/git'

const maxStderrBytes = 1024 * 1024

async function untilEnded(call: GitCall | GitQuestion): Promise<Ended> {
  const program = findGit(process.env['PATH'] ?? '')?.file ?? noGit
  const piped = spawnPiped(program, [...settings, ...call.args], { cwd: call.cwd, env: environment(call) })
  if ('failed' in piped) {
    const none = Buffer.alloc(0)
    return { exitCode: null, stopped: null, error: await piped.failed, stdout: none, stderr: none }
  }
  const { child } = piped
  const { promise, resolve } = Promise.withResolvers<Ended>()
  let stopped: Ended['stopped'] = null
  const stop = (reason: NonNullable<Ended['stopped']>) => {
    stopped ??= reason
    child.kill('SIGKILL')
  }
  const onExit = () => void child.kill('SIGKILL')
  process.once('exit', onExit)
  const timer = setTimeout(() => stop('timeout'), call.timeoutMs)
  const takeStdout = keeper(call.maxBytes ?? 1024 * 1024)
  const take = call.onChunk ?? ((chunk: Buffer) => takeStdout.push(chunk))
  const takeStderr = keeper(maxStderrBytes)
  child.stdout.on('data', (chunk: Buffer) => {
    if (stopped !== null) return
    if (!take(chunk)) stop('too_much_output')
  })
  child.stderr.on('data', (chunk: Buffer) => {
    if (!takeStderr.push(chunk)) stop('too_much_output')
  })
  // git may end without having read all of it; its status says whether that was right.
  child.stdin.end(call.input)
  child.on('close', (exitCode) => {
    clearTimeout(timer)
    process.off('exit', onExit)
    resolve({ exitCode, stopped, error: null, stdout: takeStdout.whole(), stderr: takeStderr.whole() })
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
