import { readFileSync, rmSync } from 'node:fs'
import { z } from 'zod'
import { writePrivately } from '../setup/identity-file.ts'
import type { World } from '../../shared/lib/world.ts'

/**
 * Slows down a daemon that dies again and again: launchd, and systemd before 254, start it anew at a constant pace for
 * ever. Each start under a service is noted in `starts.json`; an end in order, or a person who starts the service,
 * removes the file. What is left are starts that ended in a crash.
 */
const windowMs = 3_600_000
const freeStarts = 3
const firstPauseMs = 10_000
const longestPauseMs = 300_000
const keptStarts = 100

const startsFile = z.array(z.number().int()).max(1000)

/** Starts within the last hour whose daemon did not end in order. */
export function recentStarts(path: string, now: number): number[] {
  try {
    const parsed = startsFile.safeParse(JSON.parse(readFileSync(path, 'utf8')))
    return (parsed.data ?? []).filter((at) => at <= now && now - at < windowMs).slice(-keptStarts)
  } catch {
    return []
  }
}

/** Returns how long the next daemon waits after so many crashes. */
export function pauseAfter(crashes: number): number {
  if (crashes < freeStarts) return 0
  return Math.min(longestPauseMs, firstPauseMs * 2 ** (crashes - freeStarts))
}

/** True when it crashes so often that it waits before each start. */
export const isCrashLoop = (crashes: number) => pauseAfter(crashes) > 0

/** Notes a start, and waits first if those before it crashed too often. */
export async function paceStart(path: string, world: World): Promise<void> {
  const now = world.now()
  const earlier = recentStarts(path, now)
  try {
    writePrivately(path, JSON.stringify([...earlier, now]))
  } catch {
    // A full disk must not keep the daemon from starting; it would report it.
  }
  const pause = pauseAfter(earlier.length)
  if (pause === 0) return
  process.stderr.write(`ended unexpectedly ${earlier.length} times in the last hour; waiting ${pause / 1000} s\n`)
  await world.sleep(pause)
}

export function forgetStarts(path: string): void {
  rmSync(path, { force: true })
}
