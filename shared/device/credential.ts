import { z } from 'zod'

/** The answer to a device that asks for what a connection signs in with, for a run. It is for memory alone, on both ends. */
export const credentialAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    /** Headers of requests to the service. */
    headers: z.record(z.string().max(200), z.string().max(16_384)),
    /** Parts of the headers that are secret, so that they can be taken out of whatever else holds them. */
    values: z.array(z.string().max(16_384)).max(50),
    /** Values of variables, each of which is secret, where the device asked for these. */
    env: z.record(z.string().max(100), z.string().max(16_384)).optional(),
    /** The version of the credential: a device that finds it refused asks again with it. */
    version: z.number().int(),
    /**
     * The time until the credential ends, since times of the device's own clock are not compared with the server's. null: it does not end.
     */
    expiresInMs: z.number().int().nonnegative().nullable(),
  }),
  /** A sentence for people and for the model. */
  z.object({ ok: z.literal(false), message: z.string().max(1_000) }),
])
export type CredentialAnswer = z.infer<typeof credentialAnswer>
