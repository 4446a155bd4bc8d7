import { z } from 'zod'

// How long the steps of a run took: to its first instruction, and from its end to the row that says so.

/** A device may say any number. */
export const mostSpanMs = Number.MAX_SAFE_INTEGER

/** Milliseconds. Times count from the offer to the device, by a clock that nobody sets. */
const ms = z.number().nonnegative().max(mostSpanMs).optional()

/** The steps that the device sees, and what they cost it. One that the run did not come to, or that is not known, is left out. */
export const deviceSpans = z.object({
  /** The wall around the run stood ready. */
  wall: ms,
  /** The state of the folder was recorded, with which the change-set compares. */
  base: ms,
  /** The harness was launched. */
  launched: ms,
  /** Its first output came. */
  firstOutput: ms,
  /** The harness was gone, and all that it had printed was read. */
  ended: ms,
  /** The change-set was made, and the report of the end written. */
  reported: ms,
  /** Processor time of the run host until then (ms), without the harness. */
  hostCpu: ms,
})
export type DeviceSpans = z.infer<typeof deviceSpans>

/** What is kept with the row of a run that its device ended. */
export const runSpans = deviceSpans.extend({
  /** The control plane wrote the ending down (ms UTC, by its own clock). */
  storedAt: z.number(),
})
export type RunSpans = z.infer<typeof runSpans>
