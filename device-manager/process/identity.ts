import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { isGone, readStat } from './proc.ts'
import { psStates } from './ps.ts'

/**
 * A process by its pid and the time the system says it started. A pid alone is given to another process sooner or later;
 * nothing in the daemon signals one by pid alone. Across a reboot compare `bootId` too.
 */
export interface ProcessIdentity {
  pid: number
  /** Linux: field 22 of /proc/PID/stat, ticks since the boot. Elsewhere: `ps -o lstart=` in UTC, to the second. */
  startTime: string
}

const hasProc = process.platform === 'linux'

/** Another value after each boot of the machine. */
export function bootId(): string {
  try {
    if (hasProc) return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // A container may hide it.
    return 'unknown'
  }
  // kern.boottime moves when the clock is set, so it is the second choice.
  for (const name of ['kern.bootsessionuuid', 'kern.boottime']) {
    try {
      const value = execFileSync('/usr/sbin/sysctl', ['-n', name], {
        encoding: 'utf8',
        timeout: 5000,
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      if (value.trim() !== '') return value.trim()
    } catch {
      continue
    }
  }
  return 'unknown'
}

/** null: no such process. A zombie counts as gone. */
export function startTimeOf(pid: number): string | null {
  const found = stateOf(pid)
  return found === null || isGone(found.state) ? null : found.startTime
}

/** The same process, and not a zombie. */
export function isAlive(identity: ProcessIdentity): boolean {
  return startTimeOf(identity.pid) === identity.startTime
}

/**
 * Returns the ones of `identities` that are alive. With /proc each is looked at when it is asked for, so that a caller who signals it
 * then signals no other; without, one look serves all.
 */
export function* aliveOf<T extends ProcessIdentity>(identities: Iterable<T>): Generator<T> {
  if (hasProc) {
    for (const identity of identities) if (isAlive(identity)) yield identity
    return
  }
  const live = new Map(psStates().flatMap((row) => (isGone(row.state) ? [] : [[row.pid, row.startTime]])))
  for (const identity of identities) if (live.get(identity.pid) === identity.startTime) yield identity
}

export function identityOf(pid: number): ProcessIdentity | null {
  const startTime = startTimeOf(pid)
  return startTime === null ? null : { pid, startTime }
}

function stateOf(pid: number): { state: string; startTime: string } | null {
  if (!Number.isInteger(pid) || pid <= 0) return null
  return hasProc ? readStat(pid) : (psStates(pid)[0] ?? null)
}
