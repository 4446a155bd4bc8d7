/** The most values of a JSON text. More take the parser, and what comes after it, seconds; a text that works has some thousands. */
const maxValues = 500_000

/**
 * Returns the value of a JSON text. Throws where there is none, and where it is nested deeper than `maxDepth` or holds more than
 * half a million values. The text is looked at before: the parser takes any depth and number, a second for each million
 * of them, and `JSON.stringify` and others would overflow the stack.
 */
export function parseNested(text: string, maxDepth: number): unknown {
  if (text.length > 2 * maxDepth) demandBounded(text, maxDepth)
  return JSON.parse(text)
}

function demandBounded(text: string, maxDepth: number): void {
  let depth = 0
  let values = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfText(text, at + 1)
        break
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > maxDepth) throw new RangeError('The JSON is nested too deep.')
        values++
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
        break
      case 0x2c: // ,
        values++
        break
      default:
    }
    if (values > maxValues) throw new RangeError('The JSON holds too many values.')
  }
}

/** Returns the place of the quotation mark that ends the text. */
function endOfText(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (end - slashes > from && text.charCodeAt(end - slashes - 1) === 0x5c) slashes++
    if (slashes % 2 === 0) return end
  }
  return text.length
}

/** Tells whether every database stores the text as it is: PostgreSQL refuses a zero byte, and half a surrogate pair is no UTF-8. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** The text with U+FFFD in the place of what no database stores. */
export const asStorable = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')

/**
 * The deepest nesting of JSON from devices. A device that works sends none that is deeper: a harness may nest what it says a thousand
 * times.
 */
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
