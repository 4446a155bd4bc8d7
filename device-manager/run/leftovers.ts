import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { BaseSnapshot } from '../change-set/snapshot.ts'
import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'
import { aheadEnding, hostPaths, ownFolderName, removeOwnFolders, runPaths } from '../run-host/wire/record.ts'

const baseFile = z.object({
  base: z.union([
    z.object({ ok: z.literal(true), base: z.custom<BaseSnapshot>() }),
    z.object({ ok: z.literal(false) }),
  ]),
})

/** Reads the base that a run's host recorded, or null when there was none or it cannot be read. */
export function readBase(places: Places, runId: RunId): BaseSnapshot | null {
  try {
    const parsed = baseFile.safeParse(JSON.parse(readFileSync(runPaths(places.stateDir, runId).base, 'utf8')))
    return parsed.success && parsed.data.base.ok ? parsed.data.base.base : null
  } catch {
    return null
  }
}

/** Removes a run's folders here and what its base keeps in the person's repository. `hostId`: of its host; null: it has none. */
export async function removeRunFolder(places: Places, runId: RunId, hostId: string | null): Promise<void> {
  const base = readBase(places, runId)
  // The module is loaded when it is needed, which is seldom: with the library it uses it would be a tenth of the idle daemon.
  const { root, store } = runPaths(places.stateDir, runId)
  const release = (base !== null || existsSync(store)) && releaseOf(base, { runId, store })
  if (release) await release.catch(() => undefined)
  rmSync(root, { recursive: true, force: true })
  if (hostId !== null) removeOwnFolders(hostPaths(places.stateDir, hostId).own)
}

/** Lets go what the base keeps in the repository. A host that died while it took the base has noted it in the private folder only. */
async function releaseOf(base: BaseSnapshot | null, left: { runId: RunId; store: string }): Promise<void> {
  const { releaseBase } = await import('../change-set/release.ts')
  if (base !== null) return releaseBase(base)
  const { readBaseRecord, refNameOf } = await import('../change-set/base-store.ts')
  const { commonDir } = await readBaseRecord(left.store)
  await releaseBase({ storeDir: left.store, refName: refNameOf(left.runId), commonDir })
}

export interface Leftovers {
  /** Ids of runs that have a folder. */
  runs: readonly RunId[]
  /** Ids of hosts whose runs have one. */
  hosts: readonly string[]
}

export function listLeftovers(places: Places): Leftovers {
  const ofHosts = foldersIn(places, ownFolderName).map((name) => name.replace(aheadEnding, ''))
  return { runs: foldersIn(places, 'runs').map((name) => idFrom(name)), hosts: [...new Set(ofHosts)] }
}

/** Removes those folders of runs that are not in use, and of hosts that are known to have no record: they died before they could clean up. */
export async function removeLeftovers(
  { runs, hosts }: Leftovers,
  options: { places: Places; log: Log; isInUse(runId: RunId): boolean; hasLeft(hostId: string): boolean },
): Promise<void> {
  const { places, log } = options
  for (const runId of runs) {
    if (options.isInUse(runId)) continue
    log.info({ runId }, 'the folder of a forgotten run is removed')
    await removeRunFolder(places, runId, null)
  }
  for (const hostId of hosts) if (options.hasLeft(hostId)) removeOwnFolders(hostPaths(places.stateDir, hostId).own)
}

function foldersIn(places: Places, name: string): string[] {
  try {
    return readdirSync(join(places.stateDir, name))
  } catch {
    return []
  }
}
