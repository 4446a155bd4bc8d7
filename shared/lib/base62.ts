export const base62Digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * `length` base62 characters from random bytes. Bytes of 248 and above are ignored, so that all characters are equally
 * likely.
 */
export function base62(bytes: Uint8Array, length: number): string {
  let text = ''
  for (const byte of bytes) {
    if (byte >= 248) continue
    text += base62Digits[byte % 62]
    if (text.length === length) return text
  }
  // All random bytes were used up (a chance of one in millions for 24 bytes), so the rest reuses them.
  for (let at = 0; text.length < length; at++) text += base62Digits[(bytes[at % bytes.length] ?? 0) % 62]
  return text
}
