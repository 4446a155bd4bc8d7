/** Each device of a server gets this much of the time in which all come back: 500 devices take 40 s, 12 or 13 a second. */
const spacingMs = 80
const mostMs = 60_000

/**
 * Returns over how long devices spread their return to a server that `devices` of them lose at once. With few it is less than
 * the delay they wait anyway, so that one alone is back at once.
 */
export function reconnectSpread(devices: number): number {
  return Math.min(mostMs, Math.max(0, Math.round(devices)) * spacingMs)
}
