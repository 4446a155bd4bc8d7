import type { z } from 'zod'
import type { AnyRoute, BodyOf, ParamsOf, QueryOf, ReplyOf } from '../../shared/api/route.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db, Tx } from '../db/open.ts'
import type { Log } from '../process/log.ts'
import type { AnswerRoom } from './answer-room.ts'
import type { CallerOf } from './callers.ts'
import type { JsonText } from './json-text.ts'
import type { EventStream } from './sse.ts'

/** `cli`: `svc`; `api`: everything else. */
export const clients = ['api', 'cli'] as const
export type Client = (typeof clients)[number]

/** The input of a route's handler. */
export interface HandlerInput<R extends AnyRoute> {
  params: ParamsOf<R>
  query: QueryOf<R>
  body: BodyOf<R>
  caller: CallerOf<R>
  /**
   * The transaction of this request on a write (for routes with `transaction: false` and on reads: the root handle).
   * Nothing else is awaited in it: git, providers and other servers are asked by `before`, and links after the commit.
   */
  db: R['transaction'] extends true ? Tx : Db
  world: World
  log: Log
  requestId: string
  /** The path as it was called, an alias perhaps; without the query. */
  path: string
  /** Aborted when the client is gone or the server stops. */
  signal: AbortSignal
  /** Room in memory for what is read for the answer. */
  room: AnswerRoom
  /** The bearer token as it was sent, for routes of callers `none` that check one of their own. */
  bearer: string | null
  /** The media type of the body as it was sent, with its parameters. */
  contentType: string | null
  /** The kind of client, by its own word: something to show, and to decide nothing by. */
  client: Client
  /**
   * Set when the answer is to be a stream, on routes that have one: a read when the client asks for it, a write unless it
   * asks for JSON alone.
   */
  stream: { lastEventId: string | null } | null
  /** The key of a write that answers a stream: answers of these are not stored, so the handler sees to its meaning. */
  idempotencyKey?: string | null
}

/** The input of a step before the transaction, where `db` is the root handle. */
export type BeforeInput<R extends AnyRoute> = Omit<HandlerInput<R>, 'db'> & { db: Db }

/** An answer with another status, or with headers. */
export class Answer<S extends number, B> {
  readonly status: S
  readonly body: B
  readonly headers: Record<string, string>

  constructor(status: S, body: B, headers: Record<string, string> = {}) {
    this.status = status
    this.body = body
    this.headers = headers
  }
}

export function answer<const S extends number, B>(status: S, body: B, headers?: Record<string, string>): Answer<S, B> {
  return new Answer(status, body, headers)
}

type OtherAnswer<R extends AnyRoute> = {
  [S in keyof R['otherReplies'] & number]: Answer<S, z.input<R['otherReplies'][S]>>
}[keyof R['otherReplies'] & number]

export type HandlerResult<R extends AnyRoute> =
  | ReplyOf<R>
  | OtherAnswer<R>
  | Answer<200 | 201, ReplyOf<R>>
  | EventStream
  | JsonText

export type Handler<R extends AnyRoute> = (input: HandlerInput<R>) => Promise<HandlerResult<R>>
export type Handlers<G extends Readonly<Record<string, AnyRoute>>> = {
  [K in keyof G]: Handler<G[K]> | CheckedHandler<G[K]>
}

/**
 * A handler with a step before its transaction, for what a transaction must not wait for: git, a provider, another server.
 * The request's idempotency key is held from that step on. When the step refuses, the key is free again; when it fails
 * otherwise, or the process dies during it or after it, the effect counts as unknown.
 */
export interface CheckedHandler<R extends AnyRoute, Prepared = unknown> {
  /** Fails as a handler does. Called once, however often the transaction is done again. */
  before(input: BeforeInput<R>): Promise<Prepared>
  handle(input: HandlerInput<R>, prepared: Prepared): Promise<HandlerResult<R>>
  /** Gives up what was prepared and nobody came to own. Called after the transaction, however it ended; never fails. */
  giveUp?(prepared: Prepared): Promise<void>
  /**
   * The schema of what was prepared, on a route of which an agent's request waits for approval: it is stored as the body of the change.
   * Once that is approved, `handle` gets it as prepared in place of what `before` returns, and no body.
   */
  staged?: z.ZodType<Prepared>
}

/** A handler that gets what its step before the transaction returned. */
export const prepared = <R extends AnyRoute, Prepared>(handler: CheckedHandler<R, Prepared>): CheckedHandler<R> =>
  handler

/** A route with its handler; the types of its schemas have been checked where it was made. */
export interface ImplementedRoute {
  route: AnyRoute
  handler: (input: HandlerInput<AnyRoute>, prepared?: unknown) => Promise<unknown>
  before?: (input: HandlerInput<AnyRoute>) => Promise<unknown>
  giveUp?: (prepared: unknown) => Promise<void>
  staged?: z.ZodType
}

/**
 * Joins routes with their handlers. Does not compile while one has none, or returns what its schema does not hold. The handlers have a
 * type parameter of their own so that literals which an async one returns are not widened.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function implement<G extends Readonly<Record<string, AnyRoute>>, H extends Handlers<G>>(
  group: G,
  handlers: H,
): ImplementedRoute[] {
  return Object.entries(group).map(([name, route]) => {
    // A handler takes the input that its own route's schemas have parsed; the list forgets which.
    const handler = handlers[name] as unknown as ImplementedRoute['handler'] | ErasedChecked
    if (typeof handler !== 'object') return { route, handler }
    const { handle, ...around } = handler
    return { route, handler: handle, ...around }
  })
}

type ErasedChecked = { handle: ImplementedRoute['handler'] } & Pick<ImplementedRoute, 'giveUp' | 'staged'> &
  Required<Pick<ImplementedRoute, 'before'>>

/** Throws when a route of the contract has no handler: the server does not start with half an API. */
export function assertComplete(contract: readonly AnyRoute[], implemented: readonly ImplementedRoute[]): void {
  const known = new Set(implemented.map(({ route }) => route.id))
  const missing = contract.filter((route) => !known.has(route.id)).map((route) => route.id)
  if (missing.length > 0) throw new Error(`no handler for ${missing.join(', ')}`)
  // A change that an approval repeats is made within the approval's transaction, from what was staged when it was asked for.
  const repeated = implemented.filter(
    ({ route, before, staged }) => before !== undefined && staged === undefined && isApproved(route),
  )
  if (repeated.length > 0)
    throw new Error(`a step before the transaction of ${repeated.map(({ route }) => route.id).join(', ')}`)
}

const isApproved = ({ callers }: AnyRoute) => callers !== 'none' && callers.agent === 'platform_change'
