import type { SandboxId } from '../../shared/lib/ids.ts'
import type { Bus } from '../db/bus.ts'
import { KeyedQueue } from '../process/keyed-queue.ts'
import { findDeviceByPublicId } from '../resources/devices/store.ts'
import { findRun } from '../resources/runs/store.ts'
import { nextAct, type Seen } from '../resources/sandboxes/machine.ts'
import {
  findSandbox,
  isVolumeNeeded,
  listLeftVolumes,
  listSandboxesOfEngine,
  recordEngine,
  replaceSandbox,
  type SandboxRow,
  volumeOf,
} from '../resources/sandboxes/store.ts'
import { findWarm, listWarmOfEngine } from '../resources/sandboxes/warm-store.ts'
import { type ActOptions, SandboxActs, settledMs } from './acts.ts'
import { type Container, EngineError, type EngineFacts } from './engine.ts'
import { WarmPool } from './warm-pool.ts'
import { wantSandboxes } from './wanted.ts'

export interface KeeperOptions extends Omit<ActOptions, 'reconcileSoon'> {
  bus: Bus
  /** Containers that are made ahead of their runs. */
  warm: number
  /** Sandboxes at once, in all and of one workspace. */
  most: number
  mostOfWorkspace: number
  leaseMs: number
}

const watchAgainMs = 5_000
/** The time between the beginnings of two looks. */
const restMs = 100
/** The keeper asks this often what the engine says of itself, and writes it down. */
const factsMs = 20_000
/** Volumes that nobody knows are looked for this often. */
const volumesMs = 60_000
/** A run that goes on with a volume is made within this time. */
const heirMs = 10 * 60_000
/** A server that begins to create a sandbox has it created within this time, or is gone. */
const creatingMs = 60_000

/**
 * Makes the sandboxes of the runs that want one, and leads each to its end (`resources/sandboxes/machine.ts`). It looks at what the
 * database and the engine have, each time anew, and does what is next: so it may die at any line, and another server that
 * reaches the engine may go on. What the engine or the outbox tell only makes it look sooner.
 */
export class SandboxKeeper {
  private readonly options: KeeperOptions
  private readonly acts: SandboxActs
  private readonly pool: WarmPool
  private readonly queue: KeyedQueue
  private readonly unsubscribe: (() => void)[] = []
  private readonly stopping = new AbortController()
  private trouble: string | null = null
  private known: { facts: EngineFacts; at: number } | null = null
  private reconciledAt = -restMs
  private sweptAt = -volumesMs
  private isReconcileDue = false
  /** When the last act on a sandbox ended: a look that began before saw what was then, and not all acts change its row. */
  private readonly actedAt = new Map<SandboxId, number>()

  constructor(options: KeeperOptions) {
    this.options = options
    this.acts = new SandboxActs({ ...options, reconcileSoon: () => this.reconcileSoon() })
    this.pool = new WarmPool({ ...options, reconcileSoon: () => this.reconcileSoon() })
    this.queue = new KeyedQueue(options.log, 'a sandbox could not be looked after; the next look tries again')
  }

  start(): void {
    this.queue.start()
    const { bus } = this.options
    for (const topic of ['run.queued', 'run.ended', 'device.changed'] as const)
      this.unsubscribe.push(bus.on(topic, () => this.reconcileSoon()))
    void this.watch()
  }

  async stop(): Promise<void> {
    for (const off of this.unsubscribe.splice(0)) off()
    this.stopping.abort()
    await this.queue.stop()
    await this.pool.stop(this.known?.facts.id ?? null)
    await this.options.brokers.stop()
  }

  reconcileSoon(): void {
    if (this.isReconcileDue || this.queue.isStopped) return
    this.isReconcileDue = true
    const { world } = this.options
    const look = () => this.queue.add('reconcile', () => this.reconcile(), 'reconcile')
    const inMs = restMs - (world.monotonic() - this.reconciledAt)
    if (inMs <= 0) look()
    else world.after(inMs, look)
  }

  idle(): Promise<void> {
    return this.queue.idle()
  }

  private async watch(): Promise<void> {
    const { engine, keys, log, world } = this.options
    const { signal } = this.stopping
    while (!signal.aborted) {
      this.reconcileSoon()
      await engine
        .watch(keys.serverId, () => this.happened(), signal)
        .catch((error: unknown) => log.debug({ err: error }, 'the engine tells of nothing now'))
      await world.sleep(watchAgainMs, signal).catch(() => undefined)
    }
  }

  /** The engine tells that a container ends before its list says so. */
  private happened(): void {
    this.reconcileSoon()
    this.options.world.after(settledMs, () => this.reconcileSoon())
  }

  private async reconcile(): Promise<void> {
    const { root, world, engine, keys, brokers } = this.options
    this.isReconcileDue = false
    this.reconciledAt = world.monotonic()
    const facts = await this.findEngine()
    if (facts === null) return
    await this.pool.prepare(facts)
    const { pool } = this
    const wanting = { engineId: facts.id, tokenOf: keys.tokenOf, madeOf: pool.madeOf, taken: () => pool.taken() }
    await wantSandboxes({ ...this.options, ...wanting })
    // Rows first: a container is at least as far as the row that was read before it. What is taken between both lists is in both.
    const at = world.monotonic()
    const warm = await listWarmOfEngine(root, facts.id)
    const rows = await listSandboxesOfEngine(root, facts.id)
    const containers = await engine.list(keys.serverId)
    // A sandbox is listed until it is removed.
    for (const id of this.actedAt.keys()) if (!rows.some((row) => row.id === id)) this.actedAt.delete(id)
    const placed = this.placed(rows, warm.length)
    for (const row of rows) {
      const container = containers.find(({ sandboxId }) => sandboxId === row.id) ?? null
      this.queue.add(
        row.id,
        () => this.reconcileSandbox(row, { container, facts, hasPlace: placed.has(row.id), at }),
        'reconcile',
      )
    }
    for (const { id, act } of pool.plan(warm, { facts, containers, sandboxes: rows.length }))
      this.queue.add(id, act, 'reconcile')
    // The creator of a sandbox has begun to listen for it, so those that are being created are left out.
    await brokers.keep(rows.filter(({ state }) => state !== 'wanted' && state !== 'creating' && state !== 'ended'))
    const known = new Set([...rows, ...warm].map(({ id }) => id))
    for (const container of containers)
      if (!known.has(container.sandboxId) && (await this.isGone(container.sandboxId)))
        this.queue.add(container.name, () => this.removeOrphan(container.name), 'orphan')
    for (const row of await listLeftVolumes(root, facts.id))
      this.queue.add(row.id, () => this.reconcileLeftVolume(row), 'left')
    await this.sweepVolumes()
    for (const id of brokers.known())
      if (!known.has(id) && (await this.isGone(id))) await brokers.close({ id, folder: null })
  }

  /** The sandboxes that may have a container now, oldest first. Containers that were made ahead and are not gone take places, too. */
  private placed(rows: readonly SandboxRow[], warm: number): Set<string> {
    const waiting = rows.filter(({ state, container }) => state === 'wanted' && container === null)
    const places = this.options.most - warm - (rows.length - waiting.length)
    return new Set(waiting.slice(0, Math.max(0, places)).map(({ id }) => id))
  }

  /** Removes a volume that is kept for a run where that run has ended, or none was made: no sandbox will go on with it. */
  private async reconcileLeftVolume(row: SandboxRow): Promise<void> {
    const { root, world, engine } = this.options
    const heirId = (await findRun(root, row.runId))?.successorRunId ?? null
    const heir = heirId === null ? null : await findRun(root, heirId)
    const isWaitedFor = heir === null ? world.now() - (row.removedAt ?? 0) < heirMs : heir.endedAt === null
    // The row is written first: a server that makes a sandbox with the volume meanwhile finds that it is left to nobody.
    if (isWaitedFor || !(await replaceSandbox(root, row, { leavesVolume: false }))) return
    await engine.removeVolume(volumeOf(row))
  }

  /** Volumes of which nobody knows any more: a server died before it removed one, or the workspace is gone. */
  private async sweepVolumes(): Promise<void> {
    const { root, world, engine, keys } = this.options
    if (world.monotonic() - this.sweptAt < volumesMs) return
    this.sweptAt = world.monotonic()
    for (const name of await engine.listVolumes(keys.serverId))
      if (!(await isVolumeNeeded(root, name))) this.queue.add(name, () => engine.remove(name, name), 'volume')
  }

  private async removeOrphan(name: string): Promise<void> {
    const { root, engine } = this.options
    await engine.remove(name, (await isVolumeNeeded(root, name)) ? null : name)
  }

  private async isGone(sandboxId: SandboxId): Promise<boolean> {
    // Containers without a run are looked at first: from there one comes to the sandboxes, and never back.
    if ((await findWarm(this.options.root, sandboxId)) !== null) return false
    const row = await findSandbox(this.options.root, sandboxId)
    return row === null || row.removedAt !== null
  }

  /** Resolves with the facts of the engine; null: it is out of reach. */
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

  private async reconcileSandbox(
    seenRow: SandboxRow,
    {
      container,
      facts,
      hasPlace,
      at,
    }: { container: Container | null; facts: EngineFacts; hasPlace: boolean; at: number },
  ): Promise<void> {
    const { root, world } = this.options
    const row = await findSandbox(root, seenRow.id)
    if (row === null || row.removedAt !== null) return
    // The container was looked at before what happened since.
    if (row.version !== seenRow.version || at <= (this.actedAt.get(row.id) ?? -1)) return this.reconcileSoon()
    const [run, device] = await Promise.all([findRun(root, row.runId), findDeviceByPublicId(root, row.device)])
    const seen: Seen = {
      container: container?.state ?? null,
      hasLinked: device?.lastHeartbeatAt != null,
      isBeingCreated: !this.acts.begun.has(row.id) && world.now() - row.stateAt < creatingMs,
      hasStarted: run !== null && run.startedAt !== null,
      maySalvageAgain: row.state === 'salvaging' && (await this.acts.maySalvageAgain(row, container)),
      isRunOver: run === null || run.endedAt !== null,
      isWarm: row.container !== null,
      hasPlace,
      forMs: world.now() - row.stateAt,
    }
    const act = nextAct(row.state, seen)
    try {
      await this.acts.do(row, act, { container, facts })
    } finally {
      if (act.do !== 'wait') this.actedAt.set(row.id, world.monotonic())
    }
  }
}
