import { isAsking } from '../../resources/approvals/rules.ts'
import type { Db } from '../../db/open.ts'
import { findDetails } from '../../resources/runs/details-store.ts'
import { findFinalAnswer } from '../../resources/runs/event-log.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import type { AgentArgs } from '../engine/args.ts'
import type { StepFailure } from '../engine/words.ts'

/** The outcome of a step: JSON of its value, or of a failure. */
export interface StepOutcome {
  isValue: boolean
  text: string
}

export const outputName = 'output'

export const failed = (failure: Partial<StepFailure> & Pick<StepFailure, 'code' | 'message'>): StepOutcome => ({
  isValue: false,
  text: JSON.stringify({ exitReason: null, runId: null, ...failure } satisfies StepFailure),
})

/** The outcome of an agent step from its runs, oldest first, the last of which has ended. */
export async function agentOutcome(db: Db, runs: readonly RunRow[], args: AgentArgs): Promise<StepOutcome> {
  const last = runs.at(-1)
  if (last === undefined) return failed({ code: 'run_missing', message: 'The run of this step is gone.' })
  const { id: runId, exitReason } = last
  if (isAsking(exitReason)) {
    const message = 'The step stopped to ask, and nobody answered in time.'
    return failed({ code: 'unanswered', message, exitReason, runId })
  }
  if (exitReason !== 'completed') {
    const message = last.errorMessage ?? `The run ended: ${exitReason}.`
    return failed({ code: last.errorCode ?? exitReason ?? 'error', message, exitReason, runId })
  }
  if (args.schema == null) return value((await findFinalAnswer(db, runId))?.text ?? '')
  for (const run of runs.toReversed()) {
    const details = await findDetails(db, run.id)
    if (details?.outputSchema === outputName) return value(details.output)
  }
  const message = 'The run recorded no output that fits the schema of this step.'
  return failed({ code: 'output_missing', message, exitReason, runId })
}

const value = (of: unknown): StepOutcome => ({ isValue: true, text: JSON.stringify(of) ?? 'null' })
