import type { AcpUsage } from './wire.ts'

export const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * Returns the usage of all prompts so far. Some programs count each prompt and some the whole session, so the larger number
 * of each is taken: it is never too large.
 */
export function mostOf(before: typeof noUsage, said: AcpUsage): typeof noUsage {
  const most = (known: number, now: number | null | undefined) => Math.max(known, now ?? 0)
  return {
    inputTokens: most(before.inputTokens, said.inputTokens),
    outputTokens: most(before.outputTokens, said.outputTokens),
    cacheReadTokens: most(before.cacheReadTokens, said.cachedReadTokens),
    cacheWriteTokens: most(before.cacheWriteTokens, said.cachedWriteTokens),
  }
}
