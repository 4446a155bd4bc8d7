/** More values than this take the parser, and what comes after it, seconds; what works has some thousands. */
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
