import type { RunUsage } from '../../shared/runs/events.ts'
import type { ModelCatalog, ModelPrice } from './catalog.ts'

// Money in billionths of a dollar (nano-dollars), as integers, so that sums are exact.

const nanoPerUsd = 1_000_000_000n
const nanoPerCent = 10_000_000

/** Reads `'0.25'` as nano-dollars; digits after the ninth are cut off. */
export function toNanoUsd(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.')
  return BigInt(whole) * nanoPerUsd + BigInt(fraction.slice(0, 9).padEnd(9, '0'))
}

/** Writes nano-dollars as a decimal without zeros at its end. */
export function fromNanoUsd(nano: bigint): string {
  const fraction = (nano % nanoPerUsd).toString().padStart(9, '0').replace(/0+$/, '')
  return `${nano / nanoPerUsd}${fraction === '' ? '' : `.${fraction}`}`
}

/** Whole cents, half a cent rounded up. */
export function toCents(nano: number): number {
  const rounded = nano + nanoPerCent / 2
  return (rounded - (rounded % nanoPerCent)) / nanoPerCent
}

export const centsToNanoUsd = (cents: number): number => cents * nanoPerCent

/** The cost of these tokens. `inputTokens` are those that were neither read from the cache nor written to it. */
export function costOf(usage: RunUsage, price: ModelPrice): string {
  const tokens = (count: number | undefined, perMillion: string) => BigInt(count ?? 0) * toNanoUsd(perMillion)
  const millionths =
    tokens(usage.inputTokens, price.input) +
    tokens(usage.outputTokens, price.output) +
    tokens(usage.cacheReadTokens, price.cacheRead) +
    tokens(usage.cacheWriteTokens, price.cacheWrite)
  return fromNanoUsd((millionths + 500_000n) / 1_000_000n)
}

/** Returns the usage with a cost: the harness's own, else the catalog's, or without one when neither is known. */
export function withCost(usage: RunUsage, model: string | null, catalog: ModelCatalog): RunUsage {
  if (usage.costUsd !== undefined) return usage
  const used = usage.model ?? model
  const price = used === null ? null : (catalog.find(used)?.price ?? null)
  return price === null ? usage : { ...usage, costUsd: costOf(usage, price) }
}

/** The month (UTC) that an ending counts for, for example `2026-03`. */
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7)

/** The value now of a sum that was kept for one month: nothing once that month is over. */
export const spentNow = (spent: { month: string | null; nanoUsd: number }, now: number): number =>
  spent.month === monthOf(now) ? spent.nanoUsd : 0
