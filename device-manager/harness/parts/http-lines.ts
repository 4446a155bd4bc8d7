import { z } from 'zod'

/**
 * The lines between a dialogue and the transport of a harness that serves HTTP (`io: 'http'`), which knows no harness.
 * The dialogue writes orders: requests, whose answers come with their `id`, and text for the program's standard input.
 */
export const httpOrder = z.union([
  z.strictObject({ stdin: z.string() }),
  z.strictObject({
    id: z.number().int(),
    method: z.enum(['GET', 'POST', 'PATCH', 'DELETE']),
    /** From the server's root, with its query. */
    path: z.string().regex(/^\/(?!\/)/),
    body: z.unknown().optional(),
  }),
])
export type HttpOrder = Exclude<z.infer<typeof httpOrder>, { stdin: string }>

/** The lines that the dialogue reads. */
export const httpLine = z.union([
  /** A line of the program's standard output. */
  z.object({ stdout: z.string() }),
  /** The event stream is open; requests are sent from now on. */
  z.object({ listening: z.literal(true) }),
  z.object({ event: z.unknown() }),
  /** `status` 0: there was no answer; `body` says why. */
  z.object({ answer: z.object({ id: z.number().int(), status: z.number().int(), body: z.unknown() }) }),
  /** The event stream ended, or never began: no more events and answers come. */
  z.object({ lost: z.string() }),
])
