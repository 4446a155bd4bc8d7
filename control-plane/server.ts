import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { contract } from '../shared/api/index.ts'
import { Services, type Service } from '../shared/lib/services.ts'
import type { World } from '../shared/lib/world.ts'
import { Blobs } from './blobs/blobs.ts'
import { claimNowOrLater } from './blobs/claimed-place.ts'
import { openBlobPlaces } from './blobs/location.ts'
import type { UsedPlace } from './blobs/place.ts'
import { loadCatalog, type ModelCatalog } from './catalog/catalog.ts'
import { settingsOfHandlers, type ServerConfig } from './config.ts'
import { CostlyPool } from './costly/pool.ts'
import type { PoolLimits } from './process/worker-pool.ts'
import { silentMsOf, type Database } from './db/open.ts'
import { randomServerKey } from './db/server-keys.ts'
import { Dispatcher } from './run/offers/dispatcher.ts'
import { RunStarter } from './run/offers/run-starter.ts'
import type { WakeContext } from './run/wakes/wake.ts'
import { Waker } from './run/wakes/waker.ts'
import { connectGithub, type GithubConnection } from './github/connection.ts'
import { createApp } from './http/app.ts'
import { runTokenKeysSweep, StoredRunTokenKeys, type RunTokenKeys } from './http/run-token-keys.ts'
import { assertComplete, type ImplementedRoute } from './http/implement.ts'
import { operations } from './http/operations.ts'
import { createHttpServer, listenOn, localUrlOf } from './http/http-server.ts'
import { createKernel } from './kernel.ts'
import { IdleMemory } from './process/idle-memory.ts'
import { createBus, type Bus } from './db/bus.ts'
import { createCloud, operatorKeysOf, type Cloud } from './cloud.ts'
import { ingestCounters } from './link/counters.ts'
import { Ingest } from './link/ingest.ts'
import { LinkRegistry } from './link/registry.ts'
import { DeviceRequests } from './link/requests.ts'
import { isLinkRequest, LinkServer } from './link/server.ts'
import { createOutside } from './outside.ts'
import type { Log } from './process/log.ts'
import { allDownloads } from './downloads/all.ts'
import { mcpEndpoint } from './mcp/endpoint.ts'
import { FileUrls } from './resources/files/signature.ts'
import { clearAllLinks } from './resources/devices/store.ts'
import { listAllWorkspaces } from './resources/workspaces/store.ts'
import { implementResources } from './routes.ts'
import { registerAllRunEffects } from './register-run-effects.ts'
import { createEmbeddings, type Embeddings } from './search/embeddings/embeddings.ts'
import { checkKey } from './resources/secrets/add.ts'
import { createOidcClient } from './sign-in/oidc/client.ts'
import { signInRoutes } from './sign-in/routes.ts'
import { createSweeper } from './sweeps.ts'
import type { Sweeper } from './sweeps/sweeper.ts'
import { Watch } from './watch.ts'
import { Advancer } from './workflows/advance/advancer.ts'
import { WorkflowCatalog } from './workflows/catalog/catalog.ts'
import { EnginePool } from './workflows/engine/pool.ts'

export interface ControlPlaneOptions {
  config: ServerConfig
  database: Database
  world: World
  log: Log
  /** This process and its clock are this server's alone: several may share them, and a test moves the clock. */
  ownsProcess: boolean
  /** Limits of costly work; default `poolLimits`. */
  costly?: PoolLimits
  /** Workers that servers in one process share, and that outlive this one; default its own. */
  workers?: { costly: CostlyPool; engine: EnginePool }
}

/** A drain gives open requests this long, then cuts them. */
const drainMs = 25_000

/** A replica of the control plane, assembled. `start` listens, `stop` drains in order; both may be called twice. */
export class ControlPlane {
  readonly dispatcher: Dispatcher
  readonly waker: Waker
  readonly advancer: Advancer
  readonly sweeper: Sweeper
  readonly ingest: Ingest
  readonly github: GithubConnection
  readonly links = new LinkRegistry()
  readonly bus: Bus
  readonly watch: Watch
  readonly blobs: Blobs
  private readonly options: ControlPlaneOptions
  private readonly catalog: ModelCatalog
  private readonly costly: CostlyPool
  private readonly engine: EnginePool | null
  private readonly workflowCatalog: WorkflowCatalog
  private readonly embeddings: Embeddings
  private readonly idleMemory: IdleMemory
  private readonly shared: ReturnType<typeof createOutside>
  private readonly starter: RunStarter
  private readonly requests: DeviceRequests
  private readonly linkServer: LinkServer
  private readonly services: Services
  private readonly stopping = new AbortController()
  private isLeaving = false
  private readonly wakeContext: WakeContext
  private readonly http: Server
  private readonly cloud: Cloud
  private address: AddressInfo | null = null
  private routes: readonly ImplementedRoute[] = []
  /** Resolves when no connection is left. */
  private closed: Promise<void> = Promise.resolve()

  static async create(options: ControlPlaneOptions): Promise<ControlPlane> {
    registerAllRunEffects()
    const { world, log } = options
    const { root } = options.database
    const runTokenKeys = await StoredRunTokenKeys.read(root, world)
    const place = await claimNowOrLater({ root, place: openBlobPlaces(options.config, world), world, log })
    const plane = new ControlPlane(options, { runTokenKeys, place })
    await checkKey(root, plane.shared.vault)
    await plane.mount(runTokenKeys)
    return plane
  }

  private constructor(
    options: ControlPlaneOptions,
    { runTokenKeys, place }: { runTokenKeys: RunTokenKeys; place: UsedPlace },
  ) {
    this.options = options
    const { config, database, world, log } = options
    const { root, dialect } = database
    this.catalog = loadCatalog(config.modelsFile)
    this.costly =
      options.workers?.costly ?? new CostlyPool({ world, log, ...(options.costly && { limits: options.costly }) })
    this.engine = config.runsWorkflows ? (options.workers?.engine ?? new EnginePool({ world, log })) : null
    this.workflowCatalog = new WorkflowCatalog({
      folder: config.workflowCatalogDir,
      check: (source, owner) => this.costly.run('workflows.check', source, owner),
      log,
    })
    this.idleMemory = new IdleMemory({ world })
    this.watch = new Watch(options)
    const [silentMs, { outboxFailed: onFailed }] = [silentMsOf(config), this.watch]
    this.bus = createBus({ root, dialect, databaseUrl: config.databaseUrl, silentMs, world, log, onFailed })
    const common = { root, world, log, bus: this.bus, links: this.links, replicaId: world.uuid() }
    this.dispatcher = new Dispatcher({ ...common, leaseMs: config.leaseMs, offerMs: config.offerMs })
    const ofServer = { publicUrl: () => this.url, routes: () => this.routes }
    this.shared = createOutside({ ...common, ...ofServer, config })
    this.wakeContext = {
      world,
      cloudEnabled: config.sandbox !== null,
      operatorKeys: operatorKeysOf(config.sandbox),
      runsWorkflows: config.runsWorkflows,
      builtInWorkflows: () => this.workflowCatalog.known(),
      limits: config.runLimits,
      catalog: this.catalog,
      services: this.shared.services,
      offers: this.dispatcher,
    }
    this.waker = new Waker({ ...common, context: this.wakeContext })
    this.github = connectGithub(config.github, {
      ...common,
      everyMs: config.sweepMs,
      wakeContext: this.wakeContext,
      onDeliveryFailed: this.watch.deliveryFailed,
    })
    this.advancer = new Advancer({
      ...common,
      engine: this.engine,
      findSchemaFlaw: (schemas, of) => this.costly.run('schemas.check', schemas, of),
      context: this.wakeContext,
      readsChecks: () => this.github.client !== null,
      leaseMs: config.leaseMs,
    })
    this.blobs = new Blobs({ root, place: this.watch.counted(place), world, log })
    this.starter = new RunStarter({ ...common, vault: this.shared.vault, runTokenKeys, apiUrl: () => this.url })
    this.requests = new DeviceRequests(common)
    this.ingest = new Ingest({
      ...common,
      counters: ingestCounters(this.watch.metrics, log),
      catalog: this.catalog,
      onEnded: (run) => this.dispatcher.runEnded(run),
    })
    this.linkServer = new LinkServer({
      ...common,
      metrics: this.watch.metrics,
      ingest: this.ingest,
      dispatcher: this.dispatcher,
      starter: this.starter,
      requests: this.requests,
      connections: { world, log, ...this.shared },
      heartbeatMs: config.heartbeatMs,
      leaseMs: config.leaseMs,
      trustedProxies: config.trustedProxies,
      session: { pingMs: config.pingMs, deadMs: config.deadMs },
    })
    this.embeddings = createEmbeddings(config.embeddings, { root, world, log })
    this.http = createHttpServer({
      takesUpgrade: isLinkRequest,
      world,
      stopping: this.stopping.signal,
      isLeaving: () => this.isLeaving,
    })
    this.cloud = createCloud({ ...common, ...this.shared, config, http: this.http, github: this.github.client })
    this.sweeper = createSweeper({
      ...common,
      config,
      cloud: this.cloud,
      connections: { world, log, ...this.shared },
      dispatcher: this.dispatcher,
      waker: this.waker,
      advancer: this.advancer,
      others: [...this.github.sweeps, ...this.shared.sweeps, runTokenKeysSweep(runTokenKeys)],
      wakeContext: this.wakeContext,
      blobs: this.blobs,
      filler: this.embeddings.filler,
      noticesSleep: options.ownsProcess,
      watch: this.watch,
    })
    this.watch.add({ links: this.links, bus: this.bus, workers: { costly: this.costly, engine: this.engine } })
    this.services = new Services(this.parts())
  }

  /** Returns the services in the order in which they start. Each may use those before it until it has stopped. */
  private parts(): Service[] {
    const { costly, engine, idleMemory, options } = this
    const { database, ownsProcess, workers } = options
    // Workers that servers share outlive this one.
    const own = (pool: Service): Service => (workers === undefined ? pool : {})
    return [
      ...this.watch.services,
      // Returning devices need not wait for a replica to answer with SQLite, where no other one can hold a link.
      database.dialect === 'sqlite' ? { start: () => clearAllLinks(database.root) } : {},
      this.bus,
      this.dispatcher,
      this.waker,
      own(engine ?? {}),
      this.advancer,
      { start: () => this.starter.listen(), stop: () => this.starter.stop() },
      this.requests,
      { stop: () => this.ingest.idle() },
      own(costly),
      { stop: () => this.blobs.idle() },
      this.shared.renewals,
      { stop: () => this.untilAnswered() },
      this.linkServer,
      this.github,
      { start: () => this.listen() },
      { stop: () => this.embeddings.filler?.stop() },
      ...this.shared.senders,
      this.sweeper,
      this.cloud,
      // The routes of the catalog tell what it cannot read now.
      { start: async () => void (engine !== null && (await this.workflowCatalog.list().catch(() => undefined))) },
      // Several servers in one process must not collect its memory.
      ownsProcess ? idleMemory : {},
      // Last, so that a stop begins with it.
      { stop: () => this.close() },
    ]
  }

  /** The address of this replica: the public one when set, else the one it listens on. */
  get url(): string {
    return this.options.config.publicUrl ?? this.localUrl
  }

  get localUrl(): string {
    const { host, port } = this.options.config
    return localUrlOf(host, this.address?.port ?? port)
  }

  async start(): Promise<void> {
    if (this.address === null) await this.services.start()
  }

  private async listen(): Promise<void> {
    this.address = await listenOn(this.http, this.options.config)
  }

  /**
   * Announces the stop for `ms`, or until `hurry` is aborted: `/readyz` answers `draining` and devices are sent elsewhere. Requests
   * are answered as before, each as the last one of its connection.
   */
  async leave(ms: number, hurry: AbortSignal): Promise<void> {
    this.isLeaving = true
    this.linkServer.leave(ms)
    await this.options.world.sleep(ms, hurry).catch(() => undefined)
  }

  /** Stops accepting, closes links so that devices go elsewhere, lets requests finish, then stops the parts behind. */
  stop(): Promise<void> {
    return this.services.stop()
  }

  private close(): void {
    this.stopping.abort()
    this.closed = new Promise((resolve) => this.http.close(() => resolve()))
  }

  private async untilAnswered(): Promise<void> {
    const cancel = this.options.world.after(drainMs, () => this.http.closeAllConnections())
    await this.closed
    cancel()
  }

  private async mount(runTokenKeys: RunTokenKeys): Promise<void> {
    const [{ config, database, world, log }, { root }] = [this.options, this.shared]
    const kernel = await createKernel({
      config,
      database,
      world,
      log,
      runTokenKeys,
      ...this.shared,
      blobs: this.blobs,
      stopping: this.stopping.signal,
      observe: (record) => {
        if (record.routeId !== null) this.idleMemory.active()
        this.watch.requested(record)
      },
    })
    const fileUrls = new FileUrls(await randomServerKey(root, 'file_urls', world))
    this.routes = implementResources({
      ...this.shared,
      bus: this.bus,
      requests: this.requests,
      costly: this.costly,
      engine: this.engine,
      workflowCatalog: this.workflowCatalog,
      ...settingsOfHandlers(config),
      cloud: this.cloud.setup,
      catalog: this.catalog,
      wakeContext: this.wakeContext,
      github: this.github.client,
      isGithubInstalled: this.github.isInstalled,
      blobs: this.blobs,
      meaning: this.embeddings.meaning,
      fileUrls,
      isSweeping: () => this.sweeper.isRunning,
      publicUrl: () => this.url,
    })
    assertComplete(contract, this.routes)
    const isDraining = () => this.isLeaving || this.stopping.signal.aborted
    const isOnlyWorkspace = async (id: string) => (await listAllWorkspaces(root, 2)).every((each) => each.id === id)
    const [{ callers, isHttps, limiter, rooms }, { publicUrl, metricsToken }] = [kernel, config]
    const oidc = config.oidc === null ? null : createOidcClient(config.oidc)
    const handle = createApp(this.routes, kernel, [
      operations({ root, metrics: this.watch, callers, metricsToken, isOnlyWorkspace, isDraining }),
      this.github.receiver({ limiter, costly: this.costly }),
      mcpEndpoint({ kernel, contract, server: this.http, root, blobs: this.blobs }),
      ...allDownloads({ root, blobs: this.blobs, urls: fileUrls, world, log, rooms }),
      signInRoutes({ ...this.shared, world, log, limiter, rooms, publicUrl, isHttps, sessions: config.sessions, oidc }),
    ]).callback()
    this.http.on('request', (request, response) => void handle(request, response))
    this.http.on('upgrade', (request, socket, head) => this.linkServer.upgrade(request, socket, head))
  }
}
