import { parseNested } from './nested-json.ts'

/** Whether every database stores the text as it is: PostgreSQL refuses a zero byte, and half a surrogate pair is no UTF-8. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** The text with U+FFFD in the place of what no database stores. */
export const asStorable = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')

/** What devices send is nested deeper than this by none that works: a harness may nest what it says a thousand times. */
export const maxNested = 2_000

/**
 * Reads JSON of which texts are stored: no text in it has a zero byte then. Half a surrogate pair becomes U+FFFD on its way to
 * a database anyhow. Throws as `JSON.parse` does, and where it is nested too deep to be written again.
 */
export function parseStorable(json: string): unknown {
  const value = parseNested(json, maxNested)
  // JSON has no other way to write a zero byte.
  if (!json.includes('\\u0000')) return value
  return JSON.parse(json, (_, each: unknown) => (typeof each === 'string' ? asStorable(each) : each))
}
