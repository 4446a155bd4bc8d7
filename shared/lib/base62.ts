const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` base62 characters from random bytes; bytes of 248 and above are ignored, so no character is likelier. */
export function base62(bytes: Uint8Array, length: number): string {
  let text = ''
  for (const byte of bytes) {
    if (byte >= 248) continue
    text += alphabet[byte % 62]
    if (text.length === length) return text
  }
  // All random bytes were used up (a chance of one in millions for 24 bytes): the rest comes from what is left.
  for (let at = 0; text.length < length; at++) text += alphabet[(bytes[at % bytes.length] ?? 0) % 62]
  return text
}
