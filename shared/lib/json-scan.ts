/**
 * What a scan looks for, as a machine of places: a place says where in the text a value stands, as far as that matters, and 0 is a
 * place where nothing does. Places are numbers from 0 to 127.
 */
export interface JsonRule {
  /** The place of the outermost value. */
  root: number
  /** Returns the place within a value of this kind; null: no such value may stand there. */
  opens(place: number, kind: 'object' | 'array' | 'scalar'): number | null
  /** Returns the place of the value of a member of an object. Of a long key come the first characters. */
  member(place: number, key: string): number
  /** The texts that stand here are judged. */
  watches(place: number): boolean
  /** Judges what is known of a text: its first characters, and not always all of those. */
  finds(place: number, text: string): boolean
}

/** `found`: the rule found something. `broken`: this is no JSON, or no value that the rule takes. */
export type JsonVerdict = 'fine' | 'found' | 'broken'

/** The characters of a text or of a key that are kept. */
export const keptChars = 256
/** The depth to which values may be nested. */
export const mostDepth = 1_000

// What the next byte may be.
const atValue = 0
const atFirstElement = 1
const atFirstKey = 2
const atKey = 3
const atColon = 4
const afterValue = 5
const inText = 6
const inEscape = 7
const inUnicode = 8
const inCharacter = 9
const inWord = 10
const afterMinus = 11
const afterZero = 12
const inWhole = 13
const afterPoint = 14
const inFraction = 15
const afterE = 16
const afterESign = 17
const inExponent = 18

const isArrayBit = 0x80
const words: Readonly<Record<number, string>> = { 0x74: 'true', 0x66: 'false', 0x6e: 'null' }
const escaped: Readonly<Record<number, string>> = {
  0x22: '"',
  0x2f: '/',
  0x5c: '\\',
  0x62: '\b',
  0x66: '\f',
  0x6e: '\n',
  0x72: '\r',
  0x74: '\t',
}
const isBlank = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
/** A number may end here. */
const isWholeNumber = (state: number) =>
  state === afterZero || state === inWhole || state === inFraction || state === inExponent

/**
 * Reads one JSON text (RFC 8259, in UTF-8) as it comes, and tells whether a rule finds something in it. Parsers differ in what they make of a
 * text that breaks the rules, or that says a key twice, so this one takes nothing but JSON, and looks at each member. It keeps a few
 * KiB whatever comes, and looks at each byte once.
 */
export class JsonScan {
  private readonly rule: JsonRule
  private verdict: JsonVerdict = 'fine'
  private state = atValue
  /** The place of the value that comes next, or that is being read. */
  private place: number
  /** Of each open object and array: the place within it, and whether it is an array. */
  private readonly open = new Uint8Array(mostDepth)
  private depth = 0
  /** The text that is being read is a key, and is kept: one of those, or a text that is judged. */
  private isKey = false
  private isKept = false
  private text = ''
  private judgedChars = 0
  /** Of an escape or a character of several bytes: what is known of it, the digits or bytes to come, and the bounds of the next one. */
  private point = 0
  private left = 0
  private low = 0x80
  private high = 0xbf
  private word = ''

  constructor(rule: JsonRule) {
    this.rule = rule
    this.place = rule.root
  }

  /** Reads on. What was found or broken stays so. */
  push(chunk: Uint8Array): JsonVerdict {
    const { length } = chunk
    for (let i = 0; i < length && this.verdict === 'fine'; i++) {
      const byte = chunk[i]!
      if (this.state !== inText) {
        this.take(byte)
        continue
      }
      if (this.isKept) {
        this.takeOfText(byte)
        continue
      }
      // Most bytes are of texts that nobody looks at.
      let plain = byte
      while (plain >= 0x20 && plain < 0x80 && plain !== 0x22 && plain !== 0x5c && ++i < length) plain = chunk[i]!
      if (i < length) this.takeOfText(plain)
    }
    // The caller passes on what was read: the beginning of a text counts, too.
    if (this.isKept && !this.isKey && this.text.length > this.judgedChars) this.judge()
    return this.verdict
  }

  /** Returns what became of the text, which ends here. */
  end(): JsonVerdict {
    const isWhole = this.depth === 0 && (this.state === afterValue || isWholeNumber(this.state))
    if (this.verdict === 'fine' && !isWhole) this.verdict = 'broken'
    return this.verdict
  }

  private take(byte: number): void {
    switch (this.state) {
      case atValue:
      case atFirstElement:
        return this.takeOfValue(byte)
      case atFirstKey:
      case atKey:
        if (byte === 0x22) return this.begin(true)
        if (byte === 0x7d && this.state === atFirstKey) return this.close()
        return this.mustBeBlank(byte)
      case atColon:
        if (byte !== 0x3a) return this.mustBeBlank(byte)
        this.state = atValue
        return
      case afterValue:
        return this.takeAfterValue(byte)
      case inEscape:
        return this.takeOfEscape(byte)
      case inUnicode:
        return this.takeOfUnicode(byte)
      case inCharacter:
        return this.takeOfCharacter(byte)
      case inWord:
        if (byte !== this.word.charCodeAt(this.word.length - this.left)) return this.break()
        if (--this.left === 0) this.state = afterValue
        return
      default:
        return this.takeOfNumber(byte)
    }
  }

  private takeOfValue(byte: number): void {
    if (isBlank(byte)) return
    if (byte === 0x5d && this.state === atFirstElement) return this.close()
    if (byte === 0x7b) return this.nest('object')
    if (byte === 0x5b) return this.nest('array')
    if (this.place !== 0 && this.rule.opens(this.place, 'scalar') === null) return this.break()
    if (byte === 0x22) return this.begin(false)
    if (byte === 0x2d) this.state = afterMinus
    else if (byte === 0x30) this.state = afterZero
    else if (isDigit(byte)) this.state = inWhole
    else {
      this.word = words[byte] ?? ''
      if (this.word === '') return this.break()
      this.left = this.word.length - 1
      this.state = inWord
    }
  }

  private nest(kind: 'object' | 'array'): void {
    const within = this.place === 0 ? 0 : this.rule.opens(this.place, kind)
    if (within === null || this.depth === mostDepth) return this.break()
    this.open[this.depth++] = kind === 'array' ? within | isArrayBit : within
    this.place = within
    this.state = kind === 'array' ? atFirstElement : atFirstKey
  }

  private close(): void {
    this.depth--
    this.state = afterValue
  }

  private takeAfterValue(byte: number): void {
    if (isBlank(byte)) return
    if (this.depth === 0) return this.break()
    const within = this.open[this.depth - 1]!
    const isArray = within >= isArrayBit
    if (byte === (isArray ? 0x5d : 0x7d)) return this.close()
    if (byte !== 0x2c) return this.break()
    this.place = isArray ? within - isArrayBit : within
    this.state = isArray ? atValue : atKey
  }

  private begin(isKey: boolean): void {
    this.state = inText
    this.isKey = isKey
    this.isKept = isKey ? this.open[this.depth - 1] !== 0 : this.place !== 0 && this.rule.watches(this.place)
    this.text = ''
    this.judgedChars = 0
  }

  private takeOfText(byte: number): void {
    if (byte === 0x22) return this.endText()
    if (byte === 0x5c) this.state = inEscape
    else if (byte < 0x20) this.break()
    else if (byte < 0x80) this.keep(byte)
    else this.beginCharacter(byte)
  }

  private endText(): void {
    if (this.isKey) {
      const within = this.open[this.depth - 1]!
      this.place = within === 0 ? 0 : this.rule.member(within, this.text)
      this.state = atColon
    } else {
      if (this.isKept) this.judge()
      this.state = afterValue
    }
    this.isKept = false
  }

  private judge(): void {
    this.judgedChars = this.text.length
    if (this.verdict === 'fine' && this.rule.finds(this.place, this.text)) this.verdict = 'found'
  }

  private keep(point: number): void {
    if (this.isKept && this.text.length < keptChars) this.text += String.fromCodePoint(point)
  }

  private takeOfEscape(byte: number): void {
    const means = escaped[byte]
    this.state = inText
    if (means !== undefined) return this.keep(means.charCodeAt(0))
    if (byte !== 0x75) return this.break()
    this.state = inUnicode
    this.point = 0
    this.left = 4
  }

  private takeOfUnicode(byte: number): void {
    const lower = byte | 0x20
    const isLetter = lower >= 0x61 && lower <= 0x66
    if (!isDigit(byte) && !isLetter) return this.break()
    this.point = this.point * 16 + (isLetter ? lower - 0x57 : byte - 0x30)
    if (--this.left > 0) return
    this.state = inText
    // Both halves of a pair come one after the other, and make one character as they are joined.
    this.keep(this.point)
  }

  /** Takes the first byte of a character of several. Longer forms than needed and surrogates are none (RFC 3629). */
  private beginCharacter(byte: number): void {
    this.low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80
    this.high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf
    this.left = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1
    if (byte < 0xc2 || byte > 0xf4) return this.break()
    this.point = byte & (0x3f >> this.left)
    this.state = inCharacter
  }

  private takeOfCharacter(byte: number): void {
    if (byte < this.low || byte > this.high) return this.break()
    this.low = 0x80
    this.high = 0xbf
    this.point = (this.point << 6) | (byte & 0x3f)
    if (--this.left > 0) return
    this.state = inText
    this.keep(this.point)
  }

  private takeOfNumber(byte: number): void {
    const { state } = this
    const isSigned = byte === 0x2b || byte === 0x2d
    if (isDigit(byte) && state !== afterZero) {
      if (state === afterMinus) this.state = byte === 0x30 ? afterZero : inWhole
      else if (state === afterPoint) this.state = inFraction
      else if (state === afterE || state === afterESign) this.state = inExponent
    } else if (state === afterE && isSigned) this.state = afterESign
    else if (!isWholeNumber(state)) this.break()
    else if (byte === 0x2e && (state === afterZero || state === inWhole)) this.state = afterPoint
    else if ((byte | 0x20) === 0x65 && state !== inExponent) this.state = afterE
    else {
      this.state = afterValue
      this.takeAfterValue(byte)
    }
  }

  private mustBeBlank(byte: number): void {
    if (!isBlank(byte)) this.break()
  }

  private break(): void {
    this.verdict = 'broken'
  }
}
