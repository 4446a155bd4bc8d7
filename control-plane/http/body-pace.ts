import type { IncomingMessage } from 'node:http'
import type { World } from '../../shared/lib/world.ts'

/**
 * The pace at which a body must come. Its time goes by what has arrived and not by what it may hold: a sender that says a large
 * length, or none, and then sends nothing is noticed after the grace.
 */
export interface Pace {
  /** So long nothing needs to arrive. */
  graceMs: number
  /** It has no more time than this, however steadily it comes; default: as its bytes give it. */
  mostMs?: number | undefined
}

/** After the grace, so much must have come for each second. */
export const slowestBytesPerS = 64 * 1024

/** Calls `tooSlow` once, when a body falls behind before all of it is here. Returns a function that ends the watch. */
export function watchPace(
  request: IncomingMessage,
  { graceMs, mostMs = Infinity, world }: Pace & { world: World },
  tooSlow: () => void,
): () => void {
  const startedAt = world.monotonic()
  let arrived = 0
  let stopTimer = () => {}
  const count = (chunk: Buffer) => void (arrived += chunk.length)
  const check = () => {
    const dueMs = Math.min(graceMs + (arrived / slowestBytesPerS) * 1_000, mostMs)
    const leftMs = startedAt + dueMs - world.monotonic()
    if (leftMs > 0) stopTimer = world.after(Math.ceil(leftMs), check)
    else tooSlow()
  }
  // Work after the last byte, such as unpacking, is no fault of the sender's.
  const stop = () => {
    stopTimer()
    request.off('data', count)
    request.off('end', stop)
  }
  request.on('data', count)
  request.once('end', stop)
  check()
  return stop
}
