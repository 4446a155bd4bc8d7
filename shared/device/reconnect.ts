/** The time that each device of a server adds to the time in which all come back: 500 devices take 40 s, 12 or 13 a second. */
const spacingMs = 80
const mostMs = 60_000

/**
 * Returns the time over which `devices` devices spread their return to a server that they lose at once. For few devices it is below the
 * delay they wait anyway, so a single device is back at once.
 */
export function reconnectSpread(devices: number): number {
  return Math.min(mostMs, Math.max(0, Math.round(devices)) * spacingMs)
}
