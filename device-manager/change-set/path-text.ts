import { isUtf8 } from 'node:buffer'

const named: Record<number, string> = { 7: 'a', 8: 'b', 9: 't', 10: 'n', 11: 'v', 12: 'f', 13: 'r', 34: '"', 92: '\\' }

/**
 * A path's bytes as text: as they are when they are UTF-8, else quoted as git quotes them in a patch
 * (`"caf\351.txt"`), since a byte that is no character would be lost.
 */
export function pathText(latin1: string): string {
  const bytes = Buffer.from(latin1, 'latin1')
  if (isUtf8(bytes)) return bytes.toString('utf8')
  let text = '"'
  for (const byte of bytes) {
    const name = named[byte]
    if (name !== undefined) text += `\\${name}`
    else if (byte < 0x20 || byte >= 0x7f) text += `\\${byte.toString(8).padStart(3, '0')}`
    else text += String.fromCharCode(byte)
  }
  return text + '"'
}
