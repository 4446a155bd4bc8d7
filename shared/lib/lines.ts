const newline = 0x0a

export interface LineReader {
  /** Returns the pieces that this chunk completes, in order. */
  push(chunk: Uint8Array): Piece[]
  /** Returns the rest without a line end; null when there is none. */
  end(): Uint8Array | null
}
/** A whole line with its line end, or a part of one that is longer than the limit. */
export interface Piece {
  kind: 'line' | 'part'
  bytes: Uint8Array
}

/**
 * Cuts a stream of bytes into lines. A line beyond the limit comes out in parts as it is read, including its line end;
 * the next line is whole again. So memory is bounded and nothing is lost.
 */
export function lineReader(maxLineBytes: number): LineReader {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let isOverlong = false

  const take = (last: Uint8Array): Uint8Array => {
    const bytes = held.length === 0 ? last : joined([...held, last], heldBytes + last.length)
    held = []
    heldBytes = 0
    return bytes
  }
  return {
    push(chunk) {
      const pieces: Piece[] = []
      let start = 0
      for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, start)) {
        const bytes = take(chunk.subarray(start, at + 1))
        pieces.push({ kind: isOverlong || bytes.length > maxLineBytes ? 'part' : 'line', bytes })
        isOverlong = false
        start = at + 1
      }
      const rest = chunk.subarray(start)
      if (heldBytes + rest.length > maxLineBytes) {
        pieces.push({ kind: 'part', bytes: take(rest) })
        isOverlong = true
      } else if (rest.length > 0) {
        // The rest is copied, since the reader may use the chunk's memory again.
        held.push(Uint8Array.from(rest))
        heldBytes += rest.length
      }
      return pieces
    },
    end() {
      return heldBytes === 0 ? null : take(new Uint8Array())
    },
  }
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** A message on the sockets of this machine: one JSON value per line. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`

/**
 * Reads what `jsonLine` writes: returns the text of each line that a chunk completes, for the caller to parse. After a
 * line beyond the limit `isTooLong` is set; nothing after it can be read, so the caller closes the connection.
 */
export function jsonLineReader(maxLineBytes: number): (chunk: Uint8Array) => { lines: string[]; isTooLong: boolean } {
  const reader = lineReader(maxLineBytes)
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let isTooLong = false
  return (chunk) => {
    const lines: string[] = []
    for (const { kind, bytes } of isTooLong ? [] : reader.push(chunk)) {
      isTooLong ||= kind === 'part'
      if (!isTooLong) lines.push(decoder.decode(bytes.subarray(0, -1)))
    }
    return { lines, isTooLong }
  }
}

/** The value of a JSON text, or undefined when it is not JSON. */
export function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
