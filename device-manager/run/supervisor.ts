import type { RunId } from '../../shared/lib/ids.ts'
import type { ChangeSetResult } from '../../shared/device/change-set.ts'
import type { DeviceMessage, ServerMessage } from '../../shared/device/protocol.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'
import type { HostRecord, HostReply } from '../run-host/wire/protocol.ts'
import { endCrashed, endWithoutHost, type EndingContext } from './crashed.ts'
import type { HostPool } from './hosts/host-pool.ts'
import { FolderMeetings } from './folder-meetings.ts'
import { howLost } from './how-lost.ts'
import type { Journal } from './journal.ts'
import { helloState, holdsPlace, step, stopWanted } from './machine.ts'
import type { RunEffect, RunEvent, RunState, Stop } from './machine.ts'
import type { HarnessSurroundings } from './hosts/harness-surroundings.ts'
import { RunHosts, type RunHostsOptions } from './hosts/run-hosts.ts'
import { RunStarts } from './run-starts.ts'

export interface SupervisorOptions extends EndingContext {
  journal: Journal
  pool: HostPool
  bringSkills: RunHostsOptions['bringSkills']
  surroundings: HarnessSurroundings
  /** The address at which this device reaches the control plane, and so its runs too: the server itself may know another address. */
  server: string
  send(message: DeviceMessage): boolean
  sendChangeSet(run: { runId: RunId; fence: number; requestId: string }, result: unknown): void
  /** The run's rows or ending are to be sent. */
  forward(run: { runId: RunId; fence: number }): void
  forgotten(runId: RunId): void
  /** A run host cannot read the spool. */
  spoolDamaged(message: string): void
  /** A run host finds another file or none where the spool was. */
  spoolGone(): void
  /** Runs were taken or ended. */
  changed(): void
}

/** Carries out what the run machine decides: journals each step, then performs its effects. */
export class Supervisor {
  private readonly options: SupervisorOptions
  private readonly states = new Map<RunId, RunState>()
  readonly hosts: RunHosts
  readonly starts: RunStarts
  private readonly crashing = new Set<RunId>()
  private readonly meetings: FolderMeetings

  constructor(options: SupervisorOptions) {
    this.options = options
    const find = (runId: RunId) => this.find(runId)
    const handle = (runId: RunId, event: RunEvent) => this.handle(runId, event)
    this.hosts = new RunHosts({
      ...options,
      find,
      mayLaunch: (runId) => !options.journal.isBehind(runId),
      handle,
      said: (runId, reply) => this.hostSaid(runId, reply),
      lost: (runId, { isHung }) => this.hostLost(runId, isHung),
      runOf: (hostId) => this.list().find((state) => state.hostId === hostId)?.runId ?? null,
    })
    const shares = (runId: RunId, other: RunId) => this.handle(runId, { type: 'folder_shared', other })
    this.meetings = new FolderMeetings({ list: () => this.list(), shares })
    this.starts = new RunStarts({ ...options, hosts: this.hosts, find, handle })
  }

  /** Takes up the runs of the daemon before this one (see adoption.ts for who finds their hosts). */
  adopt(states: readonly RunState[]): void {
    for (const state of states) this.states.set(state.runId, state)
  }

  /** `record`: of the run's host, when its process lives. Resolves when it is connected or gone; one that hangs is ended. */
  async takeUp(state: RunState, record: HostRecord | undefined): Promise<void> {
    const { runId, phase, hostId } = state
    this.options.log.info({ runId, phase, hostId, host: record !== undefined }, 'run found in the journal')
    return record ? this.hosts.regain(runId, record) : this.hostLost(runId)
  }

  find(runId: RunId): RunState | null {
    return this.states.get(runId) ?? null
  }

  list(): RunState[] {
    return [...this.states.values()]
  }

  /** Returns the runs that hold one of the device's places. */
  active(): RunState[] {
    return this.list().filter(holdsPlace)
  }

  known(): (DeviceMessage & { type: 'hello' })['runs'] {
    return this.list().map((state) => ({
      runId: state.runId,
      fence: state.fence,
      state: helloState(state),
      lastSeq: this.statsOf(state)?.lastSeq ?? 0,
    }))
  }

  handle(runId: RunId, event: RunEvent): void {
    const before = this.states.get(runId) ?? null
    const [after, effects] = step(before, event)
    if (after !== before) this.options.journal.write(runId, after)
    this.follow(runId, { before, after, effects, event })
  }

  /**
   * Takes a run that is not held yet; false when the journal does not take it. A host that stands by is taken in the same step of
   * the journal, which saves a write on the way to the start.
   */
  offer(offer: { spec: RunState['spec']; fence: number }): boolean {
    const { runId } = offer.spec
    const event: RunEvent = {
      type: 'offered',
      ...offer,
      at: this.options.world.now(),
      hostId: this.hosts.reserve(runId),
    }
    const [after, effects] = step(null, event)
    if (!after || !this.options.journal.take(after)) {
      this.hosts.unreserve(runId)
      return false
    }
    this.follow(runId, { before: null, after, effects, event })
    return true
  }

  /** Begins what was not begun for these runs while the journal was behind. */
  caughtUp(runIds: readonly RunId[]): void {
    for (const runId of runIds) {
      const state = this.states.get(runId)
      if (state?.phase === 'starting' && !state.cancel && !state.givenUp) this.hosts.start(runId)
    }
    this.options.changed()
  }

  private follow(
    runId: RunId,
    {
      before,
      after,
      effects,
      event,
    }: { before: RunState | null; after: RunState | null } & {
      effects: readonly RunEffect[]
      event: RunEvent
    },
  ): void {
    if (after) this.states.set(runId, after)
    else this.states.delete(runId)
    for (const effect of effects) this.perform(runId, after ?? before, effect)
    if (before?.phase === after?.phase) return
    this.meetings.changed(before, after)
    const { fence } = after ?? before ?? {}
    this.options.log.info({ runId, fence, phase: after?.phase ?? 'gone', event: event.type }, 'run')
    this.options.changed()
  }

  input(message: ServerMessage & { type: 'run.input' }): void {
    const state = this.states.get(message.runId)
    if (state?.fence !== message.fence) return
    this.hosts.send(message.runId, { type: 'input', inputId: message.inputId, text: message.text })
  }

  changeSet(message: ServerMessage & { type: 'change_set.get' }): void {
    const { runId, fence, requestId } = message
    const run = { runId, fence, requestId }
    const spooled = this.spooledChangeSet(run)
    if (spooled) return this.options.sendChangeSet(run, spooled)
    if (!this.hosts.send(runId, { type: 'change_set.get', requestId }))
      this.options.sendChangeSet(run, { ok: false, code: 'repo_unavailable', message: 'The run is not live here.' })
  }

  private spooledChangeSet(run: { runId: RunId; fence: number }): ChangeSetResult | null {
    try {
      return this.options.spool.ending(run)?.changeSet ?? null
    } catch (error) {
      this.options.log.warn({ err: error, runId: run.runId }, 'the spool could not be asked for a change-set')
      return null
    }
  }

  private perform(runId: RunId, state: RunState | null, effect: RunEffect): void {
    if (!state) return
    switch (effect.type) {
      case 'accept':
        this.options.send({ type: 'run.accepted', runId, fence: state.fence })
        return
      case 'prepare':
        return this.hosts.prepare(state)
      case 'start_host':
        return this.hosts.start(runId)
      case 'report_started':
        this.options.send({
          type: 'run.started',
          runId,
          fence: state.fence,
          harnessStartedAt: this.options.world.now(),
        })
        return
      case 'tell_shared':
        return void this.hosts.send(runId, { type: 'shared', runIds: state.sharedWith })
      case 'stop_host':
        return this.hosts.stop(runId, { type: 'stop', ...effect.stop })
      case 'discard_host':
        this.hosts.send(runId, { type: 'discard' })
        return this.hosts.release(runId)
      case 'end_without_host':
        this.hosts.send(runId, { type: 'discard' })
        this.hosts.release(runId)
        return this.untilDone(state, 'the ending was not written', () => {
          endWithoutHost(this.options, state, effect.stop)
          this.options.forward(state)
        })
      case 'end_crashed':
        return void this.endCrashed(state)
      case 'forward':
        this.hosts.release(runId)
        return this.options.forward(state)
      case 'forget':
        this.hosts.release(runId)
        this.options.forgotten(runId)
        return this.untilDone(state, 'the rows of a finished run were not removed', () => {
          // The rows of a run that was taken anew meanwhile are those of the new lease.
          if (this.states.get(runId)?.fence !== state.fence) this.options.spool.remove(state)
        })
    }
  }

  /** Writes an ending that is missing: the daemon died between the journal's step to `ended` and the ending's row, or the spool lost it. */
  ensureEnding(state: RunState): void {
    const cut: Stop = { exitReason: 'crashed', message: 'The device was interrupted while it recorded the ending.' }
    const stop = state.cancel ?? this.options.lost ?? cut
    this.untilDone(state, 'the ending was not written', () => endWithoutHost(this.options, state, stop))
  }

  /** Writes anew the endings that a spool lost which was set right. */
  ensureEndings(): void {
    for (const state of this.list()) {
      if (state.phase !== 'ended') continue
      this.ensureEnding(state)
      this.options.forward(state)
    }
  }

  /** Does the work when it can be done: a spool that is locked, full or damaged for a moment must not end the daemon. */
  private untilDone(state: RunState, trouble: string, work: () => void): void {
    try {
      work()
    } catch (error) {
      this.options.log.error({ err: error, runId: state.runId }, trouble)
      this.options.world.after(2_000, () => this.untilDone(state, trouble, work))
    }
  }

  /** Returns the counts of the run in the spool; null: it has nothing of the run, or cannot be asked now. */
  private statsOf(state: RunState): ReturnType<DaemonSpool['stats']> {
    try {
      return this.options.spool.stats(state)
    } catch {
      return null
    }
  }

  private hostSaid(runId: RunId, reply: HostReply): void {
    const state = this.states.get(runId)
    if (!state) return
    switch (reply.type) {
      case 'hello':
        return this.hostFound(state, reply)
      case 'started':
        this.options.pool.warmLater()
        return this.handle(runId, { type: 'host_started' })
      case 'wall':
        return void this.options.send({ type: 'run.wall', runId, fence: state.fence, acts: reply.acts })
      case 'spooled':
        return this.options.forward(state)
      case 'spool_damaged':
        return this.options.spoolDamaged(reply.message)
      case 'spool_gone':
        return this.options.spoolGone()
      case 'change_set':
        return this.options.sendChangeSet({ runId, fence: state.fence, requestId: reply.requestId }, reply.result)
      case 'credential.get':
        return void this.options.send({ ...reply, runId, fence: state.fence })
      case 'ended':
        this.options.pool.warm()
        return this.hostEnded(state)
      // A host says this in place of a hello, so never over a connection that is held.
      case 'refused':
        return
      case 'prepared':
        return this.options.log.debug({ runId }, 'run prepared')
    }
  }

  /** Takes in what a host says of itself when a daemon connects: the journal may be a step behind it. */
  private hostFound(state: RunState, hello: Extract<HostReply, { type: 'hello' }>): void {
    if (hello.runId === null || hello.fence !== state.fence) return
    // The last message may have been lost with the connection before; a host ignores one that it has heard.
    const stop = stopWanted(state)
    if (state.phase === 'starting' && stop === null) this.hosts.start(state.runId)
    if (hello.phase === 'running' || hello.phase === 'ending') {
      if (state.phase === 'accepted' || state.phase === 'starting') this.handle(state.runId, { type: 'host_started' })
    }
    if (state.sharedWith.length > 0) this.perform(state.runId, state, { type: 'tell_shared' })
    if (stop !== null && hello.phase !== 'ended') this.hosts.stop(state.runId, { type: 'stop', ...stop })
    if (hello.phase === 'ended') this.hostEnded(state)
    else if (hello.lastSeq > 0) this.options.forward(state)
  }

  private hostLost(runId: RunId, isHung = false): void {
    const state = this.states.get(runId)
    if (!state || state.phase === 'ended') return
    const { spool, pool } = this.options
    const event = howLost(state, { spool, records: pool.records })
    this.options.log.warn({ runId, hostId: state.hostId, event }, 'the run host is gone')
    if (event === 'host_ended') this.hostEnded(state)
    else this.handle(runId, event === 'host_lost' ? { type: event, isHung } : { type: event })
  }

  /** Hears that the ending of the run is in the spool. */
  private hostEnded(state: RunState): void {
    const stats = this.statsOf(state)
    const written = stats && { lastSeq: stats.lastSeq, ackedSeq: stats.ackedSeq, bytes: stats.pendingBytes }
    this.handle(state.runId, { type: 'host_ended', written })
  }

  private async endCrashed(state: RunState): Promise<void> {
    const { runId } = state
    if (this.crashing.has(runId)) return
    this.crashing.add(runId)
    try {
      const { records } = this.options.pool
      const record = state.hostId === null ? null : records.find(state.hostId)
      const isOfEarlierBoot = record !== null && records.isOfEarlierBoot(record)
      await endCrashed(this.options, state, { record, isOfEarlierBoot, start: this.hosts.startOf(runId) })
      this.hostEnded(state)
      if (record) records.remove(record)
      this.options.pool.warm()
    } catch (error) {
      // A spool that takes nothing now may take it later.
      this.options.log.error({ err: error, runId }, 'the ending of a crashed run could not be written')
      this.options.world.after(5_000, () => this.handle(runId, { type: 'host_lost' }))
    } finally {
      this.crashing.delete(runId)
    }
  }
}
