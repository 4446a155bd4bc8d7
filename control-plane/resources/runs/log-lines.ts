import { lineWithinBound } from '../../../shared/device/event-line.ts'
import { linkLimits } from '../../../shared/device/limits.ts'

// Cuts of the opaque body of a frame: newline-separated events, cut without parsing them.

const newline = 10

/** The part of `body` after its first `count` lines. */
export function afterLines(body: Uint8Array, count: number): Uint8Array {
  let at = 0
  for (let skipped = 0; skipped < count; skipped++) {
    const end = body.indexOf(newline, at)
    if (end < 0) return body.subarray(body.length)
    at = end + 1
  }
  return body.subarray(at)
}

/** The first `count` lines of `body`. */
export function firstLines(body: Uint8Array, count: number): Uint8Array {
  return body.subarray(0, body.length - afterLines(body, count).length)
}

/**
 * The body with a declared gap in the place of each line that is too long, and without what follows the last number; itself where no
 * line is too long. A body may hold millions of empty lines, so none is cut out that need not be.
 */
export function withinBounds(body: Buffer, { firstSeq, lastSeq }: { firstSeq: number; lastSeq: number }): Buffer {
  if (!hasOverlongLine(body)) return body
  const pieces: Uint8Array[] = []
  let kept = 0
  let at = 0
  for (let seq = firstSeq; seq <= lastSeq && at < body.length; seq++) {
    const end = body.indexOf(newline, at)
    const stop = end < 0 ? body.length : end
    const line = body.subarray(at, stop)
    const bounded = lineWithinBound(line, seq)
    if (bounded !== line) {
      pieces.push(body.subarray(kept, at), bounded)
      kept = stop
    }
    at = Math.min(stop + 1, body.length)
  }
  return Buffer.concat([...pieces, body.subarray(kept, at)])
}

function hasOverlongLine(body: Buffer): boolean {
  for (let at = 0; body.length - at > linkLimits.lineBytes;) {
    // The last line end that is near enough: lines before it are shorter still.
    const end = body.subarray(at, at + linkLimits.lineBytes + 1).lastIndexOf(newline)
    if (end < 0) return true
    at += end + 1
  }
  return false
}

/** Each line without its newline. */
export function* linesOf(body: Uint8Array): Generator<Uint8Array> {
  let at = 0
  while (at < body.length) {
    const end = body.indexOf(newline, at)
    if (end < 0) return void (yield body.subarray(at))
    yield body.subarray(at, end)
    at = end + 1
  }
}
