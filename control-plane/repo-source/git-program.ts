import { spawn } from 'node:child_process'
import { delimiter, isAbsolute } from 'node:path'

// Starts git for repositories of strangers, with an environment and settings of our own: it reads no configuration, credential, proxy
// or key of this machine, runs no hook, filter or helper, asks nobody, and speaks https alone. What it may use of the machine is
// limited by the system itself, for git and for the programs that git starts.

export interface GitProgramLimits {
  timeMs: number
  /** Of each file that it writes. */
  fileBytes: number
  /** Of each program; a pack can unfold to any size. */
  memoryBytes: number
  /** Of what it prints. */
  outputBytes: number
}

export interface GitCall {
  args: readonly string[]
  /** A bare folder, which is also the home. */
  gitDir: string
  /** Settings of this call. */
  settings?: readonly string[]
  /** `http` where the operator allows the host. */
  protocol?: 'https' | 'http'
  input?: string
  limits: GitProgramLimits
  signal: AbortSignal
}

export type GitEnd =
  | { ok: true; stdout: Buffer }
  | { ok: false; reason: 'failed' | 'timed_out' | 'too_much' | 'no_git'; stderr: string }

const settings: readonly string[] = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.askPass=false',
  'core.sshCommand=false',
  'core.gitProxy=false',
  'credential.helper=',
  'protocol.allow=never',
  'http.followRedirects=false',
  'http.proxy=',
  'http.sslVerify=true',
  'http.lowSpeedLimit=1000',
  'http.lowSpeedTime=20',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'fetch.writeCommitGraph=false',
  'transfer.bundleURI=false',
  // What comes is kept as the one pack that it is, and never unfolded into files.
  'fetch.unpackLimit=1',
  'pack.threads=1',
  'gc.auto=0',
  'maintenance.auto=false',
]

/** Certificates of the operator's own authority; the rest of the environment is not passed on. */
const passedOn = ['GIT_SSL_CAINFO', 'GIT_SSL_CAPATH', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'TMPDIR', 'SYSTEMROOT']

function environment({ gitDir, protocol = 'https' }: GitCall): Record<string, string> {
  const path = process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'
  return {
    ...Object.fromEntries(passedOn.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))),
    PATH: path.split(delimiter).filter(isAbsolute).join(delimiter),
    LC_ALL: 'C',
    // The library of git reads ~/.netrc.
    HOME: gitDir,
    XDG_CONFIG_HOME: gitDir,
    GIT_DIR: gitDir,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: protocol,
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'false',
    SSH_ASKPASS: 'false',
    GIT_SSH_COMMAND: 'false',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_TRACE2: '0',
  }
}

/** Runs git to its end; never throws. When the signal aborts, it ends as failed. */
export async function runGit(call: GitCall): Promise<GitEnd> {
  const { limits, signal } = call
  if (signal.aborted) return { ok: false, reason: 'failed', stderr: '' }
  const all = [...settings, `protocol.${call.protocol ?? 'https'}.allow=always`, ...(call.settings ?? [])]
  const args = [...all.flatMap((setting) => ['-c', setting]), ...call.args]
  // The group of its own holds the programs that git starts.
  const child = spawn('/bin/sh', ['-c', underLimits(limits), 'git', ...args], {
    cwd: call.gitDir,
    env: environment(call),
    detached: true,
  })
  const { promise, resolve } = Promise.withResolvers<GitEnd>()
  let stopped: 'timed_out' | 'too_much' | null = null
  const kill = () => endGroup(child.pid)
  const stop = (reason: 'timed_out' | 'too_much') => {
    stopped ??= reason
    kill()
  }
  const timer = setTimeout(() => stop('timed_out'), limits.timeMs)
  process.once('exit', kill)
  signal.addEventListener('abort', kill, { once: true })
  const stdout: Buffer[] = []
  let printed = 0
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.length
    if (printed > limits.outputBytes) stop('too_much')
    else stdout.push(chunk)
  })
  child.stderr.on('data', (chunk: Buffer) => void (stderr = (stderr + chunk.toString('utf8')).slice(-keptStderr)))
  // git may end without having read it.
  child.stdin.on('error', () => {})
  child.stdin.end(call.input)
  const settle = (end: GitEnd) => {
    clearTimeout(timer)
    process.off('exit', kill)
    signal.removeEventListener('abort', kill)
    resolve(end)
  }
  child.once('error', (error) => settle({ ok: false, reason: 'no_git', stderr: error.message }))
  child.once('close', (code) => {
    // A program that git left behind would go on.
    kill()
    if (stopped !== null) return settle({ ok: false, reason: stopped, stderr })
    if (code === 0) return settle({ ok: true, stdout: Buffer.concat(stdout) })
    settle({ ok: false, reason: code === 127 ? 'no_git' : 'failed', stderr })
  })
  return promise
}

const keptStderr = 4_096

/** A system that does not know one of the limits goes without it. Files are counted in blocks of 512 bytes. */
const underLimits = ({ fileBytes, memoryBytes, timeMs }: GitProgramLimits): string =>
  [
    'ulimit -c 0',
    `ulimit -f ${Math.ceil(fileBytes / 512)} 2>/dev/null`,
    `ulimit -v ${Math.ceil(memoryBytes / 1024)} 2>/dev/null`,
    `ulimit -t ${Math.ceil(timeMs / 1000)} 2>/dev/null`,
    'exec git "$@"',
  ].join('; ')

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
