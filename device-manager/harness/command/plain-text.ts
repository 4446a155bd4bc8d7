export interface PlainTextReader {
  push(bytes: Uint8Array): void
  /** The text, and how many bytes of it are not in it because only its end is kept. */
  take(): { text: string; droppedBytes: number }
}

type State = 'text' | 'escape' | 'csi' | 'string'

const [escape, cancel, substitute, bell, stringTerminator] = ['\u001B', '\u0018', '\u001A', '\u0007', '\u009C']
/** What an ESC with this character begins, which also stands as one character of the range C1. */
const introduces: Readonly<Record<string, State>> = {
  '[': 'csi',
  '\u009B': 'csi',
  ...Object.fromEntries(Array.from('P]X^_\u0090\u009D\u0098\u009E\u009F', (char) => [char, 'string' as const])),
}
const lineEnds = new Set(['\n', '\v', '\f', '\u0085'])
const longestParameters = 16
/** Lines, each to its end, without any control characters but tabs: most of what is printed. */
const plainLines = /(?:[\P{Cc}\t]*\r?\n)+/uy

/**
 * Reads what a terminal is told as a person would read it in a file: no control characters but tabs and line ends. Sequences that
 * colour and move are left out, and those that carry something (DCS, OSC, APC, PM, SOS: images, titles) with all that they
 * carry. A line that is written over behind a lone CR has its last state, and a backspace takes back one character.
 *
 *     text --ESC--> escape --[--> csi --final--> text
 *                          --P ] X ^ _--> string --ST, BEL--> text
 *
 * As terminals do (ECMA-48), an ESC begins anew from everywhere, and CAN and SUB end everything. It is read as it comes, so that
 * what is left out takes no room in the last `maxBytes`, which are kept.
 */
export function plainTextReader(maxBytes: number): PlainTextReader {
  const decoder = new TextDecoder()
  const tail = tailBuffer(maxBytes)
  const line = growingLine(maxBytes)
  let state: State = 'text'
  let parameters = ''
  /** The next text is written over the line. */
  let isReturned = false

  const clearLine = () => {
    line.clear()
    isReturned = false
  }
  const write = (text: string) => {
    if (isReturned) clearLine()
    line.write(text)
  }
  const begin = (next: State) => {
    state = next
    parameters = ''
  }

  function control(char: string): void {
    if (lineEnds.has(char)) {
      const { text, droppedBytes } = line.take()
      tail.push(Buffer.from(`${text}\n`), droppedBytes)
      clearLine()
    } else if (char === '\r') isReturned = true
    else if (char === '\t') write(char)
    else if (char === '\b' && !isReturned) line.eraseLast()
  }

  function endCsi(final: string): void {
    // Erases the whole line, or from where the cursor is, which behind a CR is its beginning.
    const isErased = final === 'K' && (parameters === '2' || (isReturned && (parameters === '' || parameters === '0')))
    if (isErased) clearLine()
    begin('text')
  }

  function take(char: string): void {
    if (char === escape) return begin('escape')
    if (char === cancel || char === substitute) return begin('text')
    if (state === 'string') {
      if (char === bell || char === stringTerminator) begin('text')
      return
    }
    const isControl = /\p{Cc}/u.test(char)
    const next = isControl || state === 'escape' ? introduces[char] : undefined
    if (next !== undefined) return begin(next)
    if (isControl) return control(char)
    // Characters between blank and slash come before the one that ends it.
    if (state === 'escape' && !/[ -/]/.test(char)) return begin('text')
    if (state !== 'csi') return
    if (/[@-~]/.test(char)) return endCsi(char)
    if (parameters.length < longestParameters) parameters += char
  }

  /** Takes whole lines at once where nothing is written over them; returns where they end. */
  function takeLines(text: string, from: number): number {
    plainLines.lastIndex = from
    const lines = plainLines.exec(text)?.[0]
    if (lines === undefined) return from
    tail.push(Buffer.from(lines.replaceAll('\r\n', '\n')), 0)
    return from + lines.length
  }

  function read(text: string): void {
    for (let at = 0; at < text.length;) {
      if (state === 'text' && line.isEmpty && !isReturned) at = takeLines(text, at)
      if (state === 'text' || state === 'string') {
        const end = nextControl(text, at)
        if (state === 'text' && end > at) write(text.slice(at, end))
        at = end
      }
      if (at < text.length) take(text[at++]!)
    }
  }

  return {
    push: (bytes) => read(decoder.decode(bytes, { stream: true })),
    take() {
      read(decoder.decode())
      const last = line.take()
      tail.push(Buffer.from(last.text), last.droppedBytes)
      clearLine()
      const { bytes, droppedBytes } = tail.take()
      return { text: Buffer.from(bytes).toString('utf8'), droppedBytes }
    },
  }
}

function nextControl(text: string, from: number): number {
  const controls = /\p{Cc}/gu
  controls.lastIndex = from
  return controls.exec(text)?.index ?? text.length
}

/** A line in the pieces in which it came: joined at each change, a long one would cost its whole length each time. */
function growingLine(maxBytes: number) {
  let pieces: string[] = []
  let chars = 0
  let droppedBytes = 0
  const clear = () => {
    pieces = []
    chars = 0
    droppedBytes = 0
  }
  return {
    clear,
    get isEmpty() {
      return chars === 0 && droppedBytes === 0
    },
    write(text: string) {
      pieces.push(text)
      chars += text.length
      if (chars <= 4 * maxBytes) return
      // Nothing before the last `maxBytes` is kept any more.
      const whole = pieces.join('')
      const kept = whole.slice(-2 * maxBytes)
      droppedBytes += Buffer.byteLength(whole) - Buffer.byteLength(kept)
      pieces = [kept]
      chars = kept.length
    },
    eraseLast() {
      const last = pieces.pop()
      if (last === undefined) return
      const isPair = (last.codePointAt(last.length - 2) ?? 0) > 0xffff
      const rest = last.slice(0, isPair ? -2 : -1)
      chars -= last.length - rest.length
      if (rest !== '') pieces.push(rest)
    },
    take: () => ({ text: pieces.join(''), droppedBytes }),
  }
}

/** Keeps the last `maxBytes` bytes pushed, from the start of a character on. */
function tailBuffer(maxBytes: number) {
  let parts: Uint8Array[] = []
  let heldBytes = 0
  let totalBytes = 0
  return {
    /** `droppedBefore`: bytes that came before these, which are lost already. */
    push(chunk: Uint8Array, droppedBefore: number) {
      totalBytes += droppedBefore + chunk.length
      const part = new Uint8Array(chunk.subarray(Math.max(0, chunk.length - maxBytes)))
      parts.push(part)
      heldBytes += part.length
      while (parts.length > 1 && heldBytes - parts[0]!.length >= maxBytes) heldBytes -= parts.shift()!.length
      // Many small lines: joined now and then, so that the list stays short.
      if (parts.length > 1024) parts = [Buffer.concat(parts)]
    },
    take(): { bytes: Uint8Array; droppedBytes: number } {
      const all = Buffer.concat(parts)
      let start = Math.max(0, all.length - maxBytes)
      if (totalBytes > maxBytes) while (start < all.length && (all[start]! & 0b1100_0000) === 0b1000_0000) start++
      return { bytes: all.subarray(start), droppedBytes: totalBytes - (all.length - start) }
    },
  }
}
