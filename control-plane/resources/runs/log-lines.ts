/** Cuts of the opaque body of a frame: newline-separated events, cut without parsing them. */

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
