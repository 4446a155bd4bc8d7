import { Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { World } from '../../../shared/lib/world.ts'
import type { Log } from '../../log/log.ts'
import type { HostRecord, HostReply, HostRequest } from '../../run-host/wire/protocol.ts'
import { WallError, type WallSpec } from '../../wall/spec.ts'
import { HostConnection, HostRefusedError } from './host-connection.ts'
import type { HostPool } from './host-pool.ts'
import type { RunEvent, RunState } from '../machine.ts'

/** The base environment for harnesses of this machine, ready before a run needs it. */
export interface HarnessSurroundings {
  /** Returns it where it is at hand, or else a promise of it. */
  env(): Record<string, string> | Promise<Record<string, string>>
  homeDir: string
  shell: string
  svcBinDir: string | null
  versionOf(harness: RunState['spec']['harness']): string | null
  /** Returns how the run's wall is made, or null. Fails with a WallError when it cannot be made. */
  wall(): (WallSpec | null) | Promise<WallSpec | null>
}

export interface RunHostsOptions {
  log: Log
  world: Pick<World, 'monotonic' | 'sleep'>
  pool: HostPool
  surroundings: HarnessSurroundings
  find(runId: string): RunState | null
  handle(runId: string, event: RunEvent): void
  /** Says whether all that is known of the run is on the disk: no other daemon then launches its harness again. */
  mayLaunch(runId: string): boolean
  /** The run's host said something. */
  said(runId: string, reply: HostReply): void
  /** The process of the run's host is gone, or does not answer any more. */
  lost(runId: string): void
}

/** A host whose process lives is asked for so long before it is given up: it may be stopped, or starved of processor time. */
const regainMs = 30_000

export type Start = Extract<HostRequest, { type: 'start' }>

/**
 * The daemon's connections to run hosts, by run: from the host that is taken with an offer, over its assignment, to its
 * release. It carries requests there and tells what comes back; what follows from that the supervisor decides.
 *
 *     reserved --prepare--> assigned (attached) --release--> gone
 *                               ^         |
 *                               +--regain-+ its socket closed, its process lives
 *
 * May interleave: a start or stop that comes while the assignment or a new connection is under way follows it; a host that
 * was replaced or released is not heard any more.
 */
export class RunHosts {
  private readonly options: RunHostsOptions
  private readonly attached = new Map<string, HostConnection>()
  private readonly starts = new Map<string, Start>()
  /** Preparations and new connections under way, so that a start waits for its host. */
  private readonly preparing = new Map<string, Promise<void>>()
  /** Hosts taken with the offer of a run, until they are assigned to it. */
  private readonly reserved = new Map<string, HostConnection>()

  constructor(options: RunHostsOptions) {
    this.options = options
  }

  /** Takes the host that stands by for this run; its id, or null when there is none. */
  reserve(runId: string): string | null {
    const host = this.options.pool.takeReady()
    if (!host) return null
    this.reserved.set(runId, host)
    return host.hostId
  }

  unreserve(runId: string): void {
    if (!this.reserved.has(runId)) return
    this.reserved.get(runId)?.send({ type: 'discard' })
    this.reserved.delete(runId)
    this.options.pool.warm()
  }

  attach(runId: string, host: HostConnection): void {
    this.attached.set(runId, host)
    const isCurrent = () => this.attached.get(runId) === host
    host.attach({
      reply: (reply) => {
        if (isCurrent()) this.options.said(runId, reply)
      },
      lost: () => {
        if (!isCurrent()) return
        this.attached.delete(runId)
        void this.regain(runId, host.record)
      },
    })
  }

  /** Connects to the host that has the run, for as long as its process lives. Resolves when that is done or hopeless. */
  regain(runId: string, record: HostRecord): Promise<void> {
    // Followed before it begins: it may find at once that the host is dead, and then another preparation is followed.
    const work = Promise.resolve().then(() => this.connectAgain(runId, record))
    this.follow(runId, work)
    return work
  }

  /** False when the run has no host that takes it. */
  send(runId: string, request: HostRequest): boolean {
    return this.attached.get(runId)?.send(request) ?? false
  }

  /** The host is not listened to any more, and the run's secrets are forgotten. */
  release(runId: string): void {
    this.starts.delete(runId)
    this.attached.get(runId)?.detach()
    this.attached.delete(runId)
  }

  /** Keeps what the control plane sent with the start of the run, in memory alone. */
  keepStart(runId: string, start: Start): void {
    this.starts.set(runId, start)
  }

  startOf(runId: string): Start | null {
    return this.starts.get(runId) ?? null
  }

  /** Hands the run to its host, or to a new one. Fails by events. */
  prepare(state: RunState): void {
    const work = this.assign(state).catch((error: unknown) => {
      // The next daemon goes on with it.
      if (this.options.pool.isStopped) return
      this.options.log.error({ err: error, runId: state.runId }, 'the run could not be prepared')
      this.options.handle(state.runId, { type: 'host_lost' })
    })
    this.follow(state.runId, work)
  }

  private follow(runId: string, work: Promise<void>): void {
    this.preparing.set(runId, work)
    void work.finally(() => {
      if (this.preparing.get(runId) === work) this.preparing.delete(runId)
    })
  }

  private async connectAgain(runId: string, record: HostRecord): Promise<void> {
    const { pool, world, log } = this.options
    const isWanted = () => {
      const state = this.options.find(runId)
      return state?.hostId === record.hostId && state.phase !== 'ended' && !this.attached.has(runId) && !pool.isStopped
    }
    const deadline = world.monotonic() + regainMs
    for (let pause = 10; isWanted(); pause = Math.min(pause * 2, 500)) {
      if (isDead(pool, record)) return this.options.lost(runId)
      const host = await pool.connect(record).catch((error: unknown) => error)
      if (!(host instanceof HostConnection)) {
        if (world.monotonic() > deadline) {
          // A host that another daemon has is not this one's to end.
          if (host instanceof HostRefusedError) return log.error({ err: host, runId }, 'the run host is not given back')
          return this.options.lost(runId)
        }
        await world.sleep(pause)
      } else if (!isWanted()) return host.detach()
      else return this.regained(runId, host)
    }
  }

  private regained(runId: string, host: HostConnection): void {
    if (host.hello?.runId !== null) return this.attach(runId, host)
    // It was taken for this run and never read so: nothing was launched.
    host.send({ type: 'discard' })
    this.options.handle(runId, { type: 'host_returned' })
    this.options.handle(runId, { type: 'found_without_host' })
  }

  start(runId: string): void {
    const start = this.starts.get(runId)
    if (!start) return
    const send = () => this.options.mayLaunch(runId) && this.send(runId, start)
    if (this.attached.has(runId)) return void send()
    // The start came while a host was being taken: it follows the assignment.
    void this.preparing.get(runId)?.then(send)
  }

  stop(runId: string, stop: Extract<HostRequest, { type: 'stop' }>): void {
    if (this.attached.has(runId)) return void this.send(runId, stop)
    void this.preparing.get(runId)?.then(() => this.send(runId, stop))
  }

  /** Waits for nothing where all is at hand: a host that stands by, the environment, and a run in no folder. */
  private async assign(state: RunState): Promise<void> {
    const { runId, fence, spec } = state
    const { options } = this
    const { pool, surroundings } = options
    const ready = this.reserved.get(runId) ?? null
    this.reserved.delete(runId)
    const isWanted = () => options.find(runId)?.fence === fence
    const folder = spec.folder ? await folderTrouble(spec.folder.rootPath) : homeTrouble(surroundings.homeDir)
    if (folder || !isWanted()) {
      ready?.send({ type: 'discard' })
      pool.warm()
      if (folder && isWanted())
        options.handle(runId, { type: 'prepare_failed', stop: { exitReason: 'dispatch_error', message: folder } })
      return
    }
    const known = surroundings.env()
    const walling = wallOrTrouble(surroundings)
    const isAtHand = !(known instanceof Promise) && !(walling instanceof Promise)
    const [host, env, wall] =
      ready?.isOpen && isAtHand
        ? [ready, known, walling]
        : await Promise.all([ready?.isOpen ? ready : pool.take(), known, walling])
    if (!isWanted() || pool.isStopped) {
      host.send({ type: 'discard' })
      return pool.warm()
    }
    if (typeof wall === 'string') {
      host.send({ type: 'discard' })
      pool.warm()
      options.handle(runId, { type: 'prepare_failed', stop: { exitReason: 'harness_start_failed', message: wall } })
      return
    }
    if (options.find(runId)?.hostId !== host.hostId) options.handle(runId, { type: 'host_taken', hostId: host.hostId })
    this.attach(runId, host)
    host.send({
      type: 'assign',
      spec,
      fence,
      env,
      homeDir: surroundings.homeDir,
      loginShell: surroundings.shell,
      svcBinDir: surroundings.svcBinDir,
      harnessVersion: surroundings.versionOf(spec.harness),
      wall,
    })
  }
}

function isDead(pool: HostPool, record: HostRecord): boolean {
  try {
    return !pool.records.isAlive(record)
  } catch {
    // No file is left to look with.
    return false
  }
}

/** A text says why the run cannot be started: it never is without the wall that it should have. */
function wallOrTrouble(
  surroundings: HarnessSurroundings,
): (WallSpec | null | string) | Promise<WallSpec | null | string> {
  const wall = surroundings.wall()
  if (!(wall instanceof Promise)) return wall
  return wall.catch((error: unknown) => {
    if (error instanceof WallError) return error.message
    throw error
  })
}

/** A folder may lie on a mount that does not answer. */
async function folderTrouble(path: string): Promise<string | null> {
  try {
    return troubleOf(path, await stat(path))
  } catch (error) {
    return troubleOf(path, error)
  }
}

/** All that the daemon has lies in the home folder, so it would not work either when this does not answer. */
function homeTrouble(path: string): string | null {
  try {
    return troubleOf(path, statSync(path))
  } catch (error) {
    return troubleOf(path, error)
  }
}

function troubleOf(path: string, found: unknown): string | null {
  if (found instanceof Stats) return found.isDirectory() ? null : `${path} is not a folder.`
  const code = (found as { code?: string }).code
  if (code === 'ENOENT') return `The folder ${path} does not exist on this device.`
  return `The folder ${path} cannot be used: ${found instanceof Error ? found.message : String(found)}`
}
