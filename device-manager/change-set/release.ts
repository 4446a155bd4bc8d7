import { lstat, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import { refNameOf, removeStore } from './base-store.ts'
import { runGit } from './git.ts'
import { defaultLimits } from './limits.ts'
import { locateRepository } from './repository.ts'
import type { BaseSnapshot } from './snapshot.ts'

/** Removes what was kept of a base: the private folder and the ref. May be called twice; never throws. */
export async function releaseBase(base: BaseSnapshot): Promise<void> {
  await release(dirname(dirname(dirname(base.storeDir))), base.storeDir, base.refName)
}

async function release(commonDir: string, storeDir: string, refName: string): Promise<void> {
  // The ref first: without its store a ref is not found again by the folders, but a store without its ref is.
  await runGit({
    args: ['update-ref', '-d', refName],
    cwd: commonDir,
    gitDir: commonDir,
    timeoutMs: defaultLimits.gitMs,
  })
  await removeStore(storeDir).catch(() => undefined)
}

export interface ReleaseOptions {
  folder: string
  liveRunIds: Iterable<string>
  world: World
  /**
   * Younger ones are left: they may be those of another device manager on the same repository. The default is longer
   * than any run may last.
   */
  olderThanMs?: number
}

/** Removes bases that a crash left in the folder's repository. Answers the ids of their runs; never throws. */
export async function releaseStale({
  folder,
  liveRunIds,
  world,
  olderThanMs = 24 * 3_600_000,
}: ReleaseOptions): Promise<string[]> {
  const live = new Set(liveRunIds)
  const released: string[] = []
  try {
    const { commonDir } = await locateRepository(folder, defaultLimits.gitMs)
    const runsDir = join(commonDir, 'svc', 'runs')
    for (const runId of await readdir(runsDir)) {
      if (live.has(runId)) continue
      const storeDir = join(runsDir, runId)
      // Made once, when the base is taken.
      const made = await lstat(join(storeDir, 'info')).catch(() => lstat(storeDir))
      if (world.now() - made.mtimeMs < olderThanMs) continue
      await release(commonDir, storeDir, refNameOf(runId))
      released.push(runId)
    }
  } catch {
    // No repository, or none of ours in it.
  }
  return released
}
