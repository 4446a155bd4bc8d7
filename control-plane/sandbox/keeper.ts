import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Bus } from '../db/bus.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction, publish } from '../db/transaction.ts'
import { finishRun } from '../lifecycle/end-run.ts'
import { Lines } from '../process/lines.ts'
import type { Log } from '../process/log.ts'
import { removeSandboxDevice } from '../resources/devices/steps/remove.ts'
import { findDeviceByPublicId } from '../resources/devices/store.ts'
import { findRun } from '../resources/runs/store.ts'
import { nextAct, type Act, type SandboxState, type Seen } from '../resources/sandboxes/machine.ts'
import {
  findSandbox,
  listSandboxesOfEngine,
  recordEngine,
  replaceSandbox,
  type SandboxRow,
} from '../resources/sandboxes/store.ts'
import type { Brokers } from './broker/brokers.ts'
import { EngineError, sizes, type Container, type EngineFacts, type SandboxEngine, type SizeLimits } from './engine.ts'
import type { SandboxKeys } from './tokens.ts'
import { wantSandboxes } from './wanted.ts'

export interface KeeperOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  engine: SandboxEngine
  brokers: Brokers
  keys: SandboxKeys
  /** The name of the image. */
  image: string
  runtime: string | null
  /** Sandboxes at once, in all and of one workspace. */
  most: number
  mostOfWorkspace: number
  leaseMs: number
}

const stopGraceMs = 10_000
const logLines = 100
const watchAgainMs = 5_000
/** Between the beginnings of two looks. */
const restMs = 100
/** After an event the engine's list is as that says within this time. */
const settledMs = 500
/** What the engine says of itself is asked for, and written down, this often. */
const factsMs = 20_000
/** Whoever begins to create a sandbox has it created within this time, or is gone. */
const creatingMs = 60_000

/**
 * Makes the sandboxes of the runs that want one, and leads each to its end (`resources/sandboxes/machine.ts`). It looks at what the
 * database and the engine have, each time anew, and does what is next: so it may die at any line, and another server that
 * reaches the engine may go on. What the engine or the outbox tell only makes it look sooner.
 */
export class SandboxKeeper {
  private readonly options: KeeperOptions
  private readonly lines: Lines
  private readonly unsubscribe: (() => void)[] = []
  private readonly stopping = new AbortController()
  private trouble: string | null = null
  private known: { facts: EngineFacts; at: number } | null = null
  private lookedAt = -restMs
  private isLookDue = false

  constructor(options: KeeperOptions) {
    this.options = options
    this.lines = new Lines(options.log, 'a sandbox could not be looked after; the next look tries again')
  }

  start(): void {
    this.lines.start()
    const { bus } = this.options
    for (const topic of ['run.queued', 'run.ended', 'device.changed'] as const)
      this.unsubscribe.push(bus.on(topic, () => this.lookSoon()))
    void this.watch()
  }

  async stop(): Promise<void> {
    for (const off of this.unsubscribe.splice(0)) off()
    this.stopping.abort()
    await this.lines.stop()
    await this.options.brokers.stop()
  }

  lookSoon(): void {
    if (this.isLookDue || this.lines.isStopped) return
    this.isLookDue = true
    const { world } = this.options
    const look = () => this.lines.add('look', () => this.look(), 'look')
    const inMs = restMs - (world.monotonic() - this.lookedAt)
    if (inMs <= 0) look()
    else world.after(inMs, look)
  }

  idle(): Promise<void> {
    return this.lines.idle()
  }

  private async watch(): Promise<void> {
    const { engine, keys, log, world } = this.options
    const { signal } = this.stopping
    while (!signal.aborted) {
      this.lookSoon()
      await engine
        .watch(keys.serverId, () => this.happened(), signal)
        .catch((error: unknown) => log.debug({ err: error }, 'the engine tells of nothing now'))
      await world.sleep(watchAgainMs, signal).catch(() => undefined)
    }
  }

  /** The engine tells that a container ends before its list says so. */
  private happened(): void {
    this.lookSoon()
    this.options.world.after(settledMs, () => this.lookSoon())
  }

  private async look(): Promise<void> {
    const { root, world, engine, keys, brokers } = this.options
    this.isLookDue = false
    this.lookedAt = world.monotonic()
    const facts = await this.findEngine()
    if (facts === null) return
    await wantSandboxes({ ...this.options, engineId: facts.id, tokenOf: keys.tokenOf })
    // Listed before the rows: what has no row then is nobody's.
    const folders = brokers.known()
    const containers = await engine.list(keys.serverId)
    const rows = await listSandboxesOfEngine(root, facts.id)
    const known = new Set(rows.map(({ id }) => id))
    for (const row of rows) {
      const container = containers.find(({ sandboxId }) => sandboxId === row.id) ?? null
      this.lines.add(row.id, () => this.lookAt(row.id, container, facts), 'look')
    }
    for (const container of containers)
      if (!known.has(container.sandboxId)) this.lines.add(container.name, () => engine.remove(container), 'orphan')
    for (const id of folders) if (!known.has(id)) await brokers.close({ id, folder: null })
    await brokers.keep(rows)
  }

  /** null: it is out of reach. */
  private async findEngine(): Promise<EngineFacts | null> {
    const { root, world, engine, log, most, mostOfWorkspace } = this.options
    if (this.known !== null && world.monotonic() - this.known.at < factsMs) return this.known.facts
    try {
      const facts = await engine.identify()
      await recordEngine(root, { id: facts.id, kind: engine.kind, most, mostOfWorkspace, readyAt: world.now() })
      this.known = { facts, at: world.monotonic() }
      if (this.trouble !== null) log.info({}, 'the engine of the sandboxes is there again')
      this.trouble = null
      return facts
    } catch (error) {
      this.known = null
      if (!(error instanceof EngineError)) throw error
      if (this.trouble !== error.message) log.warn({ err: error }, 'the engine of the sandboxes cannot be used')
      this.trouble = error.message
      return null
    }
  }

  private async lookAt(id: string, container: Container | null, facts: EngineFacts): Promise<void> {
    const { root, world } = this.options
    const row = await findSandbox(root, id)
    if (row === null || row.removedAt !== null) return
    const [run, device] = await Promise.all([findRun(root, row.runId), findDeviceByPublicId(root, row.device)])
    const seen: Seen = {
      container: container?.state ?? null,
      hasLinked: device?.lastHeartbeatAt != null,
      isBeingCreated: row.folder !== this.options.brokers.folderOf(id) && world.now() - row.stateAt < creatingMs,
      isRunOver: run === null || run.endedAt !== null,
      forMs: world.now() - row.stateAt,
    }
    await this.act(row, nextAct(row.state, seen), { container, facts })
  }

  private async act(
    row: SandboxRow,
    act: Act,
    { container, facts }: { container: Container | null; facts: EngineFacts },
  ): Promise<void> {
    const { engine } = this.options
    switch (act.do) {
      case 'wait':
        if (row.state === 'ended') this.options.world.after(settledMs, () => this.lookSoon())
        return
      case 'enter':
        return this.enter(row, act.state)
      case 'create':
        return this.create(row, facts)
      case 'start':
        await engine.start(container!.id)
        return this.lookSoon()
      case 'give up':
        return this.giveUp(row, act, container)
      case 'stop':
        await engine.stop(container!.id, stopGraceMs)
        return this.lookSoon()
      case 'remove':
        return this.remove(row, container)
    }
  }

  private async enter(row: SandboxRow, state: SandboxState): Promise<void> {
    const { root, world, brokers } = this.options
    const folder = state === 'creating' ? brokers.folderOf(row.id) : row.folder
    if (!(await replaceSandbox(root, row, { state, folder, stateAt: world.now() }))) return
    if (state === 'linked') brokers.forgetToken(row)
    this.lookSoon()
  }

  private async create(row: SandboxRow, facts: EngineFacts): Promise<void> {
    const { root, engine, brokers, keys, image: name, runtime } = this.options
    try {
      const image = row.image ?? (await engine.findImage(name))
      if (image === null) {
        const message = `The engine has no image ${name} (docs/sandbox.md says how to build it).`
        throw new EngineError(message, { isRefusal: true })
      }
      const device = await findDeviceByPublicId(root, row.device)
      if (device === null) return
      const { publicId, deviceId, displayName } = device
      const folder = brokers.folderOf(row.id)
      if (row.folder !== folder && !(await replaceSandbox(root, row, { folder }))) return
      await brokers.open(row.id, { publicId, deviceId, displayName, token: keys.tokenOf(row.id) })
      const containerId = await engine.create({
        name: nameOf(row),
        image,
        serverId: keys.serverId,
        sandboxId: row.id,
        workspaceId: row.workspaceId,
        runId: row.runId,
        size: within(sizes[row.size], facts),
        brokerFolder: folder,
        runtime,
      })
      const now = await findSandbox(root, row.id)
      if (now?.state !== 'creating' || !(await replaceSandbox(root, now, { containerId, image }))) return
      await engine.start(containerId)
      this.lookSoon()
    } catch (error) {
      if (!(error instanceof EngineError) || !error.isRefusal) throw error
      await this.giveUp(row, { exitReason: 'dispatch_error', why: error.message }, null)
    }
  }

  /** Ends the run, with what the sandbox said last. */
  private async giveUp(
    row: SandboxRow,
    { exitReason, why }: { exitReason: 'dispatch_error' | 'sandbox_lost'; why: string },
    container: Container | null,
  ): Promise<void> {
    const { root, world, log, engine } = this.options
    const said = container === null ? '' : await engine.logs(container.id, logLines).catch(() => '')
    const trouble = said.trim() === '' ? why : `${why} Its last words:\n${said.trim().slice(-3_000)}`
    const end = async (tx: Tx) => {
      const now = await findSandbox(tx, row.id)
      if (now === null || now.version !== row.version) return
      const at = world.now()
      await replaceSandbox(tx, now, { state: 'ended', stateAt: at, trouble })
      const run = await findRun(tx, row.runId)
      if (run === null || run.endedAt !== null) return
      await finishRun(tx, run, { fence: null, exitReason, errorMessage: trouble, at, world })
      await publish(tx, { topic: 'run.cancel', key: run.id, at })
    }
    await inTransaction(root, end, { turns: [row.workspaceId] })
    log.warn({ sandbox: row.id, runId: row.runId, exitReason }, why)
    this.lookSoon()
  }

  private async remove(row: SandboxRow, container: Container | null): Promise<void> {
    const { root, world, engine, brokers } = this.options
    await engine.remove({ id: container?.id ?? row.containerId, name: nameOf(row) })
    await brokers.close(row)
    const gone = async (tx: Tx) => {
      const at = world.now()
      const device = await findDeviceByPublicId(tx, row.device)
      if (device !== null) await removeSandboxDevice(tx, device, at)
      await replaceSandbox(tx, row, { removedAt: at })
    }
    await inTransaction(root, gone, { turns: [row.workspaceId] })
    // Its place is free.
    this.lookSoon()
  }
}

const nameOf = ({ runId, fence }: SandboxRow) => `svc-${runId}-${fence}`

/** The engine refuses more processors than it has. */
const within = (size: SizeLimits, { cpus }: EngineFacts): SizeLimits => ({ ...size, cpus: Math.min(size.cpus, cpus) })
