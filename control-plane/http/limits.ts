import type { Knex } from 'knex'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible'
import { fail } from '../../shared/api/errors.ts'
import type { RateClass } from '../../shared/api/route.ts'
import type { World } from '../../shared/lib/world.ts'

/**
 * Rate limits (document 1, "Codes from any route"; the header fields are the IETF's RateLimit draft).
 *
 * With SQLite one process serves all requests, so counting in memory is exact. With PostgreSQL the count is in the
 * database, and a process takes points from it in portions (`chunk`): one write per portion, none for the requests in
 * between. The count may then be off by one portion per process, always to the caller's disadvantage.
 * A limiter that fails refuses (503); it never lets through what it could not count.
 */
export interface Limiter {
  /** Takes one point. Fails with `rate_limit_exceeded` or `rate_limiter_unavailable`. Null: this class has no limit. */
  take(rateClass: RateClass, key: string): Promise<LimitState | null>
}

export interface LimitState {
  policy: string
  remaining: number
  resetS: number
}

export interface RateRule {
  points: number
  windowS: number
}
/** null: no limit. */
export type RateRules = Readonly<Record<Exclude<RateClass, 'none'>, RateRule | null>>

/** Only the written limit (webhook) is tight; the rest keeps a runaway client from taking the whole server. */
export const defaultRateRules: RateRules = {
  general: { points: 600_000, windowS: 60 },
  sign_in: { points: 30, windowS: 60 },
  webhook: { points: 60, windowS: 3600 },
}

/** Points taken from the database at once: 1/200 of the rule, so that tight rules are counted one by one. */
const chunksPerWindow = 200
const tableName = 'rate_limits'

export interface LimiterOptions {
  rules: RateRules
  world: World
  /** Set on PostgreSQL: the count is shared with other replicas. */
  shared: Knex | null
}

/** With `shared`, makes its table when it is not there. */
export async function createLimiter(options: LimiterOptions): Promise<Limiter> {
  const windows = new Map<RateClass, Window>()
  for (const [name, rule] of Object.entries(options.rules) as [Exclude<RateClass, 'none'>, RateRule | null][]) {
    if (rule !== null) windows.set(name, await openWindow(name, { rule, ...options }))
  }
  return {
    async take(rateClass, key) {
      const window = windows.get(rateClass)
      return window === undefined ? null : takeFrom(window, key)
    },
  }
}

interface Window {
  name: RateClass
  rule: RateRule
  counter: RateLimiterAbstract
  /** Points taken at once; those not used yet are kept by key. */
  chunk: number
  held: Map<string, { points: number; until: number; remaining: number }>
  world: World
}

async function openWindow(
  name: RateClass,
  { rule, shared, world }: { rule: RateRule; shared: Knex | null; world: World },
): Promise<Window> {
  const common = { points: rule.points, duration: rule.windowS, keyPrefix: name }
  const counter = shared === null ? new RateLimiterMemory(common) : await openShared(shared, common)
  const chunk = shared === null ? 1 : Math.max(1, Math.floor(rule.points / chunksPerWindow))
  return { name, rule, counter, chunk, held: new Map(), world }
}

function openShared(
  storeClient: Knex,
  common: { points: number; duration: number; keyPrefix: string },
): Promise<RateLimiterPostgres> {
  return new Promise((resolve, reject) => {
    const counter = new RateLimiterPostgres(
      { ...common, storeClient, storeType: 'knex', tableName, clearExpiredByTimeout: true },
      (error) => (error === undefined ? resolve(counter) : reject(error)),
    )
  })
}

async function takeFrom(window: Window, key: string): Promise<LimitState> {
  const now = window.world.now()
  const held = window.held.get(key)
  if (held !== undefined && held.points > 0 && held.until > now) {
    held.points--
    return stateOf(window, held.remaining + held.points, held.until - now)
  }
  let taken: RateLimiterRes
  try {
    taken = await window.counter.consume(key, window.chunk)
  } catch (error) {
    if (error instanceof RateLimiterRes) return refuse(window, error)
    return fail('rate_limiter_unavailable', { cause: error })
  }
  if (window.chunk > 1) keep(window, key, taken)
  return stateOf(window, taken.remainingPoints + window.chunk - 1, taken.msBeforeNext)
}

function keep(window: Window, key: string, taken: RateLimiterRes): void {
  const now = window.world.now()
  if (window.held.size >= 10_000) for (const [old, { until }] of window.held) if (until <= now) window.held.delete(old)
  window.held.set(key, {
    points: window.chunk - 1,
    until: now + taken.msBeforeNext,
    remaining: taken.remainingPoints,
  })
}

function stateOf(window: Window, remaining: number, resetMs: number): LimitState {
  return { policy: policyOf(window), remaining, resetS: Math.max(1, Math.ceil(resetMs / 1000)) }
}

const policyOf = ({ name, rule }: Window) => `"${name}";q=${rule.points};w=${rule.windowS}`

function refuse(window: Window, result: RateLimiterRes): never {
  const state = stateOf(window, 0, result.msBeforeNext)
  return fail('rate_limit_exceeded', {
    details: { retryAfter: state.resetS },
    headers: { 'Retry-After': String(state.resetS), ...limitHeaders(state) },
  })
}

export function limitHeaders(state: LimitState): Record<string, string> {
  const name = state.policy.slice(0, state.policy.indexOf(';'))
  return { 'RateLimit-Policy': state.policy, RateLimit: `${name};r=${state.remaining};t=${state.resetS}` }
}
