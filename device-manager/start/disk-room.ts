import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import { holderOf } from './lock.ts'
import type { Places } from '../setup/places.ts'
import { isDiskFull } from '../process/system-trouble.ts'

/** A daemon writes at most this until its link is up: who has the place, its socket, the logs in front of the databases. */
const startBytes = 256 * 1024
const againMs = 2_000

/**
 * Waits until the state folder has room for a start. A daemon that ended instead would leave its runs alone for as long as
 * the disk is full; what the journal keeps for that case is given up first, unless a daemon is at work that may need it:
 * then its pid is returned at once, and null otherwise.
 */
export async function roomToStart(
  places: Pick<Places, 'stateDir' | 'journal' | 'daemon'>,
  world: World,
): Promise<number | null> {
  if (hasRoom(places.stateDir)) return null
  const holder = holderOf(places.daemon)
  if (holder !== null) return holder
  rmSync(`${places.journal}.reserve`, { force: true })
  if (hasRoom(places.stateDir)) return null
  process.stderr.write(`The disk of ${places.stateDir} is full; waiting for room.\n`)
  while (!hasRoom(places.stateDir)) await world.sleep(againMs)
  return null
}

/** Tried, since neither quotas nor what is kept for root show in the free space. Other trouble shows in the start itself. */
function hasRoom(stateDir: string): boolean {
  const path = join(stateDir, 'start.room')
  try {
    writeFileSync(path, Buffer.alloc(startBytes, 0x55), { mode: 0o600 })
    return true
  } catch (error) {
    return !isDiskFull(error)
  } finally {
    rmSync(path, { force: true })
  }
}
