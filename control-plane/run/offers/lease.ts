import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import { publish } from '../../db/transaction.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { changeRun, claimRun, claimRuns, type Claim, type ClaimedRun } from '../change-store.ts'
import type { WithdrawalReason } from '../life.ts'
import { applyRunEffects } from '../effects.ts'

/** The device that was offered the run takes it, with all that its start changes elsewhere; null: it is no longer offered to that device. */
export async function startOn(db: Db, { world, ...claim }: Claim & { world: World }): Promise<ClaimedRun | null> {
  const claimed = await claimRun(db, claim)
  if (claimed) await applyRunEffects(db, claimed.run, { at: claim.at, world, exitReason: null, left: null })
  return claimed
}

/** The same for many. Returns those that were taken. */
export async function startAllOn(db: Db, claims: readonly Claim[], world: World): Promise<ClaimedRun[]> {
  const claimed = await claimRuns(db, claims)
  const inOrder = new Map(claimed.map((each) => [each.run.id, each]))
  // The effects come in the order of the claims. One that is named twice starts once.
  for (const { runId, at } of claims) {
    const run = inOrder.get(runId)?.run
    if (run === undefined || !inOrder.delete(runId)) continue
    await applyRunEffects(db, run, { at, world, exitReason: null, left: null })
  }
  return claimed
}

/** The run waits again, and whoever reads the outbox looks for another place. False when the offer was answered meanwhile. */
export async function takeBackOffer(
  db: Db,
  { id, fence, device }: Pick<RunRow, 'id' | 'fence' | 'device'>,
  { at, why }: { at: number; why: WithdrawalReason },
): Promise<boolean> {
  const isBack = await changeRun(db, id, { type: 'offer_withdrawn', fence, why, ...(device !== null && { device }) })
  if (isBack) await publish(db, { topic: 'run.queued', key: id, at })
  return isBack
}
