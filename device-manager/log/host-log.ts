import { writeSync } from 'node:fs'
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

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
