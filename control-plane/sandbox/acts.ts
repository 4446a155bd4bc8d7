import type { Knex } from 'knex'
import type { SandboxState } from '../../shared/runs/sandbox-states.ts'
import { runnerStatus, type SandboxIdentity } from '../../shared/device/sandbox.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction } from '../db/transaction.ts'
import { hashToken } from '../http/token-hash.ts'
import { finishRun } from '../run/endings/end-run.ts'
import type { Log } from '../process/log.ts'
import { removeSandboxDevice } from '../resources/devices/steps/remove.ts'
import { findDeviceByPublicId, renewFirstToken } from '../resources/devices/store.ts'
import { findRun } from '../resources/runs/store.ts'
import { mostSalvages, type Act } from '../resources/sandboxes/machine.ts'
import {
  engineNameOf,
  volumeOf,
  findSandbox,
  takesOverVolume,
  replaceSandbox,
  type SandboxRow,
} from '../resources/sandboxes/store.ts'
import type { BrokerPlaces, KnownPlace } from './broker/brokers.ts'
import {
  describeSize,
  EngineError,
  type Container,
  type ContainerSpec,
  type EngineFacts,
  type SandboxEngine,
  type Sizes,
  within,
} from './engine.ts'
import type { SandboxKeys } from './tokens.ts'

export interface ActOptions {
  root: Knex
  world: World
  log: Log
  engine: SandboxEngine
  brokers: BrokerPlaces
  keys: SandboxKeys
  /** The name of the image. */
  image: string
  runtime: string | null
  sizes: Sizes
  reconcileSoon: () => void
}

const stopGraceMs = 10_000
const logLines = 100
/** A replica that made a container ahead tells it of its run within this time, or is gone. */
const admitMs = 10_000
/** The engine's list is as an event says within this time after it. */
export const settledMs = 500

/** Does each act on a sandbox, on the engine and in the database. An act may be done again after a server died in it. */
export class SandboxActs {
  /** Sandboxes that this server has begun to create. */
  readonly begun = new Set<string>()
  /**
   * The number of times that this server had a container tell what a run left. The next server begins anew, within the time that is left.
   */
  private readonly salvages = new Map<string, number>()
  private readonly options: ActOptions

  constructor(options: ActOptions) {
    this.options = options
  }

  /** Does what is next, once. */
  async do(
    row: SandboxRow,
    act: Act,
    { container, facts }: { container: Container | null; facts: EngineFacts },
  ): Promise<void> {
    const { engine } = this.options
    switch (act.do) {
      case 'wait':
        if (row.state === 'ended') this.options.world.after(settledMs, () => this.options.reconcileSoon())
        return
      case 'enter':
        return act.state === 'creating' ? this.beginToCreate(row, facts) : this.enter(row, act.state)
      case 'create':
        return this.create(row, facts)
      case 'start':
        return this.start(row, container!)
      case 'admit':
        return this.admit(row)
      case 'replace':
        return this.replace(row)
      case 'note loss':
        return this.noteLoss(row, container)
      case 'salvage':
        return this.salvage(row, { container, facts })
      case 'give up':
        return this.giveUp(row, act, container)
      case 'stop':
        await engine.stop(container!.id, stopGraceMs)
        return this.options.reconcileSoon()
      case 'remove':
        return this.remove(row)
    }
  }

  private async enter(row: SandboxRow, state: SandboxState): Promise<void> {
    const { root, world, brokers } = this.options
    if (!(await replaceSandbox(root, row, { state, stateAt: world.now() }))) return
    if (state === 'linked') brokers.forgetToken(row)
    this.options.reconcileSoon()
  }

  /** Goes on at once: the run waits, and the next look has a rest before it. */
  private async beginToCreate(row: SandboxRow, facts: EngineFacts): Promise<void> {
    const { root, world, brokers } = this.options
    const folder = brokers.folderOf(row.id)
    if (!(await replaceSandbox(root, row, { state: 'creating', folder, stateAt: world.now() }))) return
    this.begun.add(row.id)
    const begun = await findSandbox(root, row.id)
    if (begun?.state === 'creating') await this.create(begun, facts)
  }

  private async create(row: SandboxRow, facts: EngineFacts): Promise<void> {
    const { root, engine, brokers, keys, image: name } = this.options
    try {
      const image = row.image ?? (await engine.findImage(name))
      if (image === null) {
        const message = `The engine has no image ${name} (docs/sandbox.md says how to build it).`
        throw new EngineError(message, { isRefusal: true })
      }
      const folder = brokers.reachableFolderOf(row)
      // The folder and the image are noted before the engine is asked: its answer may be lost, and a second container is to be of the same
      // image.
      const isNoted = row.folder === folder && row.image === image
      if (!isNoted && !(await replaceSandbox(root, row, { folder, image }))) return
      const resumes = takesOverVolume(row)
      const own = { token: keys.tokenOf(row.id), ...(resumes && { resumes }) }
      const identity = await this.openBroker({ ...row, folder }, own)
      if (identity === null) return
      const id = await engine.create(this.containerOf(row, { image, facts, identity, folder }))
      if ((await findSandbox(root, row.id))?.state === 'creating') await engine.start(id)
      this.options.reconcileSoon()
    } catch (error) {
      if (!(error instanceof EngineError) || !error.isRefusal) throw error
      await this.giveUp(row, { exitReason: 'dispatch_error', why: error.message }, null)
    }
  }

  /** Tells a container that was made ahead who it is. Its runner waits for that and says hello. */
  private async admit(row: SandboxRow): Promise<void> {
    const { world, brokers, keys } = this.options
    const folder = brokers.reachableFolderOf(row)
    // The replica that made the container writes to its folder, and this one does not reach it.
    if (folder !== row.folder) return world.now() - row.stateAt < admitMs ? undefined : this.replace(row)
    const identity = await this.openBroker({ ...row, folder }, { token: keys.tokenOf(row.id) })
    if (identity !== null) await this.enter(row, 'starting')
  }

  /** Has a container made for the run in place of one that was made ahead and died before anything of the run was in it. */
  private async replace(row: SandboxRow): Promise<void> {
    const { root, world, engine, brokers, log } = this.options
    log.warn({ sandbox: row.id, runId: row.runId }, 'the sandbox that was made ahead for a run came to nothing')
    await engine.remove(engineNameOf(row), volumeOf(row))
    const changes = { state: 'creating', container: null, volume: null, image: null } as const
    const folder = brokers.reachableFolderOf(row)
    if (!(await replaceSandbox(root, row, { ...changes, folder, stateAt: world.now() }))) return
    this.begun.add(row.id)
    this.options.reconcileSoon()
  }

  private async start(row: SandboxRow, container: Container): Promise<void> {
    try {
      await this.options.engine.start(container.id)
      this.options.reconcileSoon()
    } catch (error) {
      if (!(error instanceof EngineError) || !error.isRefusal) throw error
      await this.giveUp(row, { exitReason: 'dispatch_error', why: error.message }, null)
    }
  }

  private containerOf(
    row: SandboxRow,
    {
      image,
      facts,
      identity,
      folder,
    }: Pick<KnownPlace, 'folder'> & { image: string; facts: EngineFacts; identity: SandboxIdentity },
  ): ContainerSpec {
    const { keys, runtime, sizes } = this.options
    return {
      name: engineNameOf(row),
      image,
      serverId: keys.serverId,
      sandboxId: row.id,
      of: { workspaceId: row.workspaceId, runId: row.runId },
      volume: volumeOf(row),
      size: within(sizes[row.size], facts),
      brokerFolder: folder,
      identity,
      runtime,
    }
  }

  /** Returns as whom it knows itself; null: it is a device no more. */
  private async openBroker(
    row: SandboxRow & KnownPlace,
    its: Pick<SandboxIdentity, 'token' | 'lost' | 'resumes'>,
  ): Promise<SandboxIdentity | null> {
    const { root, brokers, sizes } = this.options
    const device = await findDeviceByPublicId(root, row.device)
    if (device === null) return null
    const { publicId, deviceUuid, displayName } = device
    const facts = { size: row.size, diskBytes: sizes[row.size].diskBytes }
    const identity = { publicId, deviceId: deviceUuid, displayName, ...facts, ...its, ...(await brokers.routeOf(row)) }
    await brokers.open(row, identity)
    return identity
  }

  private async noteLoss(row: SandboxRow, container: Container | null): Promise<void> {
    const { root, world, engine, log, sizes } = this.options
    const ending = container === null ? null : await engine.ending(container.id)
    const how = ending === null ? 'is gone' : `ended with status ${ending.exitCode}`
    const outOfMemory = ending !== null && (ending.isOutOfMemory || gaveUpForMemory.includes(ending.exitCode))
    const why = outOfMemory ? `: it ran out of memory (${describeSize(row.size, sizes[row.size])})` : ''
    const trouble = `The sandbox of this run ${how}${why}.`
    log.warn({ sandbox: row.id, runId: row.runId }, trouble)
    if (await replaceSandbox(root, row, { state: 'lost', stateAt: world.now(), outOfMemory, trouble }))
      this.options.reconcileSoon()
  }

  /** Tells whether another container may tell what is left: the last one was killed, or did not say that there is nothing. */
  async maySalvageAgain({ id }: SandboxRow, container: Container | null): Promise<boolean> {
    if ((this.salvages.get(id) ?? 0) >= mostSalvages) return false
    const ending = container === null ? null : await this.options.engine.ending(container.id)
    return ending === null || !Object.values<number>(runnerStatus).includes(ending.exitCode)
  }

  /** The runner of the second container finds the run of the first in its journal, ends it and tells all there is of it. */
  private async salvage(
    row: SandboxRow,
    { container, facts }: { container: Container | null; facts: EngineFacts },
  ): Promise<void> {
    const { root, world, engine, brokers, keys, log } = this.options
    const device = await findDeviceByPublicId(root, row.device)
    if (device === null || row.image === null) return
    const folder = brokers.reachableFolderOf(row)
    if (folder !== row.folder) return this.moveTo(row, folder)
    const token = keys.tokenOf(row.id, 'once more')
    await renewFirstToken(root, device, hashToken(token))
    const lost = row.trouble ?? 'The sandbox of this run is gone.'
    const identity = await this.openBroker({ ...row, folder }, { token, lost })
    if (identity === null) return
    const spec = this.containerOf(row, { image: row.image, facts, identity, folder })
    const id = await engine.createAgain(spec, container?.id ?? null)
    await engine.start(id)
    const tries = (this.salvages.get(row.id) ?? 0) + 1
    this.salvages.set(row.id, tries)
    if (tries > 1) log.warn({ sandbox: row.id, runId: row.runId, tries }, 'what a run left is asked for once more')
    // The row is written where nothing changes, too: a look that saw the container before it was started then does nothing.
    const stateAt = row.state === 'salvaging' ? row.stateAt : world.now()
    if (await replaceSandbox(root, row, { state: 'salvaging', stateAt })) this.options.reconcileSoon()
  }

  /** Removes a container whose folder this server does not reach, so that the next one is made with another folder. The volume stays. */
  private async moveTo(row: SandboxRow, folder: string): Promise<void> {
    const { root, engine } = this.options
    await engine.remove(engineNameOf(row), null)
    if (await replaceSandbox(root, row, { folder })) this.options.reconcileSoon()
  }

  /** Ends the run, with what the sandbox said last. */
  private async giveUp(
    row: SandboxRow,
    { exitReason, why: last }: { exitReason: 'dispatch_error' | 'sandbox_lost'; why: string },
    container: Container | null,
  ): Promise<void> {
    const { root, world, log, engine } = this.options
    const isLost = row.state === 'lost' || row.state === 'salvaging'
    const why = isLost && row.trouble !== null ? `${row.trouble} ${last}` : last
    const said = container === null ? '' : await engine.logs(container.id, logLines).catch(() => '')
    const trouble = said.trim() === '' ? why : `${why} Its last words:\n${said.trim().slice(-3_000)}`
    const end = async (tx: Tx) => {
      const now = await findSandbox(tx, row.id)
      if (now === null || now.version !== row.version) return
      const at = world.now()
      await replaceSandbox(tx, now, { state: 'ended', stateAt: at, trouble })
      const run = await findRun(tx, row.runId)
      if (run === null || run.endedAt !== null) return
      await finishRun(tx, run, { type: 'sandbox_lost', exitReason, errorMessage: trouble, at, world })
    }
    await inTransaction(root, end, { locks: [row.workspaceId] })
    log.warn({ sandbox: row.id, runId: row.runId, exitReason }, why)
    this.options.reconcileSoon()
  }

  private async remove(row: SandboxRow): Promise<void> {
    const { root, world, engine, brokers } = this.options
    await engine.remove(engineNameOf(row), row.leavesVolume === true ? null : volumeOf(row))
    await brokers.close(row)
    const gone = async (tx: Tx) => {
      const at = world.now()
      const device = await findDeviceByPublicId(tx, row.device)
      if (device !== null) await removeSandboxDevice(tx, device, at)
      await replaceSandbox(tx, row, { removedAt: at })
    }
    await inTransaction(root, gone, { locks: [row.workspaceId] })
    this.begun.delete(row.id)
    this.salvages.delete(row.id)
    // The sandbox leaves room for another one.
    this.options.reconcileSoon()
  }
}

/** The exit codes of a runner whose V8 gets no more memory. */
const gaveUpForMemory = [134, 139]
