import { head } from '../../shared/lib/head.ts'

/** The value with long texts and lists in it cut. */
export function cut(value: unknown, most: { chars: number; items: number }): unknown {
  if (typeof value === 'string') return value.length > most.chars ? `${head(value, most.chars)}…` : value
  if (Array.isArray(value)) return value.slice(0, most.items).map((item) => cut(item, most))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cut(inner, most)]))
}
