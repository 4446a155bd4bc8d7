import type { RunId } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { EndReport } from '../../shared/device/protocol.ts'
import type { ProcessIdentity } from '../process/identity.ts'
import { sandboxFactsIn } from '../../shared/device/sandbox.ts'
import type { TriedAct } from '../../shared/runs/wall-acts.ts'
import { WallOpenError } from '../wall/spec.ts'
import { HarnessLaunchError } from '../harness/parts/adapter-errors.ts'
import { SpoolDamagedError, SpoolUnavailableError, type Spool } from '../spool/spool.ts'
import type { ChangeSetResult } from '../../shared/device/change-set.ts'
import { changeSetOf } from './ending.ts'
import { redactOfStart, redactWhole } from './output/redaction.ts'
import type { StartRequest } from './launch/launch.ts'
import { messageOf, type HostLog } from '../log/host-log.ts'
import { Connections } from './mcp-proxy/connections.ts'
import { SkillsAhead } from './launch/skills-ahead.ts'
import { cleanUp, prepare, type Assignment, type Prepared } from './preparation.ts'
import { SpoolAhead } from './spool-ahead.ts'
import { StandingWall } from './standing-wall.ts'
import { Timeline } from './timeline.ts'
import type { HostRecord, HostRequest, HostReply, hostPhases } from './wire/protocol.ts'
import { hostPaths, removeOwnFolders } from './wire/record.ts'
import { endedEvent, reportMaker } from './end-report.ts'
import { LiveRun } from './run.ts'
import { EventWriter } from './output/writer.ts'
import type { WriterLimits } from './output/writer-options.ts'

/** The exit code of a host that has nowhere to write. */
export const nowhereToWrite = 74

type Phase = (typeof hostPhases)[number]

export interface HostOptions {
  world: World
  log: HostLog
  stateDir: string
  hostId: string
  openSpool(): Spool
  writerLimits: WriterLimits
  exitGraceMs: number
  quietTerminalMs: number
  /** The time that a host which has not started waits for a daemon. */
  lonelyMs: number
  reply(message: HostReply): void
  spooled(lastSeq: number): void
  /** The host's record changed. */
  record(run: Pick<HostRecord, 'runId' | 'fence' | 'harness' | 'wall'>): void
  /** All is done; the process leaves. `hangs`: calls to a file system never came back, which an exit would wait for. */
  leave(exitCode: number, hangs: boolean): void
}

/** The host ends its run this long before the control plane would give the run of a silent device up. */
const aloneMarginMs = 5 * 60_000

/**
 * The host of one run, from its assignment to its ending. A host never has a second run.
 *
 *     idle -- assign -> preparing -> prepared -- start -> running -- harness gone -> ending -> ended (leaves)
 *       \________________________________/ discard, or no daemon for `lonelyMs` (leaves, nothing is told)
 *     idle -- the daemon that started it ended (leaves)
 *                       preparing, prepared -- stop -> ended without a launch
 *
 * A start or stop may come while the base is still being recorded: it is kept until that is done. Once started the host
 * works on without a daemon, until the control plane is about to give the run up.
 */
export class RunHost {
  readonly #options: HostOptions
  #phase: Phase = 'idle'
  #assignment: Assignment | null = null
  #prepared: Prepared | null = null
  #start: StartRequest | null = null
  #earlyStop: { exitReason: ExitReason; message: string | null } | null = null
  readonly #sharedWith = new Set<RunId>()
  #earlyInputs: { inputId: string; text: string }[] = []
  readonly #spool: SpoolAhead
  readonly #wall: StandingWall
  readonly #connections: Connections
  readonly #ahead: SkillsAhead
  #writer: EventWriter | null = null
  #run: LiveRun | null = null
  #cancelLonely: (() => void) | null = null
  #isLeaving = false

  constructor(options: HostOptions) {
    this.#options = options
    this.#connections = new Connections({ world: options.world, ask: (request) => options.reply(request) })
    this.#spool = new SpoolAhead(() => options.openSpool())
    const { own } = hostPaths(options.stateDir, options.hostId)
    this.#wall = new StandingWall(own, options.world, sandboxFactsIn(process.env))
    this.#ahead = new SkillsAhead(this.#wall.own, options.world)
  }

  hello(): HostReply {
    return {
      type: 'hello',
      hostId: this.#options.hostId,
      pid: process.pid,
      runId: this.#assignment?.spec.runId ?? null,
      fence: this.#assignment?.fence ?? null,
      phase: this.#phase,
      lastSeq: this.#writer?.lastSeq ?? 0,
    }
  }

  daemonCame(): void {
    this.#cancelLonely?.()
    this.#cancelLonely = null
  }

  daemonLeft(): void {
    if (this.#earlyStop) return
    if (this.#start) return this.#endIfAlone()
    this.#cancelLonely ??= this.#options.world.after(this.#options.lonelyMs, () => this.#discard())
  }

  /** The daemon that started this host ended. No other one takes a host without a run. */
  daemonEnded(): void {
    if (this.#phase === 'idle') this.#discard()
  }

  /** Without a daemon nobody hears of the run: it is ended here before the control plane would give it up. */
  #endIfAlone(): void {
    const silentMs = this.#assignment?.spec.limits.silentMs
    if (silentMs === undefined) return
    const limit = Math.max(silentMs - aloneMarginMs, silentMs / 2)
    this.#cancelLonely ??= this.#options.world.after(limit, () =>
      this.stop('runner_lost', 'No device manager was there to report the run for too long.'),
    )
  }

  /** Tries the wall before there is a run. */
  tryAhead(): void {
    if (!this.#assignment && !this.#isLeaving) void this.#wall.tryActs()
  }

  /** Opens the spool before there is a run. What is wrong with it shows, and counts, when a run is assigned. */
  openAhead(): void {
    if (this.#assignment || this.#isLeaving) return
    try {
      this.#spool.open()
    } catch (error) {
      this.#options.log('spool_not_opened', { error: messageOf(error) })
    }
  }

  onRequest(request: HostRequest): void {
    switch (request.type) {
      // The socket has heard it before all else.
      case 'owner':
        return
      case 'stand_by':
        if (this.#phase === 'idle' && !this.#isLeaving) this.#wall.standBy(request.wall)
        return
      case 'skills.ahead':
        if (this.#phase === 'idle' && !this.#isLeaving) void this.#ahead.prepare(request.bundles, request.sets)
        return
      case 'assign':
        return void this.#assign(request)
      case 'start':
        return this.#onStart(request)
      case 'stop':
        return this.stop(request.exitReason, request.message)
      case 'shared':
        for (const runId of request.runIds) this.#sharedWith.add(runId)
        if (this.#phase === 'running') this.#run?.tellSharers()
        return
      case 'input':
        if (this.#run) this.#run.input(request.inputId, request.text)
        else if (this.#earlyInputs.length < 100) this.#earlyInputs.push(request)
        return
      case 'change_set.get':
        return void this.#sendChangeSet(request.requestId)
      case 'credential':
        return this.#connections.answered(request.requestId, request.answer)
      case 'discard':
        return this.#discard()
    }
  }

  stop(exitReason: ExitReason, message: string | null): void {
    if (this.#run) return this.#run.stop(exitReason, message)
    if (this.#phase === 'idle') return this.#discard()
    if (this.#phase !== 'preparing' && this.#phase !== 'prepared') return
    this.#earlyStop ??= { exitReason, message }
    if (this.#phase === 'prepared') void this.#endWithoutHarness(this.#earlyStop.exitReason, this.#earlyStop.message)
  }

  /** Ends the run, since nothing that it does can be stored any more: the folder of the device is gone. */
  folderGone(): void {
    if (this.#start) this.stop('crashed', 'The folder of the device manager is gone.')
    else void this.#leave(nowhereToWrite)
  }

  /** Gives up waiting for the spool: it will never take what the writer holds. */
  giveUp(): void {
    this.#writer?.abandon()
  }

  async #assign(request: Assignment): Promise<void> {
    if (this.#assignment) return
    this.#assignment = request
    this.#phase = 'preparing'
    const { world, log, stateDir } = this.#options
    const key = { runId: request.spec.runId, fence: request.fence }
    try {
      // A spool that cannot be opened must show before a harness is started.
      const spool = this.#spool.take(key)
      this.#writer = new EventWriter({
        world,
        key,
        log,
        spool,
        openSpool: () => this.#options.openSpool(),
        limits: this.#options.writerLimits,
        onSpooled: (lastSeq) => this.#options.spooled(lastSeq),
        onBroken: (message) => this.#run?.stop('crashed', message),
        onDamaged: (message) => this.#options.reply({ type: 'spool_damaged', message }),
        onGone: (message) => this.#options.reply({ type: 'spool_gone', message }),
      })
      this.#prepared = await prepare(stateDir, request, {
        world,
        log,
        wall: this.#wall,
        connections: this.#connections,
        ahead: this.#ahead,
        timeline: new Timeline(world, request.offeredAgoMs),
        sharedWith: this.#sharedWith,
      })
    } catch (error) {
      log('prepare_failed', { ...key, error: messageOf(error) })
      if (error instanceof SpoolDamagedError) this.#options.reply({ type: 'spool_damaged', message: messageOf(error) })
      if (error instanceof SpoolUnavailableError) this.#options.reply({ type: 'spool_gone', message: messageOf(error) })
      return this.#leave(nowhereToWrite)
    }
    // The run has no wall, or another one.
    this.#wall.end()
    this.#phase = 'prepared'
    this.#options.reply({ type: 'prepared' })
    if (this.#earlyStop) return this.#endWithoutHarness(this.#earlyStop.exitReason, this.#earlyStop.message)
    if (this.#start) this.#launch(this.#prepared, this.#start)
  }

  #onStart(request: StartRequest): void {
    if (this.#start || this.#earlyStop || !this.#assignment) return
    this.#start = request
    this.daemonCame()
    if (this.#prepared) this.#launch(this.#prepared, request)
  }

  #launch(prepared: Prepared, start: StartRequest): void {
    const { world, log, exitGraceMs, quietTerminalMs } = this.#options
    const { spec, fence } = prepared.assignment
    this.#phase = 'running'
    try {
      const { plan } = prepared
      if ('problem' in plan) throw plan.problem
      const onLaunched = ({ pid }: ProcessIdentity) => this.#options.reply({ type: 'started', pid, at: world.now() })
      const onTried = (acts: readonly TriedAct[]) => this.#options.reply({ type: 'wall', acts: [...acts] })
      const limits = { exitGraceMs, quietTerminalMs, onTried }
      this.#run = LiveRun.launch({ world, log, prepared, plan, start, writer: this.#writer!, ...limits, onLaunched })
    } catch (error) {
      this.#options.reply({ type: 'started', pid: null, at: world.now() })
      if (!(error instanceof HarnessLaunchError)) log('launch_failed', { runId: spec.runId, error: messageOf(error) })
      const exitReason = error instanceof WallOpenError ? 'dispatch_error' : 'harness_start_failed'
      return void this.#endWithoutHarness(exitReason, messageOf(error))
    }
    // The harness runs from here on; all the rest may fail without changing that.
    const run = this.#run
    run.begin()
    void this.#ahead.end()
    for (const { inputId, text } of this.#earlyInputs) run.input(inputId, text)
    this.#earlyInputs = []
    this.#options.record({ runId: spec.runId, fence, harness: run.harness, wall: run.holder })
    void run.untilEnded(() => (this.#phase = 'ending')).then((report) => this.#ended(report))
  }

  async #endWithoutHarness(exitReason: ExitReason, message: string | null): Promise<void> {
    if (this.#phase === 'ending') return
    this.#phase = 'ending'
    const { assignment, timeline, sandboxActs: wall } = this.#prepared!
    const told = message === null ? null : redactOfStart(this.#start).text(message)
    const reported = { exitReason, exitCode: null, signal: null, message: told, sessionId: null, forced: false, wall }
    const changeSet = await this.#changeSetWithoutHarness(this.#prepared!)
    const made = reportMaker(reported, assignment, timeline)
    const report = await this.#writer!.finish(endedEvent(reported), changeSet, made)
    await this.#ended(report)
  }

  async #ended(report: EndReport | null): Promise<void> {
    if (report === null) return this.#leave(nowhereToWrite)
    this.#phase = 'ended'
    this.#options.reply({ type: 'ended', report })
    await this.#leave(0)
  }

  async #sendChangeSet(requestId: string): Promise<void> {
    const prepared = this.#prepared
    if (!prepared) return
    const { spec, fence } = prepared.assignment
    const stored = this.#phase === 'ended' ? this.#stored({ runId: spec.runId, fence }) : null
    const fresh = () => this.#run?.changeSet() ?? this.#changeSetWithoutHarness(prepared)
    const result = stored ?? (await fresh())
    this.#options.reply({ type: 'change_set', requestId, result })
  }

  /**
   * Takes the secrets of this run out of what others changed in the folder meanwhile: another run of its agent is given the
   * same ones. Before the start they are not known here, and no change-set is told.
   */
  async #changeSetWithoutHarness(prepared: Prepared): Promise<ChangeSetResult> {
    if (this.#start === null) return { ok: false, code: 'source_unknown', message: 'The run did not start.' }
    return redactWhole(await changeSetOf(prepared, this.#options.world), redactOfStart(this.#start))
  }

  #stored(key: { runId: RunId; fence: number }) {
    const spool = this.#options.openSpool()
    try {
      return spool.ending(key)?.changeSet ?? null
    } finally {
      spool.close()
    }
  }

  #discard(): void {
    if (this.#start || this.#earlyStop) return
    void this.#leave(0)
  }

  async #leave(exitCode: number): Promise<void> {
    if (this.#isLeaving) return
    this.#isLeaving = true
    await this.#ahead.end()
    this.#spool.close()
    this.#wall.end()
    this.#writer?.close()
    try {
      if (this.#prepared) await cleanUp(this.#prepared)
      else removeOwnFolders(this.#wall.own)
    } catch (error) {
      // The next daemon removes what is left.
      this.#options.log('clean_up_failed', { error: messageOf(error) })
    }
    this.#options.leave(exitCode, (this.#prepared?.lookup.hanging ?? 0) > 0)
  }
}
