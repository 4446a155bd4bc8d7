import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { z } from 'zod'
import type { stepFinish } from './wire.ts'

/** Decimals of a dollar that are kept. */
const costDigits = 10

/** Sums what the run used over the steps of all its sessions. */
export class OpencodeUsage {
  readonly #sum = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
  #cost = 0

  add({ tokens, cost }: z.infer<typeof stepFinish>, model: string | null): RunEventBody {
    const sum = this.#sum
    sum.inputTokens += Math.round(tokens.input)
    // The model's thoughts are counted apart.
    sum.outputTokens += Math.round(tokens.output + tokens.reasoning)
    sum.cacheReadTokens += Math.round(tokens.cache.read)
    sum.cacheWriteTokens += Math.round(tokens.cache.write)
    this.#cost += cost
    // A model without a price has none, which is not the same as one that costs nothing.
    const costUsd = this.#cost > 0 && this.#cost < 1e9 ? { costUsd: this.#cost.toFixed(costDigits) } : {}
    const totals = Object.fromEntries(
      Object.entries(sum).map(([name, count]) => [name, Math.min(count, Number.MAX_SAFE_INTEGER)]),
    )
    return { kind: 'usage', data: { ...totals, ...costUsd, ...(model !== null && { model }) } }
  }
}
