/** Full jitter: uniform between `minMs` and the doubled-per-attempt ceiling (at most `maxMs`). `attempt` counts from 0. */
export function backoffMs(attempt: number, options: { minMs: number; maxMs: number; random: number }): number {
  const ceiling = backoffCeilingMs(attempt, options)
  // Never below a quarter of the ceiling: "at once" for many devices together is what jitter is there to prevent.
  const floor = Math.min(options.minMs, ceiling) / 4
  return Math.round(floor + options.random * (ceiling - floor))
}

/** The longest delay of this attempt. */
export function backoffCeilingMs(attempt: number, { minMs, maxMs }: { minMs: number; maxMs: number }): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(attempt, 20))
}
