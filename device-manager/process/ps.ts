import { execFileSync, type ExecFileSyncOptionsWithStringEncoding } from 'node:child_process'
import type { ProcessRow } from './proc.ts'

// Reads processes on systems without /proc.

/** Dates from `ps` are local time in the user's language; a moved clock zone must not turn a process into another one. */
const psEnv = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' }
const limits: ExecFileSyncOptionsWithStringEncoding = {
  timeout: 5000,
  maxBuffer: 64 * 1024 * 1024,
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
  env: psEnv,
}

const columns = 'pid=,ppid=,pgid=,sess=,uid=,stat=,lstart=,command='
/** BSD: -A all processes, -E with their environment (of one's own processes, where the system allows it). */
const bsdArgs = ['-A', '-E', '-ww', '-o', columns]
/** procps: the same. Not used by the daemon on Linux, which reads /proc; it keeps this reader under test. */
const procpsArgs = ['axeww', '-o', columns]

export interface PsRow extends ProcessRow {
  /** Arguments and, after them, the environment where `ps` may show it. */
  command: string
}

export function readPs(flavour: 'bsd' | 'procps'): PsRow[] {
  let output: string
  try {
    output = execFileSync('ps', flavour === 'bsd' ? bsdArgs : procpsArgs, limits)
  } catch {
    return []
  }
  return output.split('\n').flatMap((line) => parsePsLine(line) ?? [])
}

/** `lstart` is five words: Sat Nov 21 03:04:00 2026. `sess` is a pointer on BSD and says nothing there. */
export function parsePsLine(line: string): PsRow | null {
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\d+)\s+(\S+)\s+(\w+\s+\w+\s+\d+\s+[\d:]+\s+\d+)\s?(.*)$/.exec(
    line,
  )
  if (match === null) return null
  const [, pid, ppid, pgid, session, uid, state, started, command] = match
  return {
    pid: Number(pid),
    ppid: Number(ppid),
    pgid: Number(pgid),
    session: /^\d+$/.test(session!) && Number(session) > 0 ? Number(session) : null,
    uid: Number(uid),
    state: state![0]!,
    startTime: started!.replace(/\s+/g, ' '),
    command: command!,
  }
}

export interface PsState {
  pid: number
  state: string
  startTime: string
}

/** State and start time of all processes, or of one. */
export function psStates(pid?: number): PsState[] {
  try {
    const which = pid === undefined ? ['-A'] : ['-p', String(pid)]
    const output = execFileSync('ps', [...which, '-o', 'pid=,stat=,lstart='], limits)
    return output.split('\n').flatMap((line) => parsePsState(line) ?? [])
  } catch {
    // `ps -p` answers 1 when there is no such process.
    return []
  }
}

function parsePsState(line: string): PsState | null {
  const match = /^\s*(\d+)\s+(\S+)\s+(\w+\s+\w+\s+\d+\s+[\d:]+\s+\d+)\s*$/.exec(line)
  return match === null
    ? null
    : { pid: Number(match[1]), state: match[2]![0]!, startTime: match[3]!.replace(/\s+/g, ' ') }
}
