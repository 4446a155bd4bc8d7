import { openSync, readSync, writeSync } from 'node:fs'

/** The last step before the program says it. */
export const begunWord = 'begun'

export interface ExitOfProgram {
  exitCode: number | null
  signal: string | null
}

/** Holds what the steps that lead into the wall said, on their standard error. */
export interface LaunchReport {
  path: string
  /** null: the program began. */
  trouble(): string | null
  /** Returns how the program itself exited. */
  trueExit(exit: ExitOfProgram): ExitOfProgram
}

const maxBytes = 4096

/**
 * The file is filled and opened before the launch: the steps write over it, which takes no room on a full disk, and what
 * was opened here tells at the end, whatever has become of the folder, the disk or this process's other files.
 */
export function openReport(path: string): LaunchReport {
  const file = openSync(path, 'w+', 0o600)
  writeSync(file, Buffer.alloc(maxBytes))
  const said = () => {
    const buffer = Buffer.alloc(maxBytes)
    const count = readSync(file, buffer, 0, maxBytes, 0)
    return buffer.toString('utf8', 0, count).replace(/\0.*/s, '')
  }
  return { path, trouble: () => troubleIn(said()), trueExit: (exit) => trueExit(said(), exit) }
}

/** Pure. Exported for its test. */
export function troubleIn(said: string): string | null {
  if (said.startsWith(`${begunWord}\n`) || said.includes(`\n${begunWord}\n`)) return null
  return said.trim() === '' ? 'the programs that lead into it were stopped.' : said.trim().slice(0, 1000)
}

/**
 * `unshare` ends by the signal that ended its child. Its older versions fail to do so for SIGKILL, whose handling nobody
 * may change: it complains and ends with 1. Pure; exported for its test.
 */
export function trueExit(said: string, exit: ExitOfProgram): ExitOfProgram {
  const complained = new RegExp(`(?:^|\n)${begunWord}\nunshare: `).test(said)
  return complained && exit.exitCode === 1 ? { exitCode: null, signal: 'SIGKILL' } : exit
}
