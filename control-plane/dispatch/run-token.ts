import { SignJWT } from 'jose'

export const runTokenClaims = { issuer: 'svc', audience: 'svc-api', type: 'svc-run+jwt', algorithm: 'HS256' } as const

export interface RunTokenSubject {
  runId: string
  fence: number
  agentId: string
  workspaceId: string
  tokenGeneration: number
}

/** The token with which a run calls the API. It dies with its run, and at the latest after 24 hours. */
export async function mintRunToken(key: Uint8Array, subject: RunTokenSubject, now: number): Promise<string> {
  return new SignJWT({
    run: subject.runId,
    fence: subject.fence,
    ws: subject.workspaceId,
    gen: subject.tokenGeneration,
  })
    .setProtectedHeader({ alg: runTokenClaims.algorithm, typ: runTokenClaims.type })
    .setSubject(subject.agentId)
    .setIssuer(runTokenClaims.issuer)
    .setAudience(runTokenClaims.audience)
    .setIssuedAt(Math.floor(now / 1000))
    .setExpirationTime(Math.floor(now / 1000) + 86_400)
    .sign(key)
}
