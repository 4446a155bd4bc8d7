import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'
import type { Blobs } from '../blobs/blobs.ts'
import type { CallerLookup } from './auth.ts'
import type { BodyRooms } from './body-room.ts'
import type { AgentCaller, Caller } from './callers.ts'
import type { Idempotency } from './idempotency.ts'
import type { Limiter } from './limits.ts'
import type { OpenStreams } from './open-streams.ts'

/** The parts that the HTTP kernel is built from; `server.ts` makes it once. */
export interface Kernel {
  /** The root handle: requests get it for reads, and a transaction of it for writes. */
  root: Knex
  world: World
  log: Log
  callers: CallerLookup
  limiter: Limiter
  streams: OpenStreams
  idempotency: Idempotency
  rooms: BodyRooms
  /** The store for the content of bodies that is not kept in memory. */
  blobs: Pick<Blobs, 'put' | 'giveUp'>
  /** Returns an agent's body without the values of the secrets that it was given, so that nothing it stores holds them. */
  censor?(caller: AgentCaller, body: unknown): Promise<unknown>
  /**
   * True in tests and development: replies are parsed by their schemas, and a reply that does not fit or a code that the route does not
   * declare is a failure (500 and an error in the log).
   */
  isChecking: boolean
  /** True when the server is reached by HTTPS only (Strict-Transport-Security is sent). */
  isHttps: boolean
  /** The number of proxies before the server whose X-Forwarded-For is believed. */
  trustedProxies: number
  /** The interval at which a stream's reader is checked for its right to read; default 10 s. */
  streamCheckMs?: number
  /** Aborted when the server stops: streams end, so that their clients go elsewhere. */
  stopping: AbortSignal
  /** Called when an answer is complete, for the metrics. */
  observe?(record: RequestRecord): void
}

/** A request that is over, for metrics and the log. */
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

/** The kernel's notes about a request at work; kept in `ctx.state`. */
export interface RequestState {
  requestId: string
  routeId: string | null
  caller: Caller | null
  code: string | null
  /** Names and values in turn: headers that go out with the answer, whatever it is. */
  headers: string[]
}
