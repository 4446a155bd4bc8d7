/**
 * Decodes base64 as it stands in a text of JSON (a slash or any other character may be escaped), in pieces of any size. It
 * takes the alphabet of RFC 4648, section 4, with padding, and nothing else.
 */
export class Base64Reader {
  /** Characters that are too few to be decoded yet: less than four, or the beginning of an escape. */
  private left = ''
  private isPadded = false

  /** The bytes of the piece; null when this is no base64. */
  read(piece: string, isLast: boolean): Buffer | null {
    const all = this.left + piece
    const escape = isLast ? null : /\\(?:u[0-9a-fA-F]{0,3})?$/.exec(all.slice(-5))
    const cut = all.length - (escape?.[0].length ?? 0)
    const text = unescaped(all.slice(0, cut))
    const whole = text.length - (text.length % 4)
    this.left = text.slice(whole) + all.slice(cut)
    if (isLast && this.left !== '') return null
    return this.decode(text.slice(0, whole))
  }

  private decode(text: string): Buffer | null {
    if (text === '') return Buffer.alloc(0)
    if (this.isPadded) return null
    const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
    this.isPadded = padding > 0
    const bytes = Buffer.from(text, 'base64')
    // Node leaves out what it cannot read, and reads the other alphabet as well.
    const isComplete = bytes.length === (text.length / 4) * 3 - padding
    return isComplete && !text.includes('-') && !text.includes('_') ? bytes : null
  }
}

/** Escapes of other characters than those of base64 stay, and are refused with them. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  return text
    .replaceAll('\\/', '/')
    .replaceAll(/\\u00([0-9a-fA-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
