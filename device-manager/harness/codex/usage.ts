import type { RunEventBody } from '../../../shared/runs/events.ts'
import { addedTokens } from '../parts/tokens.ts'
import type { Threads } from './threads.ts'
import { tokenUsage } from './wire.ts'

/** Adds up what a run and its subagents used, and counts the answers of its model. */
export class CodexUsageMeter {
  /** Of the run's own turn. */
  modelCalls = 0
  readonly #threads: Threads
  #sum = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

  constructor(threads: Threads) {
    this.#threads = threads
  }

  /** null: not what is understood. */
  read(
    params: unknown,
    { own, model }: { own: { threadId: string | null; turnId: string | null }; model: string | null },
  ): RunEventBody[] | null {
    const parsed = tokenUsage.safeParse(params)
    if (!parsed.success) return null
    const { threadId, turnId, tokenUsage: usage } = parsed.data
    if (!this.#threads.has(threadId)) return null
    const usedMore = this.#threads.usedMore(threadId, usage.total)
    const isOurs = threadId === own.threadId
    // A session that is gone on with tells what its last turn took.
    if (isOurs && turnId !== own.turnId) return []
    if (isOurs) this.modelCalls++
    if (!usedMore) return []
    const [{ last }, sum] = [usage, this.#sum]
    // `inputTokens` counts what came from the cache as well.
    const uncached = Math.max(0, last.inputTokens - last.cachedInputTokens)
    sum.inputTokens = addedTokens(sum.inputTokens, uncached)
    sum.cacheReadTokens = addedTokens(sum.cacheReadTokens, last.cachedInputTokens)
    sum.cacheWriteTokens = addedTokens(sum.cacheWriteTokens, last.cacheWriteInputTokens)
    sum.outputTokens = addedTokens(sum.outputTokens, last.outputTokens)
    return [{ kind: 'usage', data: { ...sum, ...(model !== null && { model }) } }]
  }
}
