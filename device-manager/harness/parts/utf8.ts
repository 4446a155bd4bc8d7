import { isUtf8 } from 'node:buffer'

/** Counts the bytes at the end of `bytes` that are the start of a UTF-8 character whose rest is yet to come (0 to 3). */
export function incompleteTail(bytes: Uint8Array): number {
  const furthest = Math.min(3, bytes.length)
  for (let back = 1; back <= furthest; back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0b1100_0000) === 0b1000_0000) continue
    return lengthByLead(byte) > back ? back : 0
  }
  return 0
}

/** The longest prefix of at most `maxBytes` bytes that does not cut a character in two. */
export function cutBytes(bytes: Uint8Array, maxBytes: number): Uint8Array {
  if (bytes.length <= maxBytes) return bytes
  const head = bytes.subarray(0, maxBytes)
  return head.subarray(0, head.length - incompleteTail(head))
}

/** `text` cut to at most `maxBytes` bytes of UTF-8, and how many bytes that took away. */
export function cutText(text: string, maxBytes: number): { text: string; truncatedBytes: number } {
  // A UTF-16 unit is at most three bytes, so most texts need no encoding to be known as short.
  if (text.length * 3 <= maxBytes) return { text, truncatedBytes: 0 }
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return { text, truncatedBytes: 0 }
  const kept = cutBytes(bytes, maxBytes)
  return { text: Buffer.from(kept).toString('utf8'), truncatedBytes: bytes.length - kept.length }
}

/** The bytes as text when they are valid UTF-8, else as base64, so that none is lost. */
export function outputOf(bytes: Uint8Array): { text: string } | { base64: string } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return isUtf8(buffer) ? { text: buffer.toString('utf8') } : { base64: buffer.toString('base64') }
}

function lengthByLead(byte: number): number {
  if (byte >= 0xf0 && byte <= 0xf4) return 4
  if (byte >= 0xe0 && byte <= 0xef) return 3
  if (byte >= 0xc2 && byte <= 0xdf) return 2
  return 1
}
