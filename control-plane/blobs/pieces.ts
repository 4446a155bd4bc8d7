/**
 * The bytes of a source in pieces of this many bytes, the last one shorter: a call of the system for each costs less. All
 * pieces are in the same memory, so each is good until the next one is asked for.
 */
export async function* gathered(source: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  const memory = Buffer.allocUnsafeSlow(bytes)
  let length = 0
  for await (let piece of source) {
    while (piece.length > 0) {
      const taken = piece.subarray(0, bytes - length)
      memory.set(taken, length)
      length += taken.length
      piece = piece.subarray(taken.length)
      if (length < bytes) continue
      yield memory
      length = 0
    }
  }
  if (length > 0) yield memory.subarray(0, length)
}
