import { readFileSync, rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { z } from 'zod'
import { writePrivately } from '../setup/identity-file.ts'
import type { Places } from '../setup/places.ts'
import { bootId, isAlive, startTimeOf } from '../process/identity.ts'
import { keepPrivate } from '../setup/private-file.ts'

const record = z.object({ pid: z.number().int().positive(), startTime: z.string(), bootId: z.string() })

/**
 * One daemon per state folder: `daemon.json` names the one that runs, by pid, start time and boot, so that a pid used
 * again by another program is not taken for it. Returns the pid of a living one, or null when the place is ours.
 */
export function takePlace(places: Pick<Places, 'daemon' | 'lock'>, details: Record<string, unknown>): number | null {
  return oneAtATime(places.lock, () => {
    const holder = holderOf(places.daemon)
    if (holder !== null && holder !== process.pid) return holder
    const own = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '', bootId: bootId(), ...details }
    writePrivately(places.daemon, `${JSON.stringify(own)}\n`)
    return null
  })
}

/**
 * Two daemons that start in the same moment must not both find the place free. Node has no file lock of its own, so it is
 * that of an empty SQLite file: whoever dies while holding it lets go of it.
 */
function oneAtATime<Result>(path: string, work: () => Result): Result {
  keepPrivate(path)
  const db = new Database(path, { timeout: 10_000 })
  try {
    return db.transaction(work).exclusive()
  } finally {
    db.close()
  }
}

export function leavePlace(path: string): void {
  if (holderOf(path) === process.pid) rmSync(path, { force: true })
}

/** The pid of the daemon that has the place, when it lives. Only reads, so it works on a full disk. */
export function holderOf(path: string): number | null {
  try {
    const parsed = record.safeParse(JSON.parse(readFileSync(path, 'utf8')))
    if (!parsed.success || parsed.data.bootId !== bootId() || !isAlive(parsed.data)) return null
    return parsed.data.pid
  } catch {
    return null
  }
}
