import { readFileSync, rmSync } from 'node:fs'
import { z } from 'zod'
import { writePrivately } from './identity-file.ts'
import { bootId, isAlive, startTimeOf } from './process/identity.ts'

const record = z.object({ pid: z.number().int().positive(), startTime: z.string(), bootId: z.string() })

/**
 * One daemon per state folder: `daemon.json` names the one that runs, by pid, start time and boot, so that a pid used
 * again by another program is not taken for it. Returns the pid of a living one, or null when the place is ours.
 */
export function takePlace(path: string, details: Record<string, unknown>): number | null {
  const holder = readHolder(path)
  if (holder !== null && holder !== process.pid) return holder
  const own = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '', bootId: bootId(), ...details }
  writePrivately(path, `${JSON.stringify(own)}\n`)
  // Two that start in the same moment both write; the file names one of them, and the other sees it.
  const written = readHolder(path)
  return written === process.pid ? null : written
}

export function leavePlace(path: string): void {
  if (readHolder(path) === process.pid) rmSync(path, { force: true })
}

function readHolder(path: string): number | null {
  try {
    const parsed = record.safeParse(JSON.parse(readFileSync(path, 'utf8')))
    if (!parsed.success || parsed.data.bootId !== bootId() || !isAlive(parsed.data)) return null
    return parsed.data.pid
  } catch {
    return null
  }
}
