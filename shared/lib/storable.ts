/** Whether every database stores the text as it is: PostgreSQL refuses a zero byte, and half a surrogate pair is no UTF-8. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** The text with U+FFFD in the place of what no database stores. */
export const asStorable = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')

/**
 * Reads JSON of which texts are stored: no text in it has a zero byte then. Half a surrogate pair becomes U+FFFD on its way to
 * a database anyhow. Throws as `JSON.parse` does.
 */
export function parseStorable(json: string): unknown {
  // JSON has no other way to write a zero byte.
  if (!json.includes('\\u0000')) return JSON.parse(json)
  return JSON.parse(json, (_, value: unknown) => (typeof value === 'string' ? asStorable(value) : value))
}
