import { linkLimits } from './limits.ts'

/** The reason in the `gap` event that takes the place of an event whose line is too long. */
export const overlongReason = 'event_too_long'

/**
 * Returns the line of the event, or that of a `gap` in its place which says how many bytes are lost, where it is longer than a link
 * takes. The run host writes no longer ones; a server does the same with those that come all the same. It depends on nothing but the
 * line and its number, so that a line which is sent again is the same again.
 */
export function lineWithinBound(line: Uint8Array, seq: number): Uint8Array {
  if (line.length <= linkLimits.lineBytes) return line
  const start = new TextDecoder('latin1').decode(line.subarray(0, 200))
  const at = Number(/^\{"seq":\d{1,16},"at":(\d{1,15}),/.exec(start)?.[1] ?? 0)
  const data = { bytes: line.length, reason: overlongReason }
  return new TextEncoder().encode(JSON.stringify({ seq, at, kind: 'gap', data }))
}
