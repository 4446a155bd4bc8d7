import type { WorkflowRunId } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { CallRow } from '../../resources/workflows/call-store.ts'
import type { WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import type { EndedStep } from '../../resources/workflows/step-store.ts'
import { callArgs } from '../engine/args.ts'
import type { HandedResult } from '../engine/words.ts'
import type { HandedCalls } from './handed-calls.ts'
import { agentOutcome, commandOutcome, type StepOutcome } from './outcome.ts'

// The journal that an advance replays: the calls of a run, and what came of them.

/**
 * Returns all calls, in their order, and keeps those that were handed over. `known`: those that were kept before; `others`: those
 * that were read now.
 */
export function journalCalls(
  id: WorkflowRunId,
  { known, others }: { known: readonly CallRow[]; others: readonly CallRow[] },
  handedCalls: HandedCalls,
): readonly CallRow[] {
  const calls = known.length === 0 ? others : [...known, ...others].toSorted((a, b) => a.seq - b.seq)
  handedCalls.keep(
    id,
    calls.filter(({ handedOrder }) => handedOrder !== null),
  )
  return calls
}

/** The outcome of a call, which its program is given next. */
export interface Result extends StepOutcome {
  seq: number
  at: number
}

/** Reads what came of the calls that have ended. `steps`: the runs of those whose result is theirs. */
export async function outcomesOf(
  waiting: readonly CallRow[],
  steps: readonly EndedStep[],
  root: Knex,
): Promise<Result[]> {
  const results: Result[] = []
  for (const call of waiting) {
    const { seq, result, isValue } = call
    const own = steps.filter(({ run }) => run.workflowCall === seq)
    const ofRun = () =>
      call.kind === 'gate'
        ? commandOutcome(root, own, callArgs.gate.parse(JSON.parse(call.args)))
        : agentOutcome(root, own, callArgs.agent.parse(JSON.parse(call.args)))
    const outcome = result === null ? await ofRun() : { isValue: isValue === true, text: result }
    results.push({ seq, at: call.endedAt!, ...outcome })
  }
  return results
}

/** The results of a run, in the order in which they are handed over, and the size of the whole. */
export interface Journal {
  results: readonly HandedResult[]
  bytes: number
}

export function journalOf(
  { createdAt }: WorkflowRunRow,
  calls: readonly CallRow[],
  results: readonly Result[],
): Journal {
  const handed = calls
    .filter(({ handedOrder }) => handedOrder !== null)
    .toSorted((a, b) => a.handedOrder! - b.handedOrder!)
    .map(({ seq, endedAt, isValue, result }) => ({ seq, at: endedAt!, isValue: isValue === true, text: result! }))
  const all = inOrderOfTime(createdAt, [
    ...handed,
    ...results.map(({ seq, at, isValue, text }) => ({ seq, at, isValue, text })),
  ])
  return { results: all, bytes: sizeOf(calls.map(({ args }) => args)) + sizeOf(all.map(({ text }) => text)) }
}

/** The clock of a program never goes back, whichever replica noted an end. */
function inOrderOfTime(startedAt: number, results: readonly HandedResult[]): HandedResult[] {
  let last = startedAt
  return results.map((result) => ({ ...result, at: (last = Math.max(last, result.at)) }))
}

export const sizeOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0)
