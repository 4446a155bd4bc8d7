import type { RunUsage } from '../../../shared/runs/events.ts'
import { addedTokens } from '../parts/tokens.ts'
import { isAtLeast } from '../parts/version.ts'
import type { MessageUsage, ModelUsage, ClaudeResultLine } from './wire.ts'

interface Totals {
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** null: not known for this run. */
  costUsd: number | null
}
const none: Totals = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0 }

export interface ClaudeUsageMeter {
  /** The totals so far after a message of the model; null when it adds nothing new. */
  message(message: { id: string | undefined; usage: MessageUsage | undefined; isSubagents: boolean }): RunUsage | null
  /** The totals after a turn. */
  result(line: ClaudeResultLine, version: string | null): RunUsage
}

/**
 * Adds up what this run used. Up to 2.1.197 a result counts from the start of the process, which is the run. Later
 * versions count from the start of the session, over all its runs, and say beside it what came since the last result.
 *
 * Between results only what went in is known: a message's line has the output tokens of its start. So totals within a
 * turn count input only; they are what a run that is killed in its turn is left with.
 */
export function usageMeter(options: { resumed: boolean; model: () => string | null }): ClaudeUsageMeter {
  let atResult = none
  let sinceResult = none
  let seen = new Set<string>()
  let contextTokens: number | null = null

  const report = (totals: Totals, isWhole: boolean): RunUsage => {
    const { costUsd, outputTokens, ...tokens } = totals
    const model = options.model()
    return {
      ...tokens,
      // Nothing known is left out; a zero would claim that there was none.
      ...((isWhole || outputTokens > 0) && { outputTokens }),
      ...(costUsd !== null && { costUsd: decimal(costUsd) }),
      ...(contextTokens !== null && { contextTokens }),
      ...(model !== null && { model }),
    }
  }
  return {
    message({ id, usage, isSubagents }) {
      if (id === undefined || usage === undefined || seen.has(id)) return null
      seen.add(id)
      const added = { ...tokensOf(usage), outputTokens: 0, costUsd: null }
      const wentIn = addedTokens(added.inputTokens, addedTokens(added.cacheReadTokens, added.cacheWriteTokens))
      if (wentIn === 0) return null
      if (!isSubagents) contextTokens = wentIn
      sinceResult = sum(sinceResult, added)
      return report(sum(atResult, sinceResult), false)
    },
    result(line, version) {
      const { model_usage_since_last_result: since, modelUsage } = line
      const countsThisRun = !options.resumed || (version !== null && !isAtLeast(version, '2.1.198'))
      if (since !== undefined) atResult = sum(atResult, ofModels(since))
      else if (countsThisRun && modelUsage !== undefined) atResult = ofModels(modelUsage)
      else if (line.usage !== undefined) atResult = sum(atResult, { ...tokensOf(line.usage), costUsd: null })
      sinceResult = none
      seen = new Set()
      return report(atResult, true)
    },
  }
}

function tokensOf(usage: MessageUsage): Omit<Totals, 'costUsd'> {
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    cacheReadTokens: usage.cache_read_input_tokens,
    cacheWriteTokens: usage.cache_creation_input_tokens,
  }
}

function ofModels(models: ModelUsage): Totals {
  return Object.values(models).reduce<Totals>(
    (totals, model) =>
      sum(totals, {
        inputTokens: model.inputTokens,
        outputTokens: model.outputTokens,
        cacheReadTokens: model.cacheReadInputTokens,
        cacheWriteTokens: model.cacheCreationInputTokens,
        costUsd: model.costUSD,
      }),
    none,
  )
}

function sum(a: Totals, b: Totals): Totals {
  return {
    inputTokens: addedTokens(a.inputTokens, b.inputTokens),
    outputTokens: addedTokens(a.outputTokens, b.outputTokens),
    cacheReadTokens: addedTokens(a.cacheReadTokens, b.cacheReadTokens),
    cacheWriteTokens: addedTokens(a.cacheWriteTokens, b.cacheWriteTokens),
    costUsd: a.costUsd === null || b.costUsd === null ? null : a.costUsd + b.costUsd,
  }
}

/** Without exponent and without the noise of binary fractions. */
function decimal(value: number): string {
  return value.toFixed(10).replace(/\.?0+$/, '')
}
