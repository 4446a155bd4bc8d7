import { openSync, renameSync, statSync, writeSync } from 'node:fs'
import { maskOwnTokens } from '../../shared/lib/own-tokens.ts'
import type { World } from '../../shared/lib/world.ts'

export type HostLog = (event: string, fields?: Record<string, unknown>) => void

/** One line of JSON on standard error, for the host's own trouble; never output of a harness. A full disk is no reason to fail. */
export function stderrLog(world: World, hostId: string): HostLog {
  return (event, fields = {}) => {
    const line = maskOwnTokens(JSON.stringify({ at: world.now(), level: 'warn', event, hostId, ...fields }))
    try {
      writeSync(2, `${line}\n`)
    } catch {
      // The disk of the log is full or gone; the run matters more.
    }
  }
}

/** A log of run hosts that is larger is set aside when the next one starts; the one before it goes. */
const mostBytes = 10 * 1024 * 1024

/** Opens the log that all run hosts write to. Those that are at work go on with the file that was set aside. */
export function openHostLog(path: string): number {
  try {
    if (statSync(path).size > mostBytes) renameSync(path, `${path}.1`)
  } catch {
    // There is none yet, or it cannot be set aside: a run matters more.
  }
  return openSync(path, 'a', 0o600)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
