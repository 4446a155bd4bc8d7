import { Base64Reader } from './base64-reader.ts'

/**
 * Takes the bytes of one text in base64 out of a JSON object while it comes: the value of a key of the outermost object,
 * wherever that stands. What is left is JSON with a 0 in its place.
 *
 *     rest --the key, a colon, a quote--> content --a quote--> rest
 *
 * It judges nothing else: what is left is parsed as any body is, and a body that is no JSON fails there.
 */
export type Split = { kind: 'begin' } | { kind: 'bytes'; bytes: Uint8Array } | { kind: 'end' }

/** `base64`: the text is none. `twice`: the key stands there twice. `rest`: what is left is too large. */
export class SplitError extends Error {
  readonly flaw: 'base64' | 'twice' | 'rest'

  constructor(flaw: SplitError['flaw']) {
    super(`the body cannot be split: ${flaw}`)
    this.flaw = flaw
  }
}

/** A longer key is another one, also with all of its characters escaped. */
const longestKey = 200

export class ContentSplitter {
  private readonly key: string
  private readonly restLimit: number
  private readonly rest: Buffer[] = []
  private restLength = 0
  private reader: Base64Reader | null = null
  private depth = 0
  private isText = false
  private isEscaped = false
  /** True at the place of a key of the outermost object. */
  private expectsKey = false
  /** The key that is being read; null: another text. */
  private keyBytes: number[] | null = null
  /** True after the key in question: its value begins. */
  private expectsContent = false
  private lastKeyMatches = false
  private hasKey = false

  constructor(key: string, restLimit: number) {
    this.key = key
    this.restLimit = restLimit
  }

  *push(chunk: Buffer): Generator<Split> {
    let at = 0
    while (at < chunk.length) {
      if (this.reader === null) {
        const begin = this.findContent(chunk, at)
        this.keep(chunk.subarray(at, begin ?? chunk.length))
        if (begin === null) return
        this.keep(placeholder)
        this.reader = new Base64Reader()
        yield { kind: 'begin' }
        at = begin + 1
        continue
      }
      const quoteAt = chunk.indexOf(quote, at)
      const end = quoteAt === -1 ? chunk.length : quoteAt
      const bytes = this.reader.read(chunk.toString('latin1', at, end), quoteAt !== -1)
      if (bytes === null) throw new SplitError('base64')
      if (bytes.length > 0) yield { kind: 'bytes', bytes }
      if (quoteAt !== -1) {
        this.reader = null
        yield { kind: 'end' }
      }
      at = end + 1
    }
  }

  /** Returns the body without the content, once everything was pushed. Content without an end is no text. */
  end(): Buffer {
    if (this.reader !== null) throw new SplitError('base64')
    return Buffer.concat(this.rest, this.restLength)
  }

  private keep(part: Buffer): void {
    this.restLength += part.length
    if (this.restLength > this.restLimit) throw new SplitError('rest')
    if (part.length > 0) this.rest.push(part)
  }

  /** The place of the quote that opens the content; null: not in this chunk. */
  private findContent(chunk: Buffer, from: number): number | null {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (this.isText) this.readText(byte)
      else if (byte === quote && this.expectsContent) {
        this.expectsContent = false
        return at
      } else this.readStructure(byte)
    }
    return null
  }

  private readText(byte: number): void {
    const isEnd = byte === quote && !this.isEscaped
    this.isEscaped = byte === backslash && !this.isEscaped
    if (!isEnd) {
      if (this.keyBytes !== null && this.keyBytes.length <= longestKey) this.keyBytes.push(byte)
      return
    }
    this.isText = false
    if (this.keyBytes !== null) this.lastKeyMatches = textOf(this.keyBytes) === this.key
    this.keyBytes = null
  }

  private readStructure(byte: number): void {
    if (byte === space || byte === tab || byte === lineFeed || byte === carriageReturn) return
    this.expectsContent = byte === colon && this.depth === 1 && this.lastKeyMatches
    this.lastKeyMatches = false
    // The key is refused a second time whatever its values are: a reader of the whole would take the last one.
    if (this.expectsContent && this.hasKey) throw new SplitError('twice')
    this.hasKey ||= this.expectsContent
    const wasKey = this.expectsKey
    this.expectsKey = false
    if (byte === quote) {
      this.isText = true
      this.keyBytes = wasKey ? [] : null
    } else if (byte === openBrace || byte === openBracket) {
      this.depth++
      this.expectsKey = byte === openBrace && this.depth === 1
    } else if (byte === closeBrace || byte === closeBracket) this.depth--
    else if (byte === comma) this.expectsKey = this.depth === 1
  }
}

const [quote, backslash, colon, comma] = [0x22, 0x5c, 0x3a, 0x2c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]
const [space, tab, lineFeed, carriageReturn] = [0x20, 0x09, 0x0a, 0x0d]
/** The blank keeps the text that follows from being part of the number. */
const placeholder = Buffer.from('0 ')

/** The text of a key, with its escapes read; null when it is none. */
function textOf(bytes: readonly number[]): string | null {
  try {
    return JSON.parse(`"${Buffer.from(bytes).toString('utf8')}"`) as string
  } catch {
    return null
  }
}
