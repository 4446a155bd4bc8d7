/** The bytes of a source in pieces of this many bytes, the last one shorter: a call of the system for each costs less. */
export async function* gathered(source: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = []
  let length = 0
  for await (let piece of source) {
    while (length + piece.length >= bytes) {
      const missing = bytes - length
      yield joined([...parts, piece.subarray(0, missing)])
      piece = piece.subarray(missing)
      parts = []
      length = 0
    }
    if (piece.length === 0) continue
    parts.push(piece)
    length += piece.length
  }
  if (length > 0) yield joined(parts)
}

const joined = (parts: readonly Uint8Array[]): Uint8Array => (parts.length === 1 ? parts[0]! : Buffer.concat(parts))
