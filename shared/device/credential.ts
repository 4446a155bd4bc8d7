import { z } from 'zod'

/** What a device is told when a run asks for what a connection signs in with. It is for memory alone, on both ends. */
export const credentialAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    /** Of requests to the service. */
    headers: z.record(z.string().max(200), z.string().max(16_384)),
    /** What is secret in the headers, so that it can be taken out of whatever else holds it. */
    values: z.array(z.string().max(16_384)).max(50),
    /** Where it is for variables: their values, each of which is secret. */
    env: z.record(z.string().max(100), z.string().max(16_384)).optional(),
    /** Which credential it is: whoever finds it refused asks again with it. */
    version: z.number().int(),
    /** Times of the device's own clock are not compared with the server's. null: it does not end. */
    expiresInMs: z.number().int().nonnegative().nullable(),
  }),
  /** A sentence for people and for the model. */
  z.object({ ok: z.literal(false), message: z.string().max(1_000) }),
])
export type CredentialAnswer = z.infer<typeof credentialAnswer>
