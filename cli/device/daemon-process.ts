import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ControlStatus } from '../../shared/device/control.ts'
import { daemonPatience } from '../../shared/device/patience.ts'
import { programUrl } from '../../shared/lib/program-file.ts'
import type { World } from '../../shared/lib/world.ts'
import type { CommandContext } from '../context/context.ts'
import { askDaemonIfThere } from './daemon-control.ts'
import { CliError } from '../errors/cli-error.ts'
import { readIfThere } from '../machine/files.ts'
import { lastLines } from './log-lines.ts'
import type { DevicePlaces } from '../machine/paths.ts'

// Starts the daemon of this machine in the background or in this terminal, and waits for it.

const { startMs, linkMs, stopMs } = daemonPatience
const pollMs = 50
/** A person who waits longer is told what for. */
const tellMs = 10_000

/** What is needed to wait for a device manager. */
type Waiting = Pick<CommandContext, 'world' | 'out'>

/** Variables of a run or of the caller's set-up that must not reach the daemon: its harnesses would get them. */
const notForTheDaemon = ['SVC_TOKEN', 'SVC_API_URL', 'SVC_RUN_ID', 'SVC_AGENT_ID', 'NODE_COMPILE_CACHE']

const daemonProgram = (): string => fileURLToPath(programUrl('device-manager'))

export function daemonEnvironment(places: DevicePlaces): NodeJS.ProcessEnv {
  const env = { ...process.env, SVC_STATE_DIR: places.dir }
  for (const name of notForTheDaemon) Reflect.deleteProperty(env, name)
  return env
}

/** For Node: the program `svc-device` with these words. */
export const daemonArguments = (...words: readonly string[]): string[] => [
  '--disable-warning=ExperimentalWarning',
  daemonProgram(),
  ...words,
]

const orderlyEnds: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Runs the daemon in this terminal until it ends; returns its exit status. */
export function runDaemonHere(places: DevicePlaces): Promise<number> {
  const child = spawn(process.execPath, daemonArguments('run'), { stdio: 'inherit', env: daemonEnvironment(places) })
  // Ctrl-C reaches the daemon, too, since it is in the same process group; svc waits for its orderly end.
  const pass = (signal: NodeJS.Signals) => child.kill(signal)
  const ignore = () => undefined
  process.on('SIGINT', ignore)
  process.on('SIGTERM', pass)
  // A terminal that closes tells both, a person who sends it to svc does not.
  process.on('SIGHUP', pass)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      process.off('SIGINT', ignore)
      process.off('SIGTERM', pass)
      process.off('SIGHUP', pass)
      resolve(code ?? (signal !== null && orderlyEnds.includes(signal) ? 0 : 1))
    })
  })
}

/** Fails when the program that would be started cannot become a daemon. Asked before one that runs is stopped for it. */
export async function demandProgram(places: DevicePlaces): Promise<void> {
  // Imported here, because most commands start no program.
  const { execa } = await import('execa')
  const ended = await execa(process.execPath, daemonArguments('check'), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: daemonEnvironment(places),
    extendEnv: false,
    timeout: startMs,
    reject: false,
  })
  if (!ended.failed) return
  throw new CliError(
    'daemon_program_broken',
    `This version of the device manager does not start, so the one that runs was not stopped.${shown(told(ended.stderr || (ended.shortMessage ?? '')))}`,
    { exit: 'no_daemon', remediation: 'Install or update svc anew, then type `svc device restart`.' },
  )
}

/**
 * Resolves when the daemon has its link. Fails with the last lines of its output when it ends, or when it has no link
 * in time.
 */
export async function startDaemon(places: DevicePlaces, context: Waiting): Promise<ControlStatus> {
  mkdirSync(places.logs, { recursive: true, mode: 0o700 })
  const output = openSync(places.daemonOut, 'a', 0o600)
  const child = spawn(process.execPath, daemonArguments('run'), {
    detached: true,
    stdio: ['ignore', output, output],
    env: daemonEnvironment(places),
    cwd: places.dir,
  })
  closeSync(output)
  const ended: { how: string | null } = { how: null }
  child.on('error', (error) => (ended.how = error.message))
  child.on('exit', (code, signal) => (ended.how = signal ?? `status ${code}`))
  try {
    return await waitForLink(places, context, { exit: () => ended.how })
  } finally {
    child.unref()
  }
}

/**
 * Resolves when the daemon has its link. Fails when `exit` returns how the daemon ended, when no daemon answers in time,
 * or when the one that answers has no link in time (`daemonPatience`).
 */
export async function waitForLink(
  places: DevicePlaces,
  { world, out }: Waiting,
  { exit }: { exit: () => string | null },
): Promise<ControlStatus> {
  const began = world.monotonic()
  let isTold = false
  let answeredAt: number | null = null
  let last: ControlStatus | null = null
  const isPatient = () => {
    const now = world.monotonic()
    if (answeredAt === null) return now - began < startMs
    // An attempt that goes on may need this long on a busy machine; one that failed has said what is wrong.
    return now - answeredAt < (last?.link.lastError === null ? startMs : linkMs)
  }
  while (isPatient() && exit() === null) {
    const status = existsSync(places.daemon) ? await askDaemonIfThere(places, { op: 'status' }) : null
    if (status !== null) {
      last = status
      answeredAt ??= world.monotonic()
    }
    if (status?.link.state === 'connected') return status
    if (!isTold && world.monotonic() - began >= tellMs) {
      isTold = true
      const what = last === null ? 'has not answered' : 'has no link'
      out.message(`svc: the device manager ${what} yet; waiting. \`svc device logs\` has what it says.`)
    }
    await world.sleep(pollMs)
  }
  throw startFailure(places, { exit: exit(), last })
}

function startFailure(places: DevicePlaces, seen: { exit: string | null; last: ControlStatus | null }): CliError {
  const { exit, last } = seen
  const tail = told(readIfThere(places.daemonOut) ?? '')
  if (exit !== null) {
    return new CliError('daemon_ended', `The device manager ended at once (${exit}).${shown(tail)}`, {
      exit: 'no_daemon',
      remediation: 'See `svc device logs`.',
    })
  }
  if (last === null) {
    return new CliError(
      'daemon_silent',
      `The device manager did not answer within ${startMs / 1000} seconds.${shown(tail)}`,
      {
        exit: 'no_daemon',
        remediation: 'See `svc device logs`.',
      },
    )
  }
  return new CliError(
    'daemon_not_linked',
    `The device manager runs (pid ${last.pid}), but has no link to ${last.server} yet: ${last.link.lastError ?? last.link.state}.`,
    { exit: 'unreachable', remediation: 'It goes on trying. See `svc device status`.' },
  )
}

/** The last lines without those of a stack, which would leave no room for the error above them. */
const told = (text: string): string[] => lastLines(text.replaceAll(/^\s+at .*\n?/gm, ''), 10)

const shown = (lines: readonly string[]) => (lines.length === 0 ? '' : ` It said:\n${lines.join('\n')}`)

/** Resolves with true when no daemon answers any more and its record is gone, or with false when it does not end in time. */
export async function waitUntilStopped(places: DevicePlaces, world: World): Promise<boolean> {
  const giveUpAt = world.monotonic() + stopMs
  while (world.monotonic() < giveUpAt) {
    const isThere = existsSync(places.daemon) || (await askDaemonIfThere(places, { op: 'status' })) !== null
    if (!isThere) return true
    await world.sleep(pollMs)
  }
  return false
}
