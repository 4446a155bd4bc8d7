import path from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import { passableEnv } from './harness-env.ts'
import { endTree } from './kill.ts'
import { markName } from './orphans.ts'
import { type DetachedProgram, type DetachedLaunch, spawnDetached } from './spawn-detached.ts'

export interface LoginEnvOptions {
  shell: string
  homeDir: string
  world: World
  /** The daemon's own environment: what the shell starts from, and the fallback. */
  base: Readonly<Record<string, string | undefined>>
  timeoutMs?: number
  /** Leads the shell behind the wall: its start-up files may be what a run has written. */
  enter?: (launch: DetachedLaunch) => DetachedLaunch
}

export interface LoginEnv {
  /** Cut to the allow-list of harness-env.ts. */
  env: Record<string, string>
  source: 'login_shell' | 'daemon'
  /** Why the shell's was not to be had. */
  message: string | null
}

const defaultTimeoutMs = 5000
const maxOutputBytes = 1024 * 1024
/** The time that a shell which has told its environment may take to exit. */
const leaveMs = 100

/**
 * The environment as it is in a new terminal of the person: what nvm, homebrew and the like set up stands in files that only
 * a login shell or an interactive one reads. Those files may print, wait for a key or hang; so the shell is in a session
 * of its own without a terminal, has a time limit, and is ended with all it started.
 */
export async function probeLoginEnv(options: LoginEnvOptions): Promise<LoginEnv> {
  const { env: base } = envOfDaemon(options, null)
  const probe = await runShell(options, base).catch((error: unknown) => ({
    message: `The login shell could not be asked: ${error instanceof Error ? error.message : String(error)}`,
  }))
  if ('message' in probe) return envOfDaemon(options, probe.message)
  return {
    env: passableEnv({ HOME: options.homeDir, ...probe.env, SHELL: options.shell }),
    source: 'login_shell',
    message: null,
  }
}

/** Returns what is known without the shell. */
export function envOfDaemon(
  { base, homeDir, shell }: Pick<LoginEnvOptions, 'base' | 'homeDir' | 'shell'>,
  message: string | null,
): LoginEnv {
  return { env: passableEnv({ ...base, HOME: homeDir, SHELL: shell }), source: 'daemon', message }
}

type ShellProbe = { env: Record<string, string> } | { message: string }

async function runShell(options: LoginEnvOptions, base: Record<string, string>): Promise<ShellProbe> {
  const { shell, homeDir, world } = options
  const probeId = world.id('probe_')
  let program: DetachedProgram
  try {
    const env = { ...base, ...quietShell, [markName]: probeId }
    const launch = { file: shell, args: shellArgs(shell, probeId), cwd: homeDir, env }
    program = await spawnDetached(options.enter?.(launch) ?? launch)
  } catch (error) {
    return {
      message: `The login shell could not be started: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
  program.stdin.end()
  program.stderr.resume()
  const output = await readUntil(program, {
    mark: endMark(probeId),
    timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
    world,
  })
  // It leaves by itself a moment after it told; to end it would take twice as many searches.
  if (output !== null) await Promise.race([program.exited, world.sleep(leaveMs)])
  await endTree({
    runId: probeId,
    leader: program.identity,
    pgid: program.pid,
    cgroup: null,
    exclude: [],
    world,
    skipTo: 'kill',
    leaderExitSeen: true,
  })
  program.stdout.destroy()
  program.stderr.destroy()
  if (output === null) return { message: `The login shell ${shell} did not answer in time.` }
  const env = parseEnv(output, probeId)
  return env === null ? { message: `The login shell ${shell} ended without telling its environment.` } : { env }
}

/** Keeps well-known shell set-ups from asking, updating or starting tmux. */
const quietShell = {
  TERM: 'dumb',
  DISABLE_AUTO_UPDATE: 'true',
  DISABLE_UPDATE_PROMPT: 'true',
  ZSH_TMUX_AUTOSTART: 'false',
  ZSH_TMUX_AUTOSTARTED: 'true',
}

/** The marks tell the environment from what the start-up files print. `-l` of csh works alone only. */
function shellArgs(shell: string, probeId: string): string[] {
  const flags = /^t?csh$/.test(path.basename(shell)) ? '-ic' : '-lic'
  return [flags, `printf '%s\\0' ${startMark(probeId)}; /usr/bin/env -0; printf '%s\\0' ${endMark(probeId)}; exit 0`]
}
const startMark = (probeId: string) => `begin_${probeId}`
const endMark = (probeId: string) => `end_${probeId}`

/**
 * Standard output until the mark or its end; null at the time limit. Not until the shell has ended: something that the start-up
 * files left in the background may hold the pipe.
 */
async function readUntil(
  program: DetachedProgram,
  limits: { mark: string; timeoutMs: number; world: World },
): Promise<string | null> {
  const chunks: Buffer[] = []
  let size = 0
  let tail = ''
  return new Promise((resolve) => {
    const finish = (result: 'timeout' | 'read') => {
      cancel()
      program.stdout.removeAllListeners('data')
      program.stdout.resume()
      resolve(result === 'timeout' ? null : Buffer.concat(chunks).toString('utf8'))
    }
    const cancel = limits.world.after(limits.timeoutMs, () => finish('timeout'))
    program.stdout.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      const text = tail + chunk.toString('latin1')
      if (text.includes(`${limits.mark}\0`) || size > maxOutputBytes) finish('read')
      tail = text.slice(-limits.mark.length)
    })
    program.stdout.once('end', () => finish('read'))
  })
}

/** `NAME=value`, each ended by NUL, between the marks. Exported for its test. */
export function parseEnv(output: string, probeId: string): Record<string, string> | null {
  const start = output.lastIndexOf(`${startMark(probeId)}\0`)
  const end = output.indexOf(`${endMark(probeId)}\0`, start)
  if (start < 0 || end < 0) return null
  const entries = output.slice(start + startMark(probeId).length + 1, end).split('\0')
  const env: Record<string, string> = {}
  for (const entry of entries) {
    const equals = entry.indexOf('=')
    if (equals > 0) env[entry.slice(0, equals)] = entry.slice(equals + 1)
  }
  return env['PATH'] === undefined ? null : env
}
