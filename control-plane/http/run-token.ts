import type { AgentRef, RunId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { createHmac } from 'node:crypto'

export const runTokenClaims = { issuer: 'svc', audience: 'svc-api', type: 'svc-run+jwt', algorithm: 'HS256' } as const

/** The time after which a run's token ends, whether the run has ended or not. */
export const runTokenMs = 24 * 3_600_000

export interface RunTokenSubject {
  runId: RunId
  fence: number
  agentRef: AgentRef
  workspaceId: WorkspaceUuid
  tokenGeneration: number
}

/**
 * The token with which a run calls the API. It dies with its run, and at the latest after 24 hours. Signed here and not by
 * a library, which goes through the thread pool for it: the run waits.
 */
export function mintRunToken(key: Uint8Array, subject: RunTokenSubject, now: number): string {
  const issuedAt = Math.floor(now / 1000)
  const payload = {
    run: subject.runId,
    fence: subject.fence,
    ws: subject.workspaceId,
    gen: subject.tokenGeneration,
    sub: subject.agentRef,
    iss: runTokenClaims.issuer,
    aud: runTokenClaims.audience,
    iat: issuedAt,
    exp: issuedAt + runTokenMs / 1000,
  }
  const signed = `${encode({ alg: runTokenClaims.algorithm, typ: runTokenClaims.type })}.${encode(payload)}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
