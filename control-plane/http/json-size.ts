/**
 * Looks through JSON text before it is parsed: how many values it holds and how deep they lie decides what parsing and
 * checking it costs, far more than its length. Reads bytes, keeps nothing.
 */
export interface JsonLimits {
  values: number
  depth: number
  /** Names of one object: each that no other object has costs many times what a value does. */
  keys: number
}

/** Null when it is within the limits. Text that is no JSON may pass: the parser refuses it. */
export function jsonExcess(bytes: Uint8Array, limits: JsonLimits): 'values' | 'depth' | 'keys' | null {
  let values = 0
  /** The number of names of the object that is open at each depth. */
  const keys = [0]
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case 0x22: // "
        at = endOfText(bytes, at + 1)
        break
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > limits.depth) return 'depth'
        values++
        keys[depth] = 0
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
        break
      case 0x3a: {
        // :
        const count = (keys[depth] ?? 0) + 1
        if (count > limits.keys) return 'keys'
        keys[depth] = count
        break
      }
      case 0x2c: // ,
        values++
        break
      default:
    }
    if (values > limits.values) return 'values'
  }
  return null
}

/** Returns the place of the quotation mark that ends the text: one before which stands an even number of backslashes. */
function endOfText(bytes: Uint8Array, from: number): number {
  for (let end = bytes.indexOf(0x22, from); end >= 0; end = bytes.indexOf(0x22, end + 1)) {
    let slashes = 0
    while (end - slashes > from && bytes[end - slashes - 1] === 0x5c) slashes++
    if (slashes % 2 === 0) return end
  }
  return bytes.length
}
