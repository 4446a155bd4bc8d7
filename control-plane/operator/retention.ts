import type { Db } from '../db/open.ts'
import type { Keep } from '../sweeps/retention.ts'
import { countDueHistory, countDueRuns, countDueVersions, type DueCount } from '../sweeps/retention-store.ts'
import { listSlugs } from './usage-store.ts'

// What the sweeps would remove by its age, for the operator, before a setting says that they do.

interface Due {
  workspace: string
  rows: number
  /** Of the events of runs, or of the versions of files. */
  bytes: number
}

/** null: the kind is kept for good. */
export async function dueNow(db: Db, now: number, { runsMs, historyMs, versionsMs }: Keep) {
  const slugs = await listSlugs(db)
  const count = async (ms: number | null, counting: (db: Db, before: number) => Promise<DueCount[]>) => {
    if (ms === null) return null
    const due = await counting(db, now - ms)
    const shown = due.flatMap(({ workspaceId, ...room }): Due[] => {
      const workspace = slugs.get(workspaceId)
      return workspace === undefined ? [] : [{ workspace, ...room }]
    })
    return shown.toSorted((a, b) => b.rows - a.rows)
  }
  return {
    runs: await count(runsMs, countDueRuns),
    taskHistory: await count(historyMs, countDueHistory),
    fileVersions: await count(versionsMs, countDueVersions),
  }
}
