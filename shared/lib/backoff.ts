/**
 * Returns a delay with full jitter: uniform between a quarter of `minMs` and a ceiling that doubles with each attempt up to `maxMs`.
 * `attempt` counts from 0.
 */
export function backoffMs(attempt: number, options: { minMs: number; maxMs: number; random: number }): number {
  const ceiling = backoffCeilingMs(attempt, options)
  // The delay is never close to 0: jitter is there to keep many devices from coming back at once.
  const floor = Math.min(options.minMs, ceiling) / 4
  return Math.round(floor + options.random * (ceiling - floor))
}

/** The longest delay of this attempt. */
export function backoffCeilingMs(attempt: number, { minMs, maxMs }: { minMs: number; maxMs: number }): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(attempt, 20))
}
