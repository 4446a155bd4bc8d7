import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { daemonPatience } from '../../shared/device/patience.ts'
import { isSystemUnitName, systemServerUnit, systemUnitFolder } from '../../shared/device/service-file.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { installNames } from '../../shared/lib/stable-paths.ts'
import { programInUnit } from '../../shared/lib/unit-words.ts'
import { askDaemonIfThere } from '../device/daemon-control.ts'
import { readIdentity } from '../device/this-device.ts'
import type { CliEnvironment } from '../machine/environment.ts'
import { readIfThere } from '../machine/files.ts'
import { devicePlaces, serverPlaces } from '../machine/paths.ts'
import { fieldAt } from '../replies/fields.ts'
import { CliError } from '../errors/cli-error.ts'
import type { Prefix } from './prefix.ts'

// What runs from a folder of versions, and how it gets to another one.

/** The command lines of all processes; null when they cannot be listed. */
export function commandLines(): string | null {
  try {
    // A small Linux has no `ps`.
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    if (pids.length > 0) return pids.map((pid) => commandLine(Number(pid)) ?? '').join('\n')
  } catch {
    // Other systems have no /proc.
  }
  return ps('-axww', '-o', 'args=')
}

function commandLine(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return null
  }
}

function ps(...words: readonly string[]): string | null {
  try {
    return execFileSync('ps', words, { encoding: 'utf8', maxBuffer: 256 * 1024 ** 2, stdio: 'pipe' })
  } catch {
    return null
  }
}

const lineOf = (pid: number): string => commandLine(pid) ?? ps('-ww', '-o', 'args=', '-p', String(pid)) ?? ''
const runsFrom = (folder: string, pid: number): boolean => lineOf(pid).includes(`${folder}/`)

/** The daemon of this machine where one runs from the folder of versions; its runs outlive it. */
export async function daemonFrom(
  folder: string,
  env: CliEnvironment,
): Promise<{ pid: number; runs: number; version: string } | null> {
  const places = await devicePlaces(env)
  if (readIdentity(places) === null) return null
  const status = await askDaemonIfThere(places, { op: 'status' })
  if (status === null || !runsFrom(folder, status.pid)) return null
  return { pid: status.pid, runs: status.runs.length, version: status.version }
}

/** A server on this machine that runs from the folder of versions; null: none does. `unit`: the one of systemd that keeps it, which root restarts. */
export async function serverFrom(
  folder: string,
  env: CliEnvironment,
): Promise<{ pid: number; unit: string | null } | null> {
  const isUnits = process.getuid?.() === 0 && unitsFrom(folder).includes(systemServerUnit)
  const ofUnit = isUnits ? await pidOfUnit(systemServerUnit) : 0
  if (ofUnit > 0 && runsFrom(folder, ofUnit)) return { pid: ofUnit, unit: systemServerUnit }
  const own = await recordedServer(env)
  return own !== null && runsFrom(folder, own) ? { pid: own, unit: null } : null
}

/** The process of a server that works with the data folder, of whatever copy of svc; null: none does. */
export async function serverWith(env: CliEnvironment): Promise<number | null> {
  const pid = await recordedServer(env)
  return pid !== null && /\/control-plane\/main\.[jt]s/.test(lineOf(pid)) ? pid : null
}

/** What the last server of the data folder wrote; one that was killed leaves it. */
async function recordedServer(env: CliEnvironment): Promise<number | null> {
  const { server } = await serverPlaces(env)
  const pid = fieldAt(parseJsonText(readIfThere(server) ?? ''), 'pid')
  return typeof pid === 'number' && Number.isInteger(pid) ? pid : null
}

/** The process that the unit keeps; 0: none runs, or there is no systemd. */
async function pidOfUnit(unit: string): Promise<number> {
  const { execa } = await import('execa')
  const shown = await execa('systemctl', ['show', '--property=MainPID', '--value', unit], {
    stdin: 'ignore',
    timeout: 10_000,
    reject: false,
  })
  return shown.failed ? 0 : Number(shown.stdout)
}

/** Services of the machine whose device managers start from the folder of versions: root's to restart. */
export const machineServicesFrom = (folder: string): string[] =>
  process.getuid?.() === 0 ? unitsFrom(folder).filter(isSystemUnitName) : []

/** Those of the units whose process is of another version in the folder than the current one. */
export async function unitsOfOtherVersions(units: readonly string[], folder: string): Promise<string[]> {
  const current = realpathSync(join(folder, installNames.current))
  const others: string[] = []
  for (const unit of units) {
    const pid = await pidOfUnit(unit)
    const program = pid > 0 ? programOf(pid) : null
    if (program?.startsWith(`${dirname(current)}/`) && !program.startsWith(`${current}/`)) others.push(unit)
  }
  return others
}

/** The file that a process executes; null where that is not told. */
function programOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    return null
  }
}

/** All units of the machine that start what lies in the folder of versions. */
export function unitsFrom(folder: string, units = systemUnitFolder): string[] {
  if (!existsSync(units)) return []
  const isOurs = (name: string) => isSystemUnitName(name) || name === systemServerUnit
  const begin = programInUnit(`${folder}/`).slice(0, -1)
  const isFromHere = (name: string) => (readIfThere(join(units, name)) ?? '').includes(begin)
  return readdirSync(units).filter((name) => isOurs(name) && isFromHere(name))
}

/** Takes units away that would start what is gone: with the machine, and each time that they are asked for. */
export async function removeUnits(names: readonly string[]): Promise<void> {
  if (names.length === 0) return
  const { execa } = await import('execa')
  const systemctl = (...words: readonly string[]) =>
    execa('systemctl', words, { stdin: 'ignore', timeout: restartMs, reject: false, cleanup: false })
  // Where no systemd runs, as in the image of a container, a link that enables a unit is all that it leaves.
  await systemctl('disable', '--now', ...names)
  for (const name of names) rmSync(join(systemUnitFolder, name), { force: true })
  await systemctl('daemon-reload')
  await systemctl('reset-failed', ...names)
}

/** Those that run; their runs go on. Returns what could not be restarted, with the reason. */
export async function restartServices(units: readonly string[]): Promise<string | null> {
  if (units.length === 0) return null
  const { execa } = await import('execa')
  const ended = await execa('systemctl', ['try-restart', ...units], {
    stdin: 'ignore',
    timeout: restartMs,
    reject: false,
    cleanup: false,
  })
  return ended.failed ? (ended.stderr || ended.shortMessage || '').trim().slice(0, 1_000) : null
}

/** A restart tries the program, ends the daemon that runs, and waits for the answer and the link of the next one. */
const restartMs = 3 * daemonPatience.startMs + daemonPatience.stopMs + 60_000

/** Has the svc of the current version restart the daemon, so that what starts it is what it shall be. */
export async function restartByCurrent(prefix: Prefix): Promise<void> {
  const { execa } = await import('execa')
  const ended = await execa(prefix.program('svc'), ['device', 'restart', '--output', 'json'], {
    stdin: 'ignore',
    timeout: restartMs,
    reject: false,
    cleanup: false,
  })
  if (ended.exitCode === 0) return
  throw new CliError(
    'daemon_not_restarted',
    `The device manager could not be restarted: ${ended.stderr.trim().slice(0, 1_000)}`,
    {
      exit: 'no_daemon',
      remediation: 'See `svc device logs`; `svc upgrade --rollback` returns to the version before.',
    },
  )
}
