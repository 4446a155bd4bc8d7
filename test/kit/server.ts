import { idFrom, type ActorRef, type PersonUuid, type RunId, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { inject } from 'vitest'
import { readConfig } from '../../control-plane/config.ts'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { mintRunToken } from '../../control-plane/http/run-token.ts'
import { silentLog, type Log } from '../../control-plane/process/log.ts'
import { firstStart } from '../../control-plane/operator/first-start.ts'
import { addUser } from '../../control-plane/operator/people.ts'
import { findAgent } from '../../control-plane/resources/agents/store.ts'
import { findUserByEmail } from '../../control-plane/resources/members/store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { ControlPlane } from '../../control-plane/server.ts'
import { hasShortEnvelope, shortErrorEnvelope } from '../../shared/api/errors.ts'
import type { Role } from '../../shared/api/route.ts'
import { withoutUndefined } from '../../shared/lib/without-undefined.ts'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { hasPostgres, openPostgres, openSqlite, patient } from './database.ts'
import { Connections, type Announced, type Exchange, type Sent } from './exchange.ts'
import { costlyLimits, sharedWorkers } from './shared-workers.ts'

// The assembled control plane on a loopback port, in this process, asked by real HTTP requests. In the project `replicas`
// a server that a test starts is two on one PostgreSQL, and requests and links go to them in turn.

/** The real world with a wall clock that a test moves. */
export interface MovableWorld extends World {
  /** Milliseconds; negative ones move it back. */
  advance(ms: number): void
}

export function movableWorld(): MovableWorld {
  let offset = 0
  return {
    ...realWorld,
    now: () => Date.now() + offset,
    advance: (ms) => void (offset += ms),
  }
}

export interface Person {
  /** A login token. */
  token: string
  /** `usr_...` */
  userId: ActorRef
  uuid: PersonUuid
  email: string
  workspaceId: WorkspaceUuid
}

export interface Reply {
  status: number
  headers: Headers
  // Tests look into answers of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any
}

export interface AgentCaller {
  // oxlint-disable-next-line typescript/no-explicit-any
  agent: any
  runId: RunId
  /** The run's. */
  token: string
}

export interface CallOptions {
  /** Default: POST with a body, else GET. */
  method?: string
  /** Default: the owner's; null: none. */
  token?: string | null
  /** Sent as JSON. */
  body?: unknown
  headers?: Record<string, string>
  /** Default `/api/v1`. */
  base?: string
}

export interface ServerOptions {
  /** The databases of `test/kit/database.ts`; default a SQLite in memory. */
  database?: 'sqlite' | 'postgres'
  /** Where a SQLite lies; default in memory. */
  file?: string
  /** Another replica of this server. */
  beside?: TestServer
  /** Environment variables of the server. */
  settings?: Record<string, string>
  log?: Log
  /** Processor time of one check in a worker; default as in `costly/pool.ts`. */
  costlyMs?: number
  /** Default: the real one, whose clock moves. */
  world?: MovableWorld
}

interface Parts {
  plane: ControlPlane
  database: TestServer['database']
  world: MovableWorld
  owner: Person
  ownsDatabase: boolean
  /** The other replica. */
  twin: TestServer | null
}

export class TestServer {
  readonly plane: ControlPlane
  readonly database: Database & { url?: string }
  readonly world: MovableWorld
  readonly owner: Person
  private readonly ownsDatabase: boolean
  private readonly twin: TestServer | null
  private readonly connections = new Connections()
  private turns = 0
  private answeredAt = 0

  static async start(options: ServerOptions = {}): Promise<TestServer> {
    const isPlain = [options.database, options.file, options.beside].every((each) => each === undefined)
    if (!isPlain || inject('replicas') < 2 || !hasPostgres()) return TestServer.startOne(options, null)
    const twin = await TestServer.startOne({ ...options, database: 'postgres' }, null)
    const settings = { SVC_PUBLIC_URL: twin.url, ...options.settings }
    return TestServer.startOne({ ...options, settings, beside: twin }, twin)
  }

  private static async startOne(options: ServerOptions, twin: TestServer | null): Promise<TestServer> {
    const { beside } = options
    const world = options.world ?? beside?.world ?? movableWorld()
    const settings = {
      SVC_PORT: '0',
      SVC_DATA_DIR: inject('databases').folder,
      SVC_CHECK_REPLIES: '1',
      SVC_READ_TIMEOUT_MS: String(patient.readMs),
      SVC_WRITE_TIMEOUT_MS: String(patient.writeMs),
      ...options.settings,
    }
    const read = readConfig(settings, {})
    const database: TestServer['database'] =
      beside === undefined
        ? options.database === 'postgres'
          ? await openPostgres(read)
          : openSqlite(options.file)
        : besideOf(beside.database, read)
    const config = { ...read, databaseUrl: database.url ?? ':memory:' }
    const owner = beside?.owner ?? (await makeOwner(database, world))
    const log = options.log ?? silentLog
    // What workers log, and when, is of their own server.
    const hasOwn = options.costlyMs !== undefined || options.log !== undefined || options.world !== undefined
    const workers = hasOwn
      ? { costly: { ...costlyLimits, ...withoutUndefined({ jobMs: options.costlyMs }) } }
      : { workers: sharedWorkers() }
    const plane = await ControlPlane.create({ config, database, world, log, ownsProcess: false, ...workers })
    await plane.start()
    return new TestServer({ plane, database, world, owner, ownsDatabase: database !== beside?.database, twin })
  }

  private constructor(parts: Parts) {
    this.plane = parts.plane
    this.database = parts.database
    this.world = parts.world
    this.owner = parts.owner
    this.ownsDatabase = parts.ownsDatabase
    this.twin = parts.twin
  }

  /** The address the server gives for itself. */
  get url(): string {
    return this.plane.url
  }

  /** Of each replica, by which it asks the one database. */
  get roots(): Database['root'][] {
    return [this.database.root, ...(this.twin?.roots ?? [])]
  }

  /** Returns where the next request goes. */
  nextUrl(): string {
    return this.twin !== null && ++this.turns % 2 === 0 ? this.twin.nextUrl() : this.plane.localUrl
  }

  async stop(): Promise<void> {
    await this.plane.stop()
    this.connections.close()
    if (this.ownsDatabase) await this.database.close()
    // Last, as it is the one that removes the database.
    await this.twin?.stop()
  }

  /** A request as it is given; no redirect is followed. */
  ask(path: string, sent: Sent): Promise<Exchange> {
    return this.connections.ask(this.nextUrl() + path, sent)
  }

  announce(path: string, sent: Announced): Promise<Exchange> {
    return this.connections.announce(this.nextUrl() + path, sent)
  }

  /** A request as the owner, unless another token is given. */
  async call(path: string, options: CallOptions = {}): Promise<Reply> {
    // What is made by one request is younger than what an earlier one made, however fast they are.
    if (this.world.now() <= this.answeredAt) this.world.advance(1)
    const token = options.token === undefined ? this.owner.token : options.token
    const body = options.body === undefined ? undefined : JSON.stringify(options.body)
    const { status, headers, text } = await this.ask(`${options.base ?? '/api/v1'}${path}`, {
      method: options.method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body }),
    })
    this.answeredAt = this.world.now()
    return { status, headers, body: text === '' ? null : JSON.parse(text) }
  }

  /** The same, for calls that must succeed: fails with the answer when they do not. */
  // oxlint-disable-next-line typescript/no-explicit-any
  async ok(path: string, options: CallOptions = {}): Promise<any> {
    const reply = await this.call(path, options)
    if (reply.status >= 300)
      throw new Error(`${options.method ?? ''} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }

  /** A person in the owner's workspace, or in another one (made when it does not exist). */
  async addPerson(role: Role, workspace = 'main'): Promise<Person> {
    const email = `${this.world.uuid()}@example.com`
    const { root } = this.database
    const added = await root.transaction((tx) => addUser(tx, this.world, { name: role, email, role, workspace }))
    const user = await findUserByEmail(root, email)
    return { token: added.token, userId: added.userId, uuid: user!.id, email, workspaceId: added.workspaceId }
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async createAgent(body: Record<string, unknown> = {}, token?: string): Promise<any> {
    return this.ok('/agents', {
      body: { name: `Agent ${this.world.uuid().slice(0, 8)}`, harness: 'command', command: 'true', ...body },
      ...(token === undefined ? {} : { token }),
    })
  }

  /** Wakes the agent and returns the new run's id. */
  async startRun(agentId: string, body: Record<string, unknown> = {}, token?: string): Promise<RunId> {
    const reply = await this.ok(`/agents/${agentId}/runs`, { body, ...(token === undefined ? {} : { token }) })
    if (reply.runPublicId === undefined) throw new Error(`no run: ${JSON.stringify(reply)}`)
    return idFrom<RunId>(reply.runPublicId as string)
  }

  /** An agent of the owner, unless another token is given, that calls within a run of its own, which waits for a device. */
  async agentCaller(
    body: Record<string, unknown> = {},
    { token, run }: { token?: string; run?: Record<string, unknown> } = {},
  ): Promise<AgentCaller> {
    const agent = await this.createAgent(body, token)
    const runId = await this.startRun(agent.id, run, token)
    return { agent, runId, token: await this.runToken(runId) }
  }

  /** A token as the run would get it if it were started now. */
  async runToken(runId: RunId): Promise<string> {
    const { root } = this.database
    const run = await findRun(root, runId)
    const agent = run && (await findAgent(root, run.agentRef))
    if (!run || !agent) throw new Error(`no run ${runId}`)
    const { value } = (await root('server_keys').where({ name: 'run_token' }).first('value')) as { value: string }
    const { fence, agentRef: agentId, workspaceId } = run
    const subject = { runId, fence, agentRef: agentId, workspaceId, tokenGeneration: agent.tokenGeneration }
    return mintRunToken(Buffer.from(value, 'base64'), subject, this.world.now())
  }
}

/** Connections and turns of its own, as a replica in another process has; a SQLite in memory cannot be opened twice. */
function besideOf(
  database: TestServer['database'],
  limits: { readMs: number; writeMs: number },
): TestServer['database'] {
  const { url } = database
  return url === undefined ? database : { ...openDatabase({ url, poolSize: 8, ...limits }), url }
}

async function makeOwner({ root }: Database, world: World): Promise<Person> {
  const first = await root.transaction((tx) => firstStart(tx, world))
  if (first === null) throw new Error('the database is not empty')
  const email = 'owner@localhost'
  const user = await findUserByEmail(root, email)
  return { token: first.token, userId: first.userId, uuid: user!.id, email, workspaceId: first.workspaceId }
}

/** The code of an error answer, standard or short, with what holds for each of them checked. */
export function codeOf(reply: Reply): string {
  const { error } = reply.body as {
    error: { code: string; type: string; message: string; requestId: string; details?: { fields?: unknown } }
  }
  if (typeof error === 'object' && hasShortEnvelope(error.code)) {
    shortErrorEnvelope.strict().extend({ error: shortErrorEnvelope.shape.error.strict() }).parse(reply.body)
    return error.code
  }
  if (typeof error !== 'object') throw new Error(`not a standard error: ${reply.status} ${JSON.stringify(reply.body)}`)
  if (error.requestId !== reply.headers.get('request-id')) throw new Error('requestId is not that of the header')
  if (typeof error.message !== 'string' || typeof error.type !== 'string') throw new Error('not a standard envelope')
  if (error.code === 'validation_error' && !hasFields(error.details?.fields))
    throw new Error(`a validation_error without its fields: ${JSON.stringify(error)}`)
  return error.code
}

/** The documents promise them with every `validation_error`. */
const hasFields = (fields: unknown): boolean =>
  Array.isArray(fields) &&
  fields.length > 0 &&
  fields.every((field) => typeof field.path === 'string' && field.path !== '' && typeof field.message === 'string')

/** `404 resource_not_found`, or `200` for an answer that is no error. */
export function outcomeOf(reply: Reply): string {
  return reply.status < 400 ? String(reply.status) : `${reply.status} ${codeOf(reply)}`
}
