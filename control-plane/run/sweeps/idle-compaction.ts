import { harnesses, harnessNames } from '../../../shared/runs/harnesses.ts'
import { reasoningEfforts } from '../../../shared/runs/spec.ts'
import { inPages } from '../../db/table.ts'
import type { Db } from '../../db/open.ts'
import { inTransaction } from '../../db/transaction.ts'
import { cancelRun } from '../endings/cancel-run.ts'
import { findAgent } from '../../resources/agents/store.ts'
import { findConversation } from '../../resources/conversations/store.ts'
import { livenessOf } from '../../resources/devices/rules.ts'
import { findDeviceByPublicId } from '../../resources/devices/store.ts'
import { isStillIdle, listIdle, listLateCompactions } from '../../resources/runs/compaction-store.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'
import { isHalted } from '../../resources/workspaces/rules.ts'
import { listCompactingWorkspaces } from '../../resources/workspaces/store.ts'
import { asked } from '../../trust/askers.ts'
import { startRun } from '../wakes/start-run.ts'
import type { WakeContext } from '../wakes/wake.ts'
import type { Sweep, SweepContext } from '../../sweeps/sweeper.ts'

/** A provider keeps what it knows of a session for so long after its last use. */
const cacheMs = 60 * 60_000
/** The rest of that time must be enough. */
const latestMs = cacheMs - 30_000
/** A session is idle within a day, or the run that left it was a very long one. */
const longestRunMs = 25 * 60 * 60_000
/** A compaction that found no place after this time would come too late. */
const waitMs = 30_000
const pageSize = 200

const compacting = harnessNames.filter((name) => harnesses[name].compactCommand !== null)

/**
 * Makes sessions smaller that nobody used for a while, just before their provider forgets them: what comes next then costs
 * little, although nothing is kept any more. Once after each turn; a run that wants the session ends it.
 */
export function idleCompactionSweep(options: { everyMs: number; context: WakeContext }): Sweep {
  return {
    name: 'idle_compaction',
    everyMs: options.everyMs,
    async run(context) {
      const { root, now, queue } = context
      for (const workspace of await listCompactingWorkspaces(root)) {
        const { id: workspaceId, idleCompaction } = workspace
        for (const run of await listLateCompactions(root, { workspaceId, createdBefore: now - waitMs }))
          queue.add(workspaceId, () => giveUp(run, context, options.context), run.id)
        if (isHalted(workspace)) continue
        const to = now - idleCompaction.afterMinutes * 60_000
        const window = { from: now - latestMs, to, createdSince: now - longestRunMs }
        // The sweep judges every page, since any number of small sessions may stand before a large one.
        const idle = { workspaceId, ...window, harnesses: compacting }
        for await (const page of inPages<RunRow>(pageSize, (next) => listIdle(root, { after: null, ...idle, ...next })))
          for (const run of page)
            if ((run.usage?.contextTokens ?? 0) >= idleCompaction.minTokens)
              queue.add(workspaceId, () => compact(run, context, options.context), run.id)
      }
    },
  }
}

async function compact(run: RunRow, { root, now, log }: SweepContext, context: WakeContext): Promise<void> {
  const device = run.device === null ? null : await findDeviceByPublicId(root, run.device)
  if (device === null || livenessOf(device, now, context.offers.leaseMs) !== 'connected') return
  const answer = await inTransaction(
    root,
    async (tx) => {
      const agent = await findAgent(tx, run.agentRef)
      if (agent === null || agent.status !== 'active' || !(await isStillIdle(tx, run))) return null
      const { harness, modelId: model } = run
      const reasoningEffort = reasoningEfforts.find((effort) => effort === run.reasoningEffort) ?? null
      return startRun(
        tx,
        {
          ...asked('cron', { setter: run.causedByUuid }, run.wordsBy),
          agent,
          requestedByRef: null,
          prompt: harnesses[harness].compactCommand,
          parent: run,
          compacts: true,
          overrides: { environment: 'device', harness, model, reasoningEffort, speed: await speedOf(tx, run) },
        },
        context,
      )
    },
    { locks: [run.workspaceId] },
  )
  if (answer !== null) log.info({ runId: run.id, answer: answer.kind }, 'idle session')
}

/** Returns the speed of the conversation: at another speed the provider would not know the session. */
const speedOf = async (db: Db, { conversationId }: RunRow) =>
  conversationId === null ? null : ((await findConversation(db, conversationId))?.speed ?? null)

async function giveUp(run: RunRow, { root, world }: SweepContext, { offers }: WakeContext): Promise<void> {
  const cancel = { exitReason: 'duplicate_trigger', reason: null, world, leaseMs: offers.leaseMs } as const
  await inTransaction(root, async (tx) => {
    const now = await findRun(tx, run.id)
    if (now?.status === 'queued') await cancelRun(tx, now, cancel)
  })
}
