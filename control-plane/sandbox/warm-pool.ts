import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import type { WaitingSandbox } from '../../shared/device/sandbox.ts'
import { inTransaction } from '../db/transaction.ts'
import { nextWarmAct, planPool, type WarmAct } from '../resources/sandboxes/machine.ts'
import { countSandboxesOfEngine } from '../resources/sandboxes/store.ts'
import {
  deleteWarm,
  findWarm,
  insertWarm,
  keepWarm,
  listWarmOfEngine,
  replaceWarm,
  warmNameOf,
  type WarmRow,
} from '../resources/sandboxes/warm-store.ts'
import type { ActOptions } from './acts.ts'
import { type Container, EngineError, type EngineFacts, within } from './engine.ts'

export interface WarmPoolOptions extends ActOptions {
  /** The number of containers that are to wait for runs. */
  warm: number
  most: number
}

/** The size of all containers that are made ahead. */
export const warmSize = 'small'

/** The image is looked at this often. */
const imageMs = 5_000
const keepMs = 20_000
/** A container that no server has kept for so long is taken away. */
const leftMs = 60_000
/** A run that has just been given one needs the processors. */
const refillMs = 3_000
/** A container that has lived for so long shows that containers can be made. */
const soundMs = 30_000
const mostPauseMs = 60_000
const stopMs = 8_000
const logLines = 20

/**
 * Keeps containers that are made ahead of the runs that they will have, and takes away what is left of them
 * (`resources/sandboxes/machine.ts`). Their rows are the truth, as those of sandboxes are.
 */
export class WarmPool {
  private readonly options: WarmPoolOptions
  /** The ids of containers that this server made. */
  private readonly made = new Set<string>()
  private make: { madeOf: string; image: string; at: number } | null = null
  private keptAt = Number.NEGATIVE_INFINITY
  private notBefore = Number.NEGATIVE_INFINITY
  private failures = 0
  private isStopping = false
  private cancelLook = (): void => {}

  constructor(options: WarmPoolOptions) {
    this.options = options
  }

  /** Tells what a container must be made of to be given to a run; null: none is given. */
  get madeOf(): string | null {
    return this.isStopping ? null : (this.make?.madeOf ?? null)
  }

  /** Is called before containers are given to runs: none is given whose image is another one by now. */
  async prepare(facts: EngineFacts): Promise<void> {
    const { root, world, engine, image: name, runtime, sizes, brokers, warm } = this.options
    if (warm === 0) return
    if (this.make === null || world.monotonic() - this.make.at >= imageMs) {
      const image = await engine.findImage(name)
      const size = within(sizes[warmSize], facts)
      const of = JSON.stringify({ image, runtime, size, folder: brokers.folder })
      const madeOf = createHash('sha256').update(of).digest('hex').slice(0, 32)
      this.make = image === null ? null : { madeOf, image, at: world.monotonic() }
    }
    if (this.make === null || world.monotonic() - this.keptAt < keepMs) return
    await keepWarm(root, { engineId: facts.id, madeOf: this.make.madeOf }, world.now())
    this.keptAt = world.monotonic()
  }

  /** Is called when a run was given a container. */
  taken(): void {
    this.failures = 0
    this.pause(refillMs)
  }

  /** Plans by what there is, and returns what is to be done with each container. */
  plan(
    rows: readonly WarmRow[],
    { facts, containers, sandboxes }: { facts: EngineFacts; containers: readonly Container[]; sandboxes: number },
  ): { id: string; act: () => Promise<void> }[] {
    const { world, warm, most } = this.options
    const now = world.now()
    const { madeOf } = this
    const isKept = ({ id, keptAt }: WarmRow) => !this.made.has(id) && now - keptAt < leftMs
    const seen = rows.map((row) => ({ ...row, isKept: isKept(row) }))
    const { unwanted, missing } = planPool({ warm: seen, madeOf, wanted: warm, most, sandboxes })
    const acts = rows.map((row) => {
      const container = containers.find(({ sandboxId }) => sandboxId === row.id) ?? null
      const state = container?.state ?? null
      const forMs = now - row.stateAt
      if (row.state === 'ready' && forMs > soundMs) this.failures = 0
      const act = nextWarmAct(row.state, { container: state, isWanted: !unwanted.has(row.id), forMs })
      return { id: row.id, act: () => this.do(row, act, { container, facts }) }
    })
    const pauseMs = this.notBefore - world.monotonic()
    this.cancelLook()
    if (missing > 0 && pauseMs > 0) this.cancelLook = world.after(pauseMs, this.options.reconcileSoon)
    if (missing === 0 || pauseMs > 0) return acts
    return [...acts, { id: 'pool', act: () => this.add(facts) }]
  }

  /** Takes the containers away, since another server may never come. Those that are not gone in time are left for it. */
  async stop(engineId: string | null): Promise<void> {
    const { root, world, log } = this.options
    const madeOf = this.make?.madeOf
    this.isStopping = true
    this.cancelLook()
    if (engineId === null || madeOf === undefined) return
    const rows = (await listWarmOfEngine(root, engineId)).filter((row) => row.madeOf === madeOf)
    const all = rows.map((row) =>
      this.removeNow(row).catch((error: unknown) => log.debug({ err: error, sandbox: row.id }, 'left for the next')),
    )
    await Promise.race([Promise.all(all), world.sleep(stopMs)])
  }

  private async removeNow(row: WarmRow): Promise<void> {
    await this.retire(row)
    const now = await findWarm(this.options.root, row.id)
    if (now?.state === 'retiring') await this.remove(now)
  }

  /** Writes the row of one more container, where there is still room for it. */
  private async add({ id: engineId }: EngineFacts): Promise<void> {
    const { root, world, brokers, most, warm } = this.options
    const { make } = this
    if (make === null || this.isStopping) return
    const at = world.now()
    const id = world.id('sbx_')
    const row: WarmRow = {
      id,
      engineId,
      device: world.id('dvc_'),
      deviceUuid: world.uuid(),
      madeOf: make.madeOf,
      image: make.image,
      folder: brokers.folderOf(id),
      state: 'making',
      stateAt: at,
      keptAt: at,
      version: 1,
      createdAt: at,
    }
    this.made.add(id)
    const write = async (tx: Knex.Transaction) => {
      const others = await listWarmOfEngine(tx, engineId)
      const own = others.filter(({ madeOf, state }) => madeOf === make.madeOf && state !== 'retiring')
      if (own.length >= warm) return
      if (others.length + (await countSandboxesOfEngine(tx, engineId)) >= most) return
      await insertWarm(tx, row)
    }
    await inTransaction(root, write, { locks: ['sandboxes'] })
    this.options.reconcileSoon()
  }

  private async do(
    row: WarmRow,
    act: WarmAct,
    { container, facts }: { container: Container | null; facts: EngineFacts },
  ): Promise<void> {
    const { root, world } = this.options
    switch (act.do) {
      case 'wait':
        return
      case 'create':
        return this.create(row, facts)
      case 'start':
        return this.start(row, container!.id)
      case 'enter':
        if (await replaceWarm(root, row, { state: act.state, stateAt: world.now() })) this.options.reconcileSoon()
        return
      case 'retire':
        if (act.hasDied) await this.noteDeath(row, container)
        return this.retire(row)
      case 'remove':
        return this.remove(row)
    }
  }

  private async create(row: WarmRow, facts: EngineFacts): Promise<void> {
    const { root, engine, brokers, keys, runtime, sizes } = this.options
    try {
      const { network, hostFolder } = await brokers.routeOf(row)
      const { diskBytes } = sizes[warmSize]
      const own = { publicId: row.device, deviceId: row.deviceUuid, displayName: 'Sandbox' }
      const waiting: WaitingSandbox = { ...own, size: warmSize, diskBytes, network, ...(hostFolder && { hostFolder }) }
      if (row.folder !== brokers.folderOf(row.id) || (await findWarm(root, row.id))?.version !== row.version) return
      await brokers.standBy(row.id, waiting)
      const name = warmNameOf(row.id)
      const id = await engine.create({
        name,
        image: row.image,
        serverId: keys.serverId,
        sandboxId: row.id,
        of: null,
        size: within(sizes[warmSize], facts),
        volume: name,
        brokerFolder: row.folder,
        identity: null,
        runtime,
      })
      await this.start(row, id)
    } catch (error) {
      await this.failed(row, error)
    }
  }

  private async start(row: WarmRow, id: string): Promise<void> {
    const { engine, reconcileSoon } = this.options
    try {
      await engine.start(id)
      reconcileSoon()
    } catch (error) {
      await this.failed(row, error)
    }
  }

  /** A run is told what is wrong when a container is made for it. Here it is enough not to try again at once. */
  private async failed(row: WarmRow, error: unknown): Promise<void> {
    if (!(error instanceof EngineError)) throw error
    this.options.log.warn({ err: error, sandbox: row.id }, 'a sandbox could not be made ahead')
    this.backOff()
    await this.retire(row)
  }

  private async noteDeath(row: WarmRow, container: Container | null): Promise<void> {
    const { engine, log } = this.options
    const said = container === null ? '' : await engine.logs(container.id, logLines).catch(() => '')
    log.warn({ sandbox: row.id, said: said.slice(-2_000) }, 'a sandbox that was made ahead has ended')
    this.backOff()
  }

  private async retire(row: WarmRow): Promise<void> {
    const { root, world, reconcileSoon } = this.options
    if (row.state === 'retiring') return
    if (await replaceWarm(root, row, { state: 'retiring', stateAt: world.now() })) reconcileSoon()
  }

  private async remove(row: WarmRow): Promise<void> {
    const { root, engine, brokers, reconcileSoon } = this.options
    const name = warmNameOf(row.id)
    await engine.remove(name, name)
    await brokers.close(row)
    await deleteWarm(root, row)
    this.made.delete(row.id)
    reconcileSoon()
  }

  private backOff(): void {
    this.pause(Math.min(mostPauseMs, 1_000 * 2 ** this.failures))
    this.failures = Math.min(this.failures + 1, 10)
  }

  private pause(ms: number): void {
    this.notBefore = Math.max(this.notBefore, this.options.world.monotonic() + ms)
  }
}
