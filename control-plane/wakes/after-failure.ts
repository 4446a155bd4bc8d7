import { type HarnessName, harnessFactsOf } from '../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { Db } from '../db/open.ts'
import type { RunEffect } from '../lifecycle/run-effects.ts'
import { findDetails } from '../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import { asStopped, goOnAfter } from './going-on.ts'
import type { Wake } from './wake.ts'

/**
 * An effect of a run's end: one whose provider failed is followed by one with the agent's backup model, which goes on with
 * the session, or else on its fallback harness. That one is followed by none.
 */
export const goOnAfterFailure: RunEffect = async (db, run, { world, providerFailed = false }) => {
  if (!providerFailed || run.compacts || (await followsFailure(db, run))) return
  const details = await findDetails(db, run.id)
  if (details === null || insteadOf(details) === null) return
  await goOnAfter(db, run, { stop: 'failure', prompt: details.prompt, world })
}

/** Returns what the run that follows a failure runs on, in the place of the failed one. */
export async function afterFailure(
  db: Db,
  key: string | null,
  parent: RunRow | null,
): Promise<Pick<Wake, 'overrides' | 'inLineSince'>> {
  const failed = asStopped('failure', key, parent)
  const details = failed && (await findDetails(db, failed.run.id))
  const instead = details && insteadOf(details)
  if (failed === null || instead === null) return {}
  return { overrides: { ...failed.overrides, ...instead }, inLineSince: failed.inLineSince }
}

/** null: there is nothing else to run it on. */
function insteadOf(of: {
  spec: RunSpec
  fallbackSpec: RunSpec | null
}): { harness: HarnessName; model: string | null } | null {
  const { harness, model, backupModel } = of.spec
  const { changesModel, ignores } = harnessFactsOf(of.spec)
  const takesBackup = !changesModel && !ignores.includes('backupModel')
  if (takesBackup && backupModel !== null && backupModel !== model) return { harness, model: backupModel }
  return of.fallbackSpec && { harness: of.fallbackSpec.harness, model: of.fallbackSpec.model }
}

/** The run before it ended by a failure of its provider, too. */
const followsFailure = async (db: Db, { parentRunId }: RunRow): Promise<boolean> =>
  parentRunId !== null && (await findRun(db, parentRunId))?.providerFailed === true
