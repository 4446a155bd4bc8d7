import { type HarnessName, harnessFactsOf } from '../../shared/runs/harnesses.ts'
import { reasoningEfforts, type RunSpec } from '../../shared/runs/spec.ts'
import type { Db } from '../db/open.ts'
import type { RunEffect } from '../lifecycle/run-effects.ts'
import { findDetails } from '../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import type { Wake } from './wake.ts'
import { requestWake } from './wakes.ts'

/**
 * An effect of a run's end: one whose provider failed is followed by one with the agent's backup model, which goes on with
 * the session, or else on its fallback harness. That one is followed by none.
 */
export const goOnAfterFailure: RunEffect = async (db, run, { world, providerFailed = false }) => {
  if (!providerFailed || run.compacts || (await followsFailure(db, run))) return
  const details = await findDetails(db, run.id)
  if (details === null || insteadOf(details) === null) return
  await requestWake(
    db,
    {
      workspaceId: run.workspaceId,
      agentId: run.agentId,
      triggerSource: 'manual',
      requestedBy: run.requestedBy,
      causedBy: run.causedByUserId,
      prompt: `${goOn}${details.prompt ?? ''}`,
      taskId: run.taskId,
      conversationId: run.conversationId,
      continues: run.id,
      key: keyOf(run.id),
    },
    world,
  )
}

/** Returns what the run that follows a failure runs on, in the place of the failed one. */
export async function afterFailure(
  db: Db,
  key: string | null,
  parent: RunRow | null,
): Promise<Pick<Wake, 'overrides' | 'inLineSince'>> {
  if (parent === null || key !== keyOf(parent.id)) return {}
  const details = await findDetails(db, parent.id)
  const instead = details && insteadOf(details)
  if (instead === null) return {}
  const { environmentType: environment, inLineSince, createdAt } = parent
  const reasoningEffort = reasoningEfforts.find((effort) => effort === parent.reasoningEffort) ?? null
  return { overrides: { environment, reasoningEffort, ...instead }, inLineSince: inLineSince ?? createdAt }
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

const goOn = `The provider of your model failed in the middle of this work. Go on where you stopped, and do nothing twice.

What you were asked:

`

const keyOf = (runId: string) => `after_failure:${runId}`

/** Whether a wake is that of a run which follows one whose provider failed. */
export const isAfterFailure = ({
  key,
  continuesRunId,
}: {
  key: string | null
  continuesRunId: string | null
}): boolean => continuesRunId !== null && key === keyOf(continuesRunId)

/** The run before it ended by a failure of its provider, too. */
const followsFailure = async (db: Db, { parentRunId }: RunRow): Promise<boolean> =>
  parentRunId !== null && (await findRun(db, parentRunId))?.providerFailed === true
