import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { World } from '../../shared/lib/world.ts'
import { movableAbove } from '../wall/changeable.ts'
import { type BaseRecord, momentIn } from './base-store.ts'
import { ChangeSetFailure } from './failure.ts'
import type { View } from './listing.ts'

// The change-set is made outside of the wall around the run, and names files by their paths. A process of a run that exchanges
// a folder or a file for a link to one of svc's, just after git looked at it, and puts it back before anybody notices,
// would find svc's file in its diff. Whoever exchanges a name changes the folder that holds it, and a folder that is
// renamed is changed itself; the time of that is set by the kernel alone. So what was read counts only where no folder
// on the way to it has changed since before the reading began.

/**
 * The time now in nanoseconds by the clock of the working tree's file system, which is mostly the repository's, too. Where that cannot
 * be told, the earliest of those that can: the git folder is where a run says, and a clock there may be ahead.
 */
export function momentBefore(
  { commonDir }: Pick<BaseRecord, 'commonDir'>,
  { topLevel, storeDir }: Pick<View, 'topLevel' | 'storeDir'>,
): bigint {
  const { dev } = lstatSync(topLevel, { bigint: true })
  const told: bigint[] = []
  for (const folder of [commonDir, storeDir]) {
    const moment = momentIn(folder)
    if (moment?.dev === dev) return moment.ns
    if (moment !== null) told.push(moment.ns)
  }
  if (told.length > 0) return told.reduce((first, ns) => (ns < first ? ns : first))
  throw new ChangeSetFailure('diff_unavailable', 'No file can be made that tells the time of the file system.', true)
}

/** Folders looked at before others get a turn. */
const batchSize = 128

/**
 * Returns those of the paths, which are relative to the top level, whose content may have been read from somewhere else
 * since that moment.
 */
export async function exchangedSince(topLevel: string, paths: readonly string[], since: bigint): Promise<Set<string>> {
  const exchanged = new Set<string>()
  if (paths.length === 0) return exchanged
  const isTopStill = [...renamableAbove(topLevel), topLevel].every((folder) => isStill(folder, since))
  const top = Buffer.from(topLevel).toString('latin1')
  const settled = new Map([['', isTopStill]])
  const isSettled = (folder: string): boolean => {
    const known = settled.get(folder)
    if (known !== undefined) return known
    const isStillSo = isSettled(parentOf(folder)) && isStill(Buffer.from(`${top}/${folder}`, 'latin1'), since)
    settled.set(folder, isStillSo)
    return isStillSo
  }
  let looks = 0
  for (const path of paths) {
    const before = settled.size
    if (!isSettled(parentOf(path))) exchanged.add(path)
    looks += settled.size - before
    if (looks < batchSize) continue
    looks = 0
    await turn()
  }
  return exchanged
}

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

function isStill(folder: string | Buffer, since: bigint): boolean {
  try {
    const found = lstatSync(folder, { bigint: true })
    return found.isDirectory() && found.ctimeNs < since
  } catch {
    return false
  }
}

/** Folders like /tmp are changed by everybody all the time, and only root renames them, from whom nothing is safe. */
const renamableAbove = (topLevel: string): string[] =>
  movableAbove([topLevel]).filter((folder) => ((lstatSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & 0o002) === 0)

/** Says whether the path, which had no link in it when git told it, has one now. */
export function hasLink(path: string): boolean {
  for (let at = path; at !== dirname(at); at = dirname(at)) {
    if (lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink() === true) return true
  }
  return false
}

/** A folder that was changed in the same moment counts as exchanged; so does every one of this second where no shorter time is kept. */
export const untilLater = (since: bigint, world: World): Promise<void> =>
  world.sleep(since % 1_000_000_000n === 0n ? 1_100 : 10)
