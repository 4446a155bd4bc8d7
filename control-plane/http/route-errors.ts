import { errorCodes, plainErrors, type ErrorCode } from '../../shared/api/error-codes.ts'
import type { ErrorEntry } from '../../shared/api/error-entry.ts'
import { declaredCodes, type AnyRoute } from '../../shared/api/route.ts'

/** The errors with which a route may refuse, by HTTP status; the OpenAPI document and the generated tests read them. */
export interface RouteErrors {
  codes: ErrorCode[]
  /** Messages of plain `{ "error": ... }` answers with this status. */
  plain: string[]
}

const ofAll: readonly ErrorCode[] = [
  'unsupported_api_version',
  'database_unavailable',
  'transient_conflict',
  'query_timeout',
  'internal_error',
]
const ofCallers: readonly ErrorCode[] = [
  'auth_missing',
  'auth_invalid',
  'auth_revoked',
  'auth.agent_jwt_revoked',
  'not_permitted',
]
const ofLimits: readonly ErrorCode[] = ['rate_limit_exceeded', 'rate_limiter_unavailable']
const ofKeys: readonly ErrorCode[] = [
  'idempotency_invalid_key',
  'idempotency_key_reused',
  'idempotency_request_in_progress',
  'idempotency_effect_unknown',
]

export function errorsOf(route: AnyRoute): Map<number, RouteErrors> {
  const byStatus = new Map<number, RouteErrors>()
  const at = (status: number) => {
    const entry = byStatus.get(status) ?? { codes: [], plain: [] }
    byStatus.set(status, entry)
    return entry
  }
  const own = new Set<ErrorCode>(route.errors)
  for (const code of sharedCodesOf(route)) at(errorCodes[code].status[0]).codes.push(code)
  for (const code of [...declaredCodes(route)] as ErrorCode[]) {
    const { status }: ErrorEntry = errorCodes[code]
    // A code with several statuses may come with each of them, when it is the route's own.
    for (const one of own.has(code) ? status : status.slice(0, 1)) {
      const { codes } = at(one)
      if (!codes.includes(code)) codes.push(code)
    }
  }
  for (const id of route.plainErrors) at(plainErrors[id].status).plain.push(plainErrors[id].message)
  return new Map([...byStatus].sort(([a], [b]) => a - b))
}

function sharedCodesOf(route: AnyRoute): ErrorCode[] {
  const isWrite = route.method !== 'GET'
  const codes: ErrorCode[] = [...ofAll]
  const { callers } = route
  if (callers !== 'none') codes.push(...ofCallers)
  // A write with the cookie of a session is refused when it comes from another site.
  if (callers !== 'none' && (isWrite || callers.person === 'admin' || callers.person === 'owner'))
    codes.push('http_exception')
  if (route.rate !== 'none') codes.push(...ofLimits)
  if (isWrite) codes.push('payload_too_large', 'duplicate_resource')
  if (isWrite && route.idempotency !== 'none') codes.push(...ofKeys)
  const query = Object.keys(route.query.shape)
  if (isWrite || query.length > 0 || route.unknownQuery === 'refused') codes.push('validation_error')
  if (query.includes('ids')) codes.push('too_many_ids', 'ids_exclusive')
  if (['after', 'cursor', 'startingAfter'].some((name) => query.includes(name))) codes.push('invalid_cursor')
  if (Object.keys(route.params.shape).length > 0) codes.push(route.malformedParam, 'resource_not_found')
  return [...new Set(codes)]
}
