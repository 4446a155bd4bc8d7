// Times and durations as people say them.

const second = 1_000
const units = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** `3 minutes ago`, `in 2 days`; a text that is no time stays as it is. */
export function relativeTime(text: string, now: number): string {
  const at = Date.parse(text)
  if (Number.isNaN(at)) return text
  const seconds = Math.round(Math.abs(now - at) / second)
  const unit = units.find(([, length]) => seconds >= length)
  if (unit === undefined) return at <= now ? 'just now' : 'in a moment'
  const [name, length] = unit
  // An age is what has passed in full; of a time to come nobody would call two hours less a second one hour.
  const many = at <= now ? Math.floor(seconds / length) : Math.round(seconds / length)
  const told = `${many} ${name}${many === 1 ? '' : 's'}`
  return at <= now ? `${told} ago` : `in ${told}`
}

/** `1h 5m`, `4m 12s`, `9s`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / second))
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor((seconds % 86_400) / 3_600),
    Math.floor((seconds % 3_600) / 60),
  ]
  if (days > 0) return `${days}d ${hours}h`
  if (hours > 0) return `${hours}h ${minutes}m`
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`
}

/** `340ms`, `1.2s`; longer ones as `duration`. */
export function shortDuration(ms: number): string {
  if (ms >= 10 * second) return duration(ms)
  return ms < second ? `${Math.max(0, Math.round(ms))}ms` : `${(ms / second).toFixed(1)}s`
}
