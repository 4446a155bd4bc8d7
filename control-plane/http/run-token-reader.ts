import { agentRef, runId, workspaceUuid } from '../db/id-columns.ts'
import { errors, jwtVerify } from 'jose'
import { z } from 'zod'
import type { World } from '../../shared/lib/world.ts'
import type { RunTokenKeys } from './run-token-keys.ts'
import { runTokenClaims, type RunTokenSubject } from './run-token.ts'

/** The claims of an agent's token, or null when it is not one of ours or its time is over. */
export type RunTokenReader = (token: string) => Promise<RunTokenSubject | null>

const payloadSchema = z.object({
  sub: agentRef,
  run: runId,
  fence: z.number().int(),
  ws: workspaceUuid,
  gen: z.number().int(),
  exp: z.number(),
})
/** Checked tokens that are remembered: about one per live run. */
const remembered = 2_000

/**
 * The content of a token cannot change, so a checked one is remembered until it expires: the signature is checked once per
 * run and not at each request. Whether it still counts is asked of the database each time, by the caller of this.
 */
export function createRunTokenReader(options: { runTokenKeys: RunTokenKeys; world: World }): RunTokenReader {
  const checked = new Map<string, { subject: RunTokenSubject; expiresAt: number }>()
  return async (token) => {
    const now = options.world.now()
    const known = checked.get(token)
    if (known !== undefined) return known.expiresAt > now ? known.subject : null
    const fresh = await verifyByAny(token, options.runTokenKeys, now)
    if (fresh === null) return null
    if (checked.size >= remembered) checked.delete(checked.keys().next().value as string)
    checked.set(token, fresh)
    return fresh.subject
  }
}

/** A token that is signed by a key which another replica made has the keys read anew. */
async function verifyByAny(token: string, keys: RunTokenKeys, now: number) {
  const tried = keys.known
  const found = await verifyByOne(token, tried, now)
  if (found !== null) return found
  await keys.refresh()
  return keys.known === tried ? null : verifyByOne(token, keys.known, now)
}

async function verifyByOne(token: string, keys: readonly Uint8Array[], now: number) {
  for (const key of keys) {
    const found = await verify(token, key, now)
    if (found !== null) return found
  }
  return null
}

async function verify(token: string, key: Uint8Array, now: number) {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [runTokenClaims.algorithm],
      issuer: runTokenClaims.issuer,
      audience: runTokenClaims.audience,
      typ: runTokenClaims.type,
      currentDate: new Date(now),
    })
    const claims = payloadSchema.parse(payload)
    const subject: RunTokenSubject = {
      runId: claims.run,
      fence: claims.fence,
      agentRef: claims.sub,
      workspaceId: claims.ws,
      tokenGeneration: claims.gen,
    }
    return { subject, expiresAt: claims.exp * 1000 }
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof z.ZodError) return null
    throw error
  }
}
