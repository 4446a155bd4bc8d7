import type { Knex } from 'knex'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible'
import { fail } from '../../shared/api/errors.ts'
import type { RateClass } from '../../shared/api/route.ts'
import type { World } from '../../shared/lib/world.ts'

/**
 * Rate limits. The header fields are those of the IETF's RateLimit draft.
 *
 * With SQLite one process serves all requests, so counting in memory is exact. With PostgreSQL the count is in the
 * database. Either way a process takes points from the count in portions (`chunk`): one write per portion, none for the
 * requests in between. With several processes the count may be off by one portion for each, always to the caller's
 * disadvantage; a rule is a whole number of portions, so that one process gives out all of them.
 * A limiter that fails refuses (503); it never lets through what it could not count.
 */
export interface Limiter {
  /** Takes one point. Fails with `rate_limit_exceeded` or `rate_limiter_unavailable`. Null: this class has no limit. */
  take(rateClass: RateClass, key: string): Promise<LimitState | null> | LimitState | null
  /** Gives a point back that was taken, in a class whose points are counted one by one. It never fails: the point stays taken then. */
  giveBack(rateClass: RateClass, key: string): Promise<void>
}

export interface LimitState {
  name: RateClass
  policy: string
  remaining: number
  resetS: number
}

export interface RateRule {
  points: number
  windowS: number
}
/** The rule of each class; null: no limit. */
export type RateRules = Readonly<Record<Exclude<RateClass, 'none'>, RateRule | null>>

/** The written limits (webhook, share preview) are tight; the others only keep a runaway client from taking the whole server. */
export const defaultRateRules: RateRules = {
  general: { points: 600_000, windowS: 60 },
  /** Failures (sign-in/limit.ts). */
  sign_in: { points: 30, windowS: 60 },
  sign_in_any: { points: 600, windowS: 60 },
  webhook: { points: 60, windowS: 3600 },
  share_preview: { points: 60, windowS: 60 },
  connection_callback: { points: 10, windowS: 60 },
  /** Mail that people send themselves. */
  mail: { points: 10, windowS: 60 },
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

/** Creates a limiter. With `shared`, it makes its table when that is not there. */
export async function createLimiter(options: LimiterOptions): Promise<Limiter> {
  const windows = new Map<RateClass, Window>()
  for (const [name, rule] of Object.entries(options.rules) as [Exclude<RateClass, 'none'>, RateRule | null][]) {
    if (rule !== null) windows.set(name, await openWindow(name, { rule, ...options }))
  }
  return {
    take(rateClass, key) {
      const window = windows.get(rateClass)
      return window === undefined ? null : (takeHeld(window, key) ?? takeFrom(window, key))
    },
    async giveBack(rateClass, key) {
      await windows
        .get(rateClass)
        ?.counter.reward(key, 1)
        .catch(() => undefined)
    },
  }
}

interface Window {
  name: RateClass
  rule: RateRule
  policy: string
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
  const policy = `"${name}";q=${rule.points};w=${rule.windowS}`
  return { name, rule, policy, counter, chunk: chunkOf(rule.points), held: new Map(), world }
}

/** The largest portion of which there are at least 200, and no rest. */
function chunkOf(points: number): number {
  for (let count = chunksPerWindow; count <= 2 * chunksPerWindow; count++)
    if (points % count === 0) return points / count
  return 1
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

function takeHeld(window: Window, key: string): LimitState | null {
  const held = window.held.get(key)
  if (held === undefined || held.points === 0) return null
  const leftMs = held.until - window.world.now()
  if (leftMs <= 0) return null
  held.points--
  return stateOf(window, held.remaining + held.points, leftMs)
}

async function takeFrom(window: Window, key: string): Promise<LimitState> {
  let taken: RateLimiterRes
  try {
    taken = await window.counter.consume(key, window.chunk)
  } catch (error) {
    // A request that came at the same time may have taken a portion.
    if (error instanceof RateLimiterRes) return takeHeld(window, key) ?? refuse(window, error)
    return fail('rate_limiter_unavailable', { cause: error })
  }
  if (window.chunk > 1) keep(window, key, taken)
  return stateOf(window, taken.remainingPoints + window.chunk - 1, taken.msBeforeNext)
}

function keep(window: Window, key: string, taken: RateLimiterRes): void {
  const now = window.world.now()
  if (window.held.size >= 10_000) for (const [old, { until }] of window.held) if (until <= now) window.held.delete(old)
  // Requests that came at once have each taken a portion.
  const before = window.held.get(key)
  const left = before !== undefined && before.until > now ? before.points : 0
  window.held.set(key, {
    points: left + window.chunk - 1,
    until: now + taken.msBeforeNext,
    remaining: taken.remainingPoints,
  })
}

function stateOf(window: Window, remaining: number, resetMs: number): LimitState {
  return { name: window.name, policy: window.policy, remaining, resetS: Math.max(1, Math.ceil(resetMs / 1000)) }
}

function refuse(window: Window, result: RateLimiterRes): never {
  const state = stateOf(window, 0, result.msBeforeNext)
  return fail('rate_limit_exceeded', {
    details: { retryAfter: state.resetS },
    headers: { 'Retry-After': String(state.resetS), ...limitHeaders(state) },
  })
}

export function limitHeaders({ name, policy, remaining, resetS }: LimitState) {
  return { 'RateLimit-Policy': policy, RateLimit: `"${name}";r=${remaining};t=${resetS}` }
}
