// Vectors of a model, of length one, and their sign codes: one bit for each dimension, set where it is positive. Vectors that
// point to about the same place differ in few bits, so the nearest ones are found among codes and compared exactly after that.

/** Scales a vector to length one; one of zeros stays as it is, and is near to nothing. */
export function normalized(values: readonly number[]): Float32Array {
  const vector = Float32Array.from(values)
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  return length === 0 ? vector : vector.map((value) => value / length)
}

/** Little-endian, four bytes for each dimension. */
export function bytesOfVector(vector: Float32Array): Uint8Array {
  const bytes = new Uint8Array(vector.length * 4)
  const view = new DataView(bytes.buffer)
  vector.forEach((value, index) => view.setFloat32(index * 4, value, true))
  return bytes
}

export function vectorOfBytes(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Float32Array.from({ length: bytes.byteLength >> 2 }, (_, index) => view.getFloat32(index * 4, true))
}

/** The cosine of the angle between them, since both are of length one. */
export function similarity(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

/** The number of 32-bit words in a code. */
export const codeWords = (dimensions: number): number => Math.ceil(dimensions / 32)

export function codeOf(vector: Float32Array): Uint32Array {
  const code = new Uint32Array(codeWords(vector.length))
  vector.forEach((value, index) => {
    if (value > 0) code[index >> 5]! |= 1 << (index & 31)
  })
  return code
}

export function bytesOfCode(code: Uint32Array): Uint8Array {
  const bytes = new Uint8Array(code.length * 4)
  const view = new DataView(bytes.buffer)
  code.forEach((word, index) => view.setUint32(index * 4, word, true))
  return bytes
}

/** Copies a stored code to its place among others. */
export function readCode(bytes: Uint8Array, into: Uint32Array, at: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let i = 0; i < bytes.byteLength >> 2; i++) into[at + i] = view.getUint32(i * 4, true)
}

/**
 * The places of the codes that differ least from this one, nearest first. `codes` has them one after another. Takes some
 * milliseconds for 50,000.
 */
export function nearest(
  code: Uint32Array,
  { codes, count, most }: { codes: Uint32Array; count: number; most: number },
): number[] {
  const words = code.length
  const distances = new Uint16Array(count)
  /** The number of codes at each distance. */
  const counts = new Uint32Array(words * 32 + 1)
  for (let i = 0, at = 0; i < count; i++) {
    let distance = 0
    for (let word = 0; word < words; word++, at++) distance += bitsIn(codes[at]! ^ code[word]!)
    distances[i] = distance
    counts[distance]!++
  }
  let [furthest, within] = [0, counts[0]!]
  while (within < most && furthest < words * 32) within += counts[++furthest]!
  const found: number[] = []
  for (let i = 0; i < count; i++) if (distances[i]! <= furthest) found.push(i)
  return found.toSorted((a, b) => distances[a]! - distances[b]!).slice(0, most)
}

function bitsIn(value: number): number {
  let bits = value - ((value >>> 1) & 0x55555555)
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333)
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}
