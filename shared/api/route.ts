import { z } from 'zod'
import type { ErrorCode, PlainErrorId } from './error-codes.ts'
import type { CommandSpec } from './command.ts'

// The vocabulary of the contract: one `Route` value says everything about a route.

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export const roles = ['owner', 'admin', 'member'] as const
export type Role = (typeof roles)[number]

/** A caller that is refused with 403 and this code. */
export interface CallerRefusal {
  refused: ErrorCode
}

/** `none`: no token is needed. */
export type Callers =
  | 'none'
  | {
      /** The least role a person needs (others get 403 `http_exception`), or a refusal of all people. */
      person: Role | CallerRefusal
      /**
       * `allowed`: the handler makes any finer decision. `platform_change`: the handler stores the write for approval
       * and answers 202.
       */
      agent: 'allowed' | 'platform_change' | CallerRefusal
    }

export const anyone = { person: 'member', agent: 'allowed' } as const satisfies Callers
export const peopleOnly = { person: 'member', agent: { refused: 'http_exception' } } as const satisfies Callers
export const adminsOnly = { person: 'admin', agent: { refused: 'http_exception' } } as const satisfies Callers
export const adminsOrPlatformChange = { person: 'admin', agent: 'platform_change' } as const satisfies Callers
export const orPlatformChange = { person: 'member', agent: 'platform_change' } as const satisfies Callers

export const mebibyte = 1024 * 1024
/** Classes of request limits; the numbers are part of the server's configuration. */
export type RateClass =
  | 'general'
  | 'sign_in'
  | 'sign_in_any'
  | 'webhook'
  | 'share_preview'
  | 'connection_callback'
  | 'mail'
  | 'none'

export type QueryKeyCodes = Readonly<Record<string, ErrorCode>>

/** A route as it is written; `defineRoute` fills in what is left out. */
type Endpoint = `${Method} /${string}`

export interface RouteInput<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  R extends z.ZodType,
  O extends Readonly<Record<number, z.ZodType>>,
  C extends Callers,
> {
  /** The id in the contract tables, for example `agents.runs.start`. */
  id: string
  /** The method and the path below `/api/v1` (or `base`), for example `GET /agents/{agentId}/runs`. */
  endpoint: Endpoint
  base?: '/api/v1' | '/api'
  /** Other paths of the route, each with the id of its operation in the OpenAPI document, of which clients make names. */
  aliases?: Readonly<Record<string, string>>
  summary: string
  description?: string
  /** The callers. Default: any person or agent of the workspace. */
  callers?: C
  /** The need of an `Idempotency-Key`: required, honoured when sent (default of writes), or ignored (GET). */
  idempotency?: 'required' | 'accepted' | 'none'
  /** The answer holds a secret, so the copy that is kept for its idempotency key is encrypted. */
  isSecret?: boolean
  /** Bytes, after inflating. Default 2 MiB. */
  bodyLimit?: number
  /** A body beyond this, but within `bodyLimit`, is read and refused with this code. */
  softLimit?: { bytes: number; code: ErrorCode } | null
  rate?: RateClass
  params?: P
  query?: Q
  body?: B
  /**
   * A key of the body whose base64 is decoded, hashed and stored while it comes, and reaches the handler as `StoredContent`. The
   * body is then never in memory as a whole; without the key it is refused as `content_required`.
   */
  streamed?: { key: string; limit: number } | null
  /** The schema of the answer. Leave out for 204. */
  reply?: R
  /** The status of the answer. Default: 204 without a reply schema, else 200. */
  status?: number
  /** Other good answers by status; the handler gives them with `answer(status, body)`. */
  otherReplies?: O
  /** Codes of this route beside the shared ones. */
  errors?: readonly ErrorCode[]
  plainErrors?: readonly PlainErrorId[]
  /** The code for a path parameter that does not fit. Default `invalid_id_format`. */
  malformedParam?: 'invalid_id_format' | 'resource_not_found'
  /**
   * Query keys with a code of their own: refused whenever sent (`refuse`), or when the value does not fit (`invalid`).
   */
  queryCodes?: { refuse?: QueryKeyCodes; invalid?: QueryKeyCodes }
  /**
   * Says what happens to query keys that the route does not have (docs/adr/0021). Default: refused, but ignored on routes
   * without a token, since other people's programs call those with keys of their own.
   */
  unknownQuery?: 'refused' | 'ignored'
  /** Body keys that are refused with a code of their own when sent. */
  refusedBodyKeys?: Readonly<Record<string, ErrorCode>>
  /** Writes run in a transaction unless this is false. */
  transaction?: boolean
  /**
   * `sse`: with `Accept: text/event-stream` the handler may answer a stream. `text`: it answers an object with one long text, which
   * is sent as it is made. A large one is not kept for its idempotency key, whose next request is then answered anew.
   */
  stream?: 'sse' | 'text'
  cli?: CommandSpec | readonly CommandSpec[] | null
}

/** A complete route: `body` is `noBody` when it takes none, and `reply` is `noReply` for 204. */
export interface Route<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodType,
  R extends z.ZodType = z.ZodType,
  O extends Readonly<Record<number, z.ZodType>> = Readonly<Record<number, z.ZodType>>,
  C extends Callers = Callers,
  T extends boolean = boolean,
> extends Readonly<
  Required<
    Omit<
      RouteInput<P, Q, B, R, O, C>,
      'endpoint' | 'aliases' | 'description' | 'queryCodes' | 'transaction' | 'stream' | 'cli'
    >
  >
> {
  readonly method: Method
  readonly transaction: T
  /** Below `base`. */
  readonly path: string
  readonly aliases: readonly string[]
  /** The id of the operation of each alias. */
  readonly aliasIds: Readonly<Record<string, string>>
  readonly description: string | null
  readonly queryCodes: { readonly refuse: QueryKeyCodes; readonly invalid: QueryKeyCodes }
  readonly stream: 'sse' | 'text' | null
  readonly commands: readonly CommandSpec[]
}

/** A route of any schemas, as lists of routes hold it. */
export type AnyRoute = Route

const nothing = z.object({})
type Nothing = typeof nothing
export const noBody = z.undefined()
export const noReply = z.void()
/** A body of any kind: the handler gets its bytes as they came (inflated), whatever the Content-Type. */
export const rawBody = z.custom<Uint8Array>((value) => value instanceof Uint8Array)
const noOther = {} as const

/** True when a route's handler has a transaction: as the route says, else for every write. */
type HasTransaction<E extends string, T extends boolean | undefined> = T extends boolean
  ? T
  : E extends `GET ${string}`
    ? false
    : true

export function defineRoute<
  P extends z.ZodObject = Nothing,
  Q extends z.ZodObject = Nothing,
  B extends z.ZodType = typeof noBody,
  R extends z.ZodType = typeof noReply,
  O extends Readonly<Record<number, z.ZodType>> = typeof noOther,
  const C extends Callers = typeof anyone,
  const E extends Endpoint = Endpoint,
  const T extends boolean | undefined = undefined,
>(
  route: RouteInput<P, Q, B, R, O, C> & { endpoint: E; transaction?: T },
): Route<P, Q, B, R, O, C, HasTransaction<E, T>> {
  const [method, path] = route.endpoint.split(' ') as [Method, string]
  const isRead = method === 'GET'
  return {
    id: route.id,
    method,
    path,
    base: route.base ?? '/api/v1',
    aliases: Object.keys(route.aliases ?? {}),
    aliasIds: route.aliases ?? {},
    summary: route.summary,
    description: route.description ?? null,
    callers: route.callers ?? (anyone as unknown as C),
    idempotency: route.idempotency ?? (isRead ? 'none' : 'accepted'),
    isSecret: route.isSecret ?? false,
    bodyLimit: route.bodyLimit ?? 2 * mebibyte,
    softLimit: route.softLimit ?? null,
    rate: route.rate ?? 'general',
    // The defaults of the type parameters are these very schemas; the casts only tell the compiler so.
    params: route.params ?? (nothing as unknown as P),
    query: route.query ?? (nothing as unknown as Q),
    body: route.body ?? (noBody as unknown as B),
    streamed: route.streamed ?? null,
    reply: route.reply ?? (noReply as unknown as R),
    status: route.status ?? (route.reply === undefined ? 204 : 200),
    otherReplies: route.otherReplies ?? (noOther as unknown as O),
    errors: route.errors ?? [],
    plainErrors: route.plainErrors ?? [],
    malformedParam: route.malformedParam ?? 'invalid_id_format',
    queryCodes: { refuse: route.queryCodes?.refuse ?? {}, invalid: route.queryCodes?.invalid ?? {} },
    unknownQuery: route.unknownQuery ?? (route.callers === 'none' ? 'ignored' : 'refused'),
    refusedBodyKeys: route.refusedBodyKeys ?? {},
    transaction: (route.transaction ?? !isRead) as HasTransaction<E, T>,
    stream: route.stream ?? null,
    commands: route.cli == null ? [] : 'command' in route.cli ? [route.cli] : route.cli,
  }
}

/** The codes a route may answer beside the shared ones, including those of its own refusals. */
export function declaredCodes(route: AnyRoute): Set<string> {
  const { callers, queryCodes, refusedBodyKeys } = route
  const ofCallers =
    callers === 'none'
      ? []
      : [callers.person, callers.agent].flatMap((access) => (typeof access === 'object' ? [access.refused] : []))
  return new Set<string>([
    ...route.errors,
    ...ofCallers,
    ...Object.values(queryCodes.refuse),
    ...Object.values(queryCodes.invalid),
    ...Object.values(refusedBodyKeys),
  ])
}

export type ParamsOf<T extends AnyRoute> = z.output<T['params']>
export type QueryOf<T extends AnyRoute> = z.output<T['query']>
export type BodyOf<T extends AnyRoute> = z.output<T['body']>
/** The value that a handler returns; clients get the same as JSON. */
export type ReplyOf<T extends AnyRoute> = z.input<T['reply']>
