import type { Knex } from 'knex'
import { idFrom } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Blobs } from '../blobs/blobs.ts'
import { tryLockName } from '../db/dialect.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction, type TransactionOptions } from '../db/transaction.ts'
import { removeEndedRuns } from '../run/change-store.ts'
import { insertRemovedRuns, listRemovedLogs, removeSomeOfLog } from '../resources/runs/removed-store.ts'
import { listAllWorkspaces } from '../resources/workspaces/store.ts'
import type { BackgroundJob } from './background-jobs.ts'
import {
  beginning,
  forgetVersions,
  listOldHistory,
  listOldRuns,
  listOldVersions,
  listRunsStillOver,
  removeHistory,
  removeRunParts,
  type Place,
} from './retention-store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'

/**
 * What goes by its age, where the operator says so: ended runs with all that is stored of them but what they cost, the history of closed
 * tasks, the bytes of versions of files that were replaced.
 *
 * A pass looks at a bounded number of old rows of each kind, of runs in each workspace, and goes on where the one before ended; at the
 * end it begins anew. What may go is removed in short transactions, each of which asks again whether it may. Of several replicas
 * one is at it, by a name that its transaction locks; another one that finds it locked ends its pass.
 */
export interface Keep {
  /** For how long (ms) each is kept; null: for good. */
  runsMs: number | null
  historyMs: number | null
  versionsMs: number | null
}

export interface RetentionOptions {
  keep: Keep
  everyMs: number
  blobs: Pick<Blobs, 'release'>
}

/** Nothing is removed in the first hour of a server, nor in that after a jump of its clock: whoever set it wrong has time to notice. */
export const quietMs = 3_600_000
const rowsPerPage = 200
const pagesPerPass = 5
/** A transaction removes so many runs. */
const runsAtOnce = 20
const workspacesPerPass = 10_000

export function retentionSweep(options: RetentionOptions): Sweep {
  const pass = new RetentionPass(options)
  return {
    name: 'retention',
    everyMs: options.everyMs,
    async run(context) {
      const { runsMs, historyMs, versionsMs } = options.keep
      if (runsMs === null && historyMs === null && versionsMs === null) return
      if (context.now - context.awakeSince() < quietMs) return
      context.queue.add('retention', () => pass.run(context), 'retention')
    },
  }
}

/** Another replica is at it. */
class TakenError extends Error {}

class RetentionPass {
  private readonly options: RetentionOptions
  /** How far the last pass came, by workspace for runs. */
  private readonly runsAfter = new Map<string, Place>()
  private historyAfter = { at: -1, seq: -1 }
  private versionsAfter = beginning

  constructor(options: RetentionOptions) {
    this.options = options
  }

  async run({ root, now, world, log }: SweepContext): Promise<void> {
    const { runsMs, historyMs, versionsMs } = this.options.keep
    const removed = { runs: 0, history: 0, versions: 0 }
    try {
      if (runsMs !== null) removed.runs = await this.removeRuns(root, now - runsMs, world)
      if (historyMs !== null) removed.history = await this.removeHistory(root, now - historyMs)
      if (versionsMs !== null) removed.versions = await this.removeVersions(root, now - versionsMs)
    } catch (error) {
      if (!(error instanceof TakenError)) throw error
    }
    if (removed.runs + removed.history + removed.versions > 0) log.info(removed, 'old rows removed')
  }

  /** Each workspace has its turn for one page before any has another one. */
  private async removeRuns(root: Knex, before: number, world: World): Promise<number> {
    let removed = 0
    let ids = (await listAllWorkspaces(root, workspacesPerPass)).map(({ id }) => id)
    for (let page = 0; page < pagesPerPass && ids.length > 0; page++) {
      const unfinished: typeof ids = []
      for (const id of ids) {
        const after = this.runsAfter.get(id) ?? beginning
        const old = await listOldRuns(root, id, { before, after, limit: rowsPerPage })
        const over = old.filter(({ isOver }) => isOver).map((run) => run.id)
        for (let at = 0; at < over.length; at += runsAtOnce) {
          const some = over.slice(at, at + runsAtOnce)
          removed += await alone(root, (tx) => removeRunsNow(tx, some, { before, world }), { locks: [id] })
        }
        const isAtEnd = old.length < rowsPerPage
        if (isAtEnd) this.runsAfter.delete(id)
        else this.runsAfter.set(id, old.at(-1)!)
        if (!isAtEnd) unfinished.push(id)
      }
      ids = unfinished
    }
    return removed
  }

  private async removeHistory(root: Knex, before: number): Promise<number> {
    let removed = 0
    for (let page = 0; page < pagesPerPass; page++) {
      const old = await listOldHistory(root, { before, after: this.historyAfter, limit: rowsPerPage })
      const over = old.filter(({ isOver }) => isOver).map(({ seq }) => seq)
      if (over.length > 0) removed += await alone(root, (tx) => removeHistory(tx, over, before))
      const isAtEnd = old.length < rowsPerPage
      this.historyAfter = isAtEnd ? { at: -1, seq: -1 } : old.at(-1)!
      if (isAtEnd) break
    }
    return removed
  }

  private async removeVersions(root: Knex, before: number): Promise<number> {
    let removed = 0
    for (let page = 0; page < pagesPerPass; page++) {
      const old = await listOldVersions(root, { before, after: this.versionsAfter, limit: rowsPerPage })
      for (const [workspaceId, versions] of Map.groupBy(
        old.filter(({ isOver }) => isOver),
        (version) => version.workspaceId,
      )) {
        const ids = versions.map(({ id }) => id)
        const release = async (tx: Tx) => {
          const blobs = await forgetVersions(tx, ids, before)
          await this.options.blobs.release(tx, blobs)
          return blobs.length
        }
        removed += await alone(root, release, { locks: [workspaceId] })
      }
      const isAtEnd = old.length < rowsPerPage
      this.versionsAfter = isAtEnd ? beginning : old.at(-1)!
      if (isAtEnd) break
    }
    return removed
  }
}

/** Does the work in a transaction unless another replica is at it. */
const alone = <Result>(root: Knex, work: (tx: Tx) => Promise<Result>, options: TransactionOptions = {}) =>
  inTransaction(
    root,
    async (tx) => {
      if (!(await tryLockName(tx, 'retention'))) throw new TakenError()
      return work(tx)
    },
    options,
  )

/** Removes those of the runs that may go still. Their events go afterwards, one batch after another. Returns their number. */
async function removeRunsNow(
  tx: Tx,
  ids: Parameters<typeof removeEndedRuns>[1],
  { before, world }: { before: number; world: Pick<World, 'now'> },
): Promise<number> {
  const over = await listRunsStillOver(tx, ids, before)
  if (over.length === 0) return 0
  await insertRemovedRuns(tx, over, world.now())
  await removeRunParts(tx, over)
  await removeEndedRuns(tx, over)
  return over.length
}

const logsPerRound = 100
/** A frame may have 16 MB. */
const framesAtOnce = 16

/** Removes the events of removed runs; it is there whatever is set now, since a run may have been removed before. */
export const removedLogsJob: BackgroundJob = {
  name: 'removed_run_logs',
  list: (root) => listRemovedLogs(root, logsPerRound),
  runBatch: (root, id) =>
    inTransaction(root, async (tx) => ((await removeSomeOfLog(tx, idFrom(id), framesAtOnce)) ? 'more' : 'done'), {
      below: 'rows of what was removed',
    }),
}
