import { OpenStreams } from '../../../control-plane/http/open-streams.ts'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import type Koa from 'koa'
import { inject } from 'vitest'
import { Blobs } from '../../../control-plane/blobs/blobs.ts'
import { DiskPlace } from '../../../control-plane/blobs/disk.ts'
import type { BlobPlace } from '../../../control-plane/blobs/place.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'
import { createApp } from '../../../control-plane/http/app.ts'
import { createCallerLookup } from '../../../control-plane/http/auth.ts'
import { createBodyRooms, type BodyRooms } from '../../../control-plane/http/body-room.ts'
import { createIdempotency } from '../../../control-plane/http/idempotency.ts'
import type { ImplementedRoute } from '../../../control-plane/http/implement.ts'
import type { Kernel, RequestRecord } from '../../../control-plane/http/kernel.ts'
import { createLimiter, type Limiter, type RateRules } from '../../../control-plane/http/limits.ts'
import { migrate } from '../../../control-plane/db/migrate.ts'
import { openDatabase, type Database } from '../../../control-plane/db/open.ts'
import type { Log } from '../../../control-plane/process/log.ts'
import { createVault, type Vault } from '../../../control-plane/vault/vault.ts'
import { fixedRunTokenKeys } from '../../../control-plane/http/run-token-keys.ts'
import { runTokenKey, seed, type Seed } from './seed.ts'

/** A real server on a loopback port with routes of its own, on a migrated SQLite database with a few people and agents. */
export interface TestServer {
  url: string
  database: Database
  seed: Seed
  clock: { offsetMs: number }
  world: World
  logged: { level: string; fields: Record<string, unknown>; message: string }[]
  records: RequestRecord[]
  stop(): void
  close(): Promise<void>
}

export interface ServerOptions {
  routes: readonly ImplementedRoute[]
  rules?: Partial<RateRules>
  limiter?: Limiter
  isChecking?: boolean
  instance?: string
  isSole?: boolean
  trustedProxies?: number
  rooms?: BodyRooms
  /** Where the content of streamed bodies is stored; default a folder of this test run. */
  place?: BlobPlace
  censor?: Kernel['censor']
  /** Default: one with a key of its own. */
  vault?: Vault
  /** The database of another server, to be a second process on it. */
  database?: { url: string; seed: Seed }
  url?: string
  /** Whoever waits longer for a connection fails. */
  acquireMs?: number
  /** The world by which time passes, but for the wall clock; default the real one. */
  world?: World
  /** For what is not of the contract. */
  others?: (kernel: Kernel) => Koa.Middleware[]
}

const diskPlace = (): BlobPlace => new DiskPlace(join(inject('databases').folder, 'kernel-files'))

const noRules: RateRules = {
  general: null,
  sign_in: null,
  sign_in_any: null,
  webhook: null,
  share_preview: null,
  connection_callback: null,
  mail: null,
}

export async function startServer(options: ServerOptions): Promise<TestServer> {
  const clock = { offsetMs: 0 }
  const world: World = { ...(options.world ?? realWorld), now: () => Date.now() + clock.offsetMs }
  const { acquireMs } = options
  const url = options.database?.url ?? options.url ?? ':memory:'
  const database = openDatabase({ url, ...(acquireMs === undefined ? {} : { acquireMs }) })
  if (options.database === undefined) await migrate(database.root, world.now())
  const seeded = options.database?.seed ?? (await seed(database.root, world))
  const logged: TestServer['logged'] = []
  const records: RequestRecord[] = []
  const stopping = new AbortController()
  const kernel: Kernel = {
    root: database.root,
    world,
    log: recordingLog(logged),
    callers: createCallerLookup({ db: database.root, runTokenKeys: fixedRunTokenKeys(runTokenKey), world }),
    limiter: options.limiter ?? (await createLimiter({ rules: { ...noRules, ...options.rules }, world, shared: null })),
    streams: new OpenStreams(),
    idempotency: createIdempotency({
      db: database.root,
      world,
      instance: options.instance ?? 'one',
      isSole: options.isSole ?? true,
      vault: options.vault ?? createVault({ kind: 'memory' }, world),
    }),
    rooms: options.rooms ?? createBodyRooms(world),
    blobs: new Blobs({ root: database.root, place: options.place ?? diskPlace(), world, log: recordingLog(logged) }),
    ...(options.censor && { censor: options.censor }),
    isChecking: options.isChecking ?? true,
    isHttps: false,
    trustedProxies: options.trustedProxies ?? 0,
    stopping: stopping.signal,
    observe: (record) => records.push(record),
  }
  const handle = createApp(options.routes, kernel, options.others?.(kernel)).callback()
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    database,
    seed: seeded,
    clock,
    world,
    logged,
    records,
    stop: () => stopping.abort(),
    close: () => close(server, database),
  }
}

async function close(server: Server, database: Database): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await database.close()
}

function recordingLog(logged: TestServer['logged'], bound: Record<string, unknown> = {}): Log {
  const at = (level: string) => (fields: object, message: string) => {
    logged.push({ level, fields: { ...bound, ...fields }, message })
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => recordingLog(logged, { ...bound, ...fields }),
  }
}

export interface Reply {
  status: number
  headers: Headers
  // Tests look into answers of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any
}

export interface CallOptions {
  method?: string
  token?: string | null
  headers?: Record<string, string>
  /** Sent as JSON. */
  body?: unknown
  /** Sent as it is. */
  raw?: string | Uint8Array | ReadableStream<Uint8Array>
}

/** Calls below `/api/v1` as the owner, unless another token (null: none) is given. */
export async function call(server: TestServer, path: string, options: CallOptions = {}): Promise<Reply> {
  const token = options.token === undefined ? server.seed.ownerToken : options.token
  const raw = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method: options.method ?? (raw === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(raw === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(raw === undefined ? {} : { body: raw, duplex: 'half' }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
}

/** The code of a standard error answer, with the rules that hold for each of them checked. */
export function codeOf(reply: Reply): string {
  const { error } = reply.body as { error: { code: string; type: string; message: string; requestId: string } }
  if (error.requestId !== reply.headers.get('request-id')) throw new Error('requestId is not that of the header')
  if (typeof error.message !== 'string' || typeof error.type !== 'string') throw new Error('not a standard envelope')
  return error.code
}

/** Status and code of a call that is refused. */
export async function refusal(server: TestServer, path: string, options: CallOptions = {}) {
  const reply = await call(server, path, options)
  return [reply.status, codeOf(reply)]
}
