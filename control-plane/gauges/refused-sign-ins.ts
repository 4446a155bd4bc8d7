import type { RequestRecord } from '../http/kernel.ts'

/** A way on which somebody is asked who they are. */
type Way = 'token' | 'page' | 'device_flow' | 'webhook'

/** Codes by which a request is refused for who sent it; those of a page say no more than that it was refused. */
const codes: ReadonlySet<string> = new Set([
  'auth_missing',
  'auth_invalid',
  'auth_revoked',
  'auth.agent_jwt_revoked',
  'page_refused',
  'rate_limit_exceeded',
  'invalid_grant',
  'access_denied',
  'invalid_client',
])

/** Routes at which a limit counts guesses. */
const wayOf = (routeId: string | null): Way => {
  if (routeId === null) return 'token'
  if (routeId.startsWith('sign_in.')) return 'page'
  if (routeId === 'auth.device' || routeId === 'auth.token') return 'device_flow'
  return routeId === 'github.webhook' ? 'webhook' : 'token'
}

/**
 * Returns the labels by which the request counts as a refused sign-in; null: it is none. A device that asks again and again whether its code
 * was approved (`authorization_pending`, `slow_down`) is refused nothing.
 */
export function refusedSignIn({ routeId, status, code }: RequestRecord): { way: Way; reason: string } | null {
  if (code === null || status < 400 || status >= 500 || !codes.has(code)) return null
  const way = wayOf(routeId)
  // At other routes it is a limit of what somebody may ask who is known.
  if (code === 'rate_limit_exceeded' && way === 'token') return null
  return { way, reason: code }
}
