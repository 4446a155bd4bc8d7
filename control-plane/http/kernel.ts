import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'
import type { CallerLookup } from './auth.ts'
import type { BodyRooms } from './body-room.ts'
import type { AgentCaller, Caller } from './callers.ts'
import type { Idempotency } from './idempotency.ts'
import type { Limiter } from './limits.ts'

/** What the HTTP kernel is built from; `main.ts` makes it once. */
export interface Kernel {
  /** The root handle: requests get it for reads, and a transaction of it for writes. */
  root: Knex
  world: World
  log: Log
  callers: CallerLookup
  limiter: Limiter
  idempotency: Idempotency
  rooms: BodyRooms
  /** What an agent sends without the values of the secrets that it was given: nothing it writes down holds them. */
  censor?(caller: AgentCaller, body: unknown): Promise<unknown>
  /**
   * In tests and development: replies are parsed by their schemas, and a reply that does not fit or a code that the route
   * does not declare is a failure (500 and an error in the log).
   */
  isChecking: boolean
  /** True when the server is reached by HTTPS only (Strict-Transport-Security is sent). */
  isHttps: boolean
  /** How many proxies stand before the server, whose X-Forwarded-For is believed. */
  trustedProxies: number
  /** How often it is asked whether the reader of a stream may still read it; default 10 s. */
  streamCheckMs?: number
  /** Aborted when the server stops: streams end, so that their clients go elsewhere. */
  stopping: AbortSignal
  /** Called when an answer is complete, for the metrics. */
  observe?(record: RequestRecord): void
}

/** What is known of a request when it is over. */
export interface RequestRecord {
  requestId: string
  /** The contract's id, or null when no route matched. */
  routeId: string | null
  method: string
  status: number
  /** The code of an error. */
  code: string | null
  durationMs: number
}

/** What the kernel notes about a request while it goes through; kept in `ctx.state`. */
export interface RequestState {
  requestId: string
  routeId: string | null
  caller: Caller | null
  code: string | null
  /** Names and values in turn: headers that go out with the answer, whatever it is. */
  headers: string[]
}
