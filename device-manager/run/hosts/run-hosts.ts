import type { RunId } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Log } from '../../log/log.ts'
import type { BroughtSkills, HostRecord, HostReply, HostRequest } from '../../run-host/wire/protocol.ts'
import type { RunEvent, RunState } from '../machine.ts'
import { bringRepo } from '../../clone/run-job.ts'
import { folderTrouble, homeFolderTrouble } from './folder-trouble.ts'
import { hasFilesToBring } from './files-to-bring.ts'
import { HostConnection } from './host-connection.ts'
import { tooOldStop, wallOrTrouble, type HarnessSurroundings } from './harness-surroundings.ts'
import type { HostPool } from './host-pool.ts'
import { endHung, reachHost } from './reach.ts'

export interface RunHostsOptions {
  log: Log
  world: Pick<World, 'monotonic' | 'now' | 'sleep'>
  pool: HostPool
  surroundings: HarnessSurroundings
  find(runId: RunId): RunState | null
  handle(runId: RunId, event: RunEvent): void
  /** Says whether all that is known of the run is on the disk: no other daemon then launches its harness again. */
  mayLaunch(runId: RunId): boolean
  /** The run's host said something. */
  said(runId: RunId, reply: HostReply): void
  /** The process of the run's host is gone, or hung and was ended for that. */
  lost(runId: RunId, how: { isHung: boolean }): void
  /** The run that a host was taken for; null: none. */
  runOf: (hostId: string) => RunId | null
  /** Brings the skills of the workspace that the run is to have to this device. Never fails, and not for long. */
  bringSkills(state: RunState): Promise<BroughtSkills>
}

/** Returns the skills of a run without those that it could not have. */
function likelyOf({ harness, skills }: RunState['spec'], { missed }: BroughtSkills) {
  const isMissed = new Set(missed.map(({ bundleHash }) => bundleHash))
  return { harness, skills: (skills ?? []).filter(({ bundleHash }) => !isMissed.has(bundleHash)) }
}

export type Start = Extract<HostRequest, { type: 'start' }>

/**
 * The daemon's connections to run hosts, by run: from the host that is taken with an offer, over its assignment, to its
 * release. It carries requests there and tells what comes back; what follows from that the supervisor decides.
 *
 *     reserved --prepare--> assigned (attached) --release--> gone
 *                               ^         |
 *                               +--regain-+ its socket closed, its process lives
 *                               +--verify-+ it was told to stop, or holds a lock: it must answer (reach.ts)
 *
 * May interleave: a start or stop that comes while the assignment or a new connection is under way follows it; a host that
 * was replaced or released is not heard any more.
 */
export class RunHosts {
  private readonly options: RunHostsOptions
  private readonly attached = new Map<RunId, HostConnection>()
  private readonly starts = new Map<RunId, Start>()
  /** Preparations and new connections under way, so that a start waits for its host. */
  private readonly preparing = new Map<RunId, Promise<void>>()
  /** Runs whose hosts were told to stop and are asked whether they are still there. */
  private readonly stopping = new Set<RunId>()
  /** Runs whose hosts are being asked over a new connection. */
  private readonly verifying = new Set<RunId>()
  /** Hosts that are asked for what they hold. */
  private readonly checking = new Set<string>()
  /** Clones that are under way. */
  private readonly bringing = new Map<RunId, AbortController>()
  /** Hosts taken with the offer of a run, until they are assigned to it. */
  private readonly reserved = new Map<RunId, HostConnection>()

  constructor(options: RunHostsOptions) {
    this.options = options
  }

  /** Takes the host that stands by for this run; its id, or null when there is none. */
  reserve(runId: RunId): string | null {
    const host = this.options.pool.takeReady()
    if (!host) return null
    this.reserved.set(runId, host)
    return host.hostId
  }

  unreserve(runId: RunId): void {
    if (!this.reserved.has(runId)) return
    this.reserved.get(runId)?.send({ type: 'discard' })
    this.reserved.delete(runId)
    this.options.pool.warm()
  }

  attach(runId: RunId, host: HostConnection): void {
    this.attached.set(runId, host)
    const isCurrent = () => this.attached.get(runId) === host
    host.attach({
      reply: (reply) => {
        if (isCurrent()) this.options.said(runId, reply)
      },
      lost: () => {
        // The host closes it when it is asked over another one.
        if (!isCurrent() || this.verifying.has(runId)) return
        this.attached.delete(runId)
        void this.regain(runId, host.record)
      },
    })
  }

  /** Connects to the host that has the run, for as long as its process lives. Resolves when that is done or hopeless. */
  regain(runId: RunId, record: HostRecord): Promise<void> {
    // The work is noted before it begins: it may find at once that the host is dead, and then another preparation is noted.
    const work = Promise.resolve().then(() => this.connectAgain(runId, record))
    this.follow(runId, work)
    return work
  }

  /** Sends the request. False when the run has no host that takes it. */
  send(runId: RunId, request: HostRequest): boolean {
    return this.attached.get(runId)?.send(request) ?? false
  }

  /** Stops listening to the host, and forgets the run's secrets. */
  release(runId: RunId): void {
    this.starts.delete(runId)
    this.attached.get(runId)?.detach()
    this.attached.delete(runId)
  }

  /** Keeps what the control plane sent with the start of the run, in memory alone. */
  keepStart(runId: RunId, start: Start): void {
    this.starts.set(runId, start)
  }

  startOf(runId: RunId): Start | null {
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

  private follow(runId: RunId, work: Promise<void>): void {
    this.preparing.set(runId, work)
    void work.finally(() => {
      if (this.preparing.get(runId) === work) this.preparing.delete(runId)
    })
  }

  private async connectAgain(runId: RunId, record: HostRecord): Promise<void> {
    const { pool, log } = this.options
    const isWanted = () => {
      const state = this.options.find(runId)
      return state?.hostId === record.hostId && state.phase !== 'ended' && !this.attached.has(runId) && !pool.isStopped
    }
    const reached = await reachHost(record, { ...this.options, isWanted, patienceMs: pool.silentMs })
    if (reached instanceof HostConnection) return isWanted() ? this.regained(runId, reached) : reached.detach()
    if (reached === 'dead') return this.options.lost(runId, { isHung: false })
    if (reached === 'hung') return this.giveUp(runId, record)
    // A host that another daemon has is not this one's to end.
    if (reached === 'refused') log.error({ runId, hostId: record.hostId }, 'the run host is not given back')
  }

  private giveUp(runId: RunId, record: HostRecord): void {
    this.options.log.error(
      { runId, hostId: record.hostId, pid: record.pid },
      'the run host does not answer and is ended',
    )
    endHung(this.options.pool, record)
    this.options.lost(runId, { isHung: true })
  }

  /**
   * Asks a host that holds a run whether it is still there, by a connection that takes the place of the one before. Ends it when
   * it hangs.
   */
  private async verify(runId: RunId, host: HostConnection, isWanted: () => boolean): Promise<void> {
    const { pool } = this.options
    if (this.verifying.has(runId)) return
    this.verifying.add(runId)
    const isCurrent = () => this.attached.get(runId) === host && !pool.isStopped
    const patienceMs = (pool.silentMs * 5) / 6
    const options = { ...this.options, isWanted: () => isCurrent() && isWanted(), patienceMs }
    const reached = await reachHost(host.record, options).finally(() => this.verifying.delete(runId))
    if (!isCurrent()) return reached instanceof HostConnection ? reached.detach() : undefined
    // The connection before stays where the answer does not matter any more, unless the host closed it meanwhile.
    if (!(reached instanceof HostConnection) && reached !== 'hung' && host.isOpen) return
    host.detach()
    this.attached.delete(runId)
    if (reached instanceof HostConnection) this.regained(runId, reached)
    else if (reached === 'hung') this.giveUp(runId, host.record)
    else void this.regain(runId, host.record)
  }

  /** Asks a host that holds what all others need, such as the lock of the spool, and ends it when it hangs, whatever it is at. */
  async check(record: HostRecord, isWanted: () => boolean): Promise<void> {
    const { pool, log, runOf } = this.options
    const { hostId } = record
    if (this.checking.has(hostId)) return
    this.checking.add(hostId)
    try {
      const runId = runOf(hostId)
      const host = runId === null ? undefined : this.attached.get(runId)
      if (runId !== null && host) return await this.verify(runId, host, isWanted)
      // The connection of its run is being made anew.
      if (runId !== null && this.preparing.has(runId)) return
      const reached = await reachHost(record, { ...this.options, isWanted, patienceMs: pool.silentMs })
      if (reached instanceof HostConnection) {
        // The host has no run that anybody knows: it leaves now, unless it has started one.
        reached.send({ type: 'discard' })
        return reached.detach()
      }
      if (reached !== 'hung') return
      log.error({ hostId, pid: record.pid }, 'a run host without a run does not answer and is ended')
      endHung(pool, record)
    } finally {
      this.checking.delete(hostId)
    }
  }

  private regained(runId: RunId, host: HostConnection): void {
    if (host.hello?.runId !== null) return this.attach(runId, host)
    // The host was taken for this run and never read its assignment: nothing was launched.
    host.send({ type: 'discard' })
    this.options.handle(runId, { type: 'host_returned' })
    this.options.handle(runId, { type: 'found_without_host' })
  }

  start(runId: RunId): void {
    const start = this.starts.get(runId)
    if (!start) return
    const send = () => this.options.mayLaunch(runId) && this.send(runId, start)
    if (this.attached.has(runId)) return void send()
    // The start came while a host was being taken: it follows the assignment.
    void this.preparing.get(runId)?.then(send)
  }

  stop(runId: RunId, stop: Extract<HostRequest, { type: 'stop' }>): void {
    const send = () => {
      if (this.send(runId, stop)) void this.seeThrough(runId)
    }
    if (this.attached.has(runId)) return send()
    this.bringing.get(runId)?.abort()
    void this.preparing.get(runId)?.then(send)
  }

  /** A host that was told to stop is asked from time to time whether it is still there, until its run has ended. */
  private async seeThrough(runId: RunId): Promise<void> {
    const { pool, world } = this.options
    if (this.stopping.has(runId)) return
    this.stopping.add(runId)
    try {
      for (;;) {
        await world.sleep(pool.silentMs / 6)
        const host = this.attached.get(runId)
        // A host that is regained is told to stop again.
        if (!host || pool.isStopped) return
        await this.verify(runId, host, () => true)
      }
    } finally {
      this.stopping.delete(runId)
    }
  }

  /** Returns why the run's clone cannot be had, for people; null: it is there, or the run has none. A run that is to stop waits for none. */
  private async bring({ runId, spec }: RunState): Promise<string | null> {
    if (spec.repo == null) return null
    const bringing = new AbortController()
    this.bringing.set(runId, bringing)
    try {
      return await bringRepo(spec, bringing.signal)
    } finally {
      this.bringing.delete(runId)
    }
  }

  /** Assigns the run to a host, without waiting where all is at hand: a host that stands by, the environment, and a run in no folder. */
  private async assign(state: RunState): Promise<void> {
    const { runId, fence, spec } = state
    const { options } = this
    const { pool, surroundings } = options
    const ready = this.reserved.get(runId) ?? null
    this.reserved.delete(runId)
    const isWanted = () => options.find(runId)?.fence === fence
    const bringing = hasFilesToBring(spec) ? options.bringSkills(state) : undefined
    const missing = await this.bring(state)
    const folder =
      missing ?? (spec.folder ? await folderTrouble(spec.folder.rootPath) : homeFolderTrouble(surroundings.homeDir))
    const cancel = spec.repo == null ? null : (options.find(runId)?.cancel ?? null)
    const trouble = folder
      ? ({ exitReason: 'dispatch_error', message: folder } as const)
      : tooOldStop(spec, surroundings)
    const stop = cancel ?? trouble
    if (stop || !isWanted()) {
      ready?.send({ type: 'discard' })
      pool.warm()
      if (stop && isWanted()) options.handle(runId, { type: 'prepare_failed', stop })
      return
    }
    const known = surroundings.env()
    const walling = wallOrTrouble(surroundings)
    const isAtHand = !(known instanceof Promise) && !(walling instanceof Promise)
    const [host, env, wall] =
      ready?.isOpen && isAtHand
        ? [ready, known, walling]
        : await Promise.all([ready?.isOpen ? ready : pool.take(), known, walling])
    const skills = await bringing
    if (skills !== undefined && spec.skills?.length) pool.noteSkills(skills.bundles, likelyOf(spec, skills))
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
      offeredAgoMs: Math.max(0, options.world.now() - state.acceptedAt),
      ...(skills !== undefined && { skills }),
      env,
      homeDir: surroundings.homeDir,
      loginShell: surroundings.shell,
      svcBinDir: surroundings.svcBinDir,
      harnessVersion: surroundings.versionOf(spec.harness),
      wall,
    })
  }
}
