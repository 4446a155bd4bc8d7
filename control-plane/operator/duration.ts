import { OperatorError } from './people.ts'

const units: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }

/** Reads `12h`, `30d` or `4w` as milliseconds. */
export function durationMs(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,4})([hdw])$/.exec(text) ?? []
  const ms = unit === undefined ? undefined : units[unit]
  if (ms === undefined) throw new OperatorError(`${text} is no duration: say 12h, 30d or 4w.`)
  return Number(count) * ms
}
