import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'

/** One process as the system lists it. */
export interface ProcessRow {
  pid: number
  ppid: number
  pgid: number
  /** null where the system does not tell. */
  session: number | null
  /** null where it was not asked for. */
  uid: number | null
  /** First letter of the state: R S D T Z ... */
  state: string
  startTime: string
}

/** A zombie runs nothing and cannot be signalled away: it is gone as far as a run is concerned. */
export function isGone(state: string): boolean {
  return state === 'Z' || state === 'X' || state === 'x'
}

export function isStopped(state: string): boolean {
  return state === 'T' || state === 't'
}

// The functions below read `/proc` of Linux. Each returns null for a process that ended meanwhile.

/** `PF_KTHREAD` of the kernel: threads of its own, never a run's. */
const kernelThread = 0x00200000

/** Pids, newest first: in a chain of processes that each start the next one, the live one is at the front. */
export function listPids(): number[] {
  const pids: number[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (Number.isInteger(pid) && pid > 1) pids.push(pid)
  }
  return pids.sort((a, b) => b - a)
}

export function readStat(pid: number): ProcessRow | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch (error) {
    return nullOfProcess(error)
  }
  return parseStat(text)
}

/**
 * Returns null where nothing can be read because the process is gone, or not ours. A system without a file left says nothing of
 * the process: to take it for gone would leave it to itself, so that is an error.
 */
function nullOfProcess(error: unknown): null {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM') throw error
  return null
}

/** Makes a reader for a search that reads many: one buffer serves all of its reads. */
export function statReader(): (pid: number) => ProcessRow | null {
  // Two numbers of 20 digits for each of 50 fields, and a name of 64 bytes, are less.
  const buffer = Buffer.alloc(4096)
  return (pid) =>
    readOpened(`/proc/${pid}/stat`, (file) =>
      parseStat(buffer.toString('latin1', 0, readSync(file, buffer, 0, buffer.length, null))),
    )
}

/** Returns what is read of the file; null when it cannot be opened or read. */
function readOpened<T>(path: string, read: (file: number) => T): T | null {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    return nullOfProcess(error)
  }
  try {
    return read(file)
  } catch (error) {
    return nullOfProcess(error)
  } finally {
    closeSync(file)
  }
}

/** The name (field 2) is in parentheses and may hold spaces and parentheses itself. Kernel threads answer null. */
export function parseStat(text: string): ProcessRow | null {
  const open = text.indexOf('(')
  const close = text.lastIndexOf(')')
  if (open < 0 || close < 0) return null
  // rest[0] is field 3.
  const rest = text.slice(close + 2).split(' ')
  const startTime = rest[19]
  if (startTime === undefined || (Number(rest[6]) & kernelThread) !== 0) return null
  return {
    pid: Number(text.slice(0, open)),
    ppid: Number(rest[1]),
    pgid: Number(rest[2]),
    session: Number(rest[3]),
    uid: null,
    state: rest[0]!,
    startTime,
  }
}

interface EnvironReader {
  /** Says whether the environment that `pid` was started with holds `entry` (`NAME=value`). */
  holds(pid: number, entry: string): boolean
}

/**
 * Other users' processes are ignored without a read, unless this is root, whose runs may have changed user. One
 * buffer serves all reads of one search.
 */
export function environReader(): EnvironReader {
  const ownUid = process.getuid?.() ?? 0
  const buffer = Buffer.alloc(64 * 1024)
  return {
    holds(pid, entry) {
      if (ownUid !== 0 && statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid !== ownUid) return false
      return readOpened(`/proc/${pid}/environ`, (file) => holdsEntry(file, entry, buffer)) ?? false
    },
  }
}

/** Entries end with NUL; the first has none before it. What may span two reads is carried over to the next. */
function holdsEntry(file: number, entry: string, buffer: Buffer): boolean {
  const first = Buffer.from(`${entry}\0`)
  const later = Buffer.from(`\0${entry}\0`)
  let carried = 0
  let isStart = true
  for (;;) {
    const count = readSync(file, buffer, carried, buffer.length - carried, null)
    const filled = carried + count
    const window = buffer.subarray(0, filled)
    if (isStart && filled >= first.length && window.subarray(0, first.length).equals(first)) return true
    if (window.includes(later)) return true
    // A program that wrote over its environment may leave the last entry without its NUL.
    if (count === 0)
      return isStart
        ? window.equals(first.subarray(0, -1))
        : window.subarray(-later.length + 1).equals(later.subarray(0, -1))
    isStart = isStart && filled < first.length
    carried = Math.min(filled, later.length - 1)
    buffer.copyWithin(0, filled - carried, filled)
  }
}
