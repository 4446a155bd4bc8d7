import type { RunId } from '../../shared/lib/ids.ts'
import type { ChangeSetResult } from '../../shared/device/change-set.ts'
import type { EndReport } from '../../shared/device/protocol.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import { terminalReaders } from '../process/terminal-readers.ts'
import { openedWall, type TriedAct } from '../../shared/runs/wall-acts.ts'
import type { ProcessIdentity } from '../process/identity.ts'
import type { HarnessOutcome, HarnessDialogue, ProcessExit } from '../harness/adapter.ts'
import { changeSetOf, drain, stopTree, type Tree } from './ending.ts'
import { CallJudge } from './permission/call-judge.ts'
import type { Launched } from './launch/launch.ts'
import { launchFirst, type LaunchedRun, type LaunchParts } from './launched-run.ts'
import { errorEvent } from '../harness/parts/error-event.ts'
import { leftOutEvent } from '../harness/parts/left-out-event.ts'
import type { ServerLeftOut } from '../../shared/runs/filled-servers.ts'
import { skillEvents } from './launch/skills.ts'
import { leftOutEvents } from './launch/workspace-skills.ts'
import { TerminalWatch } from './terminal-watch.ts'
import { Calls } from './calls.ts'
import { type Watchdog, watchdogOf } from './watchdog.ts'
import type { HostLog } from '../log/host-log.ts'
import { Pipeline } from './output/pipeline.ts'
import {
  redactorOfStart,
  redactWhole,
  streamRedactor,
  wholeValues,
  type Redact,
  type StreamRedactor,
} from './output/redaction.ts'
import { deliverRun, withDelivery } from './delivery.ts'
import { endedEvent, reportMaker, reportOn } from './end-report.ts'
import { type SandboxWatch, watchSandbox } from './sandbox-watch.ts'
import { isInCheckout } from '../wall/read-only.ts'
import type { EventWriter } from './output/writer.ts'

export interface RunParts extends LaunchParts {
  log: HostLog
  writer: EventWriter
  /** Hears by which acts the wall was tried, once that is known. */
  onTried(acts: readonly TriedAct[]): void
  /** A harness that has given its result has this long to exit by itself. */
  exitGraceMs: number
  /** A terminal in which nothing was printed for this long is looked at. */
  quietTerminalMs: number
}

/** A harness that was told to stop because a person is asked has this long before it is interrupted. */
const askGraceMs = 3_000
const triedMs = 500
/** A run that ends so asked by a call of its own, which has yet to hear that it did. */
const endsToAsk: readonly ExitReason[] = ['question_asked', 'approval_requested']
interface Stop {
  exitReason: ExitReason
  message: string | null
  outOfMemory?: boolean
}

const ownCheckoutText =
  'This run works in the checkout from which svc runs on this machine. It may change the sources, and the next svc that a person types there executes them outside of the wall; releases, packages and Node are read-only. Let runs develop svc in a clone of its own.'

function notBegun(trouble: string, tried: readonly TriedAct[] | null): HarnessOutcome {
  const opened = tried && openedWall(tried)
  if (opened !== null) return { exitReason: 'dispatch_error', message: opened, sessionId: null, resumeRefused: false }
  const message = `The wall around the run could not be entered: ${trouble}`
  return { exitReason: 'harness_start_failed', message, sessionId: null, resumeRefused: false }
}

/**
 * A launched harness, until its ending is in the spool. Whatever asks for its end (a person, a limit, a broken spool, its
 * own result), the first reason counts and there is one ending.
 *
 *     launched -- leader exits / stop -> tree ended, output drained -> change-set -> ending stored
 *        \------- a call must be asked: told to stop, interrupted after `askGraceMs` --/
 *        \------- a call has asked: ended, not interrupted, once the calls that go on have their results, interrupted after `askGraceMs` --/
 */
export class LiveRun {
  readonly harness: ProcessIdentity
  /** First process of the run's namespaces, where it has any. */
  readonly holder: ProcessIdentity | null
  readonly #parts: RunParts
  readonly #child: Launched
  readonly #pipeline: Pipeline
  readonly #watchdog: Watchdog
  readonly #calls: Calls
  #terminalWatch: TerminalWatch | null = null
  readonly #dialogue: HarnessDialogue
  readonly #redact: Redact
  readonly #judge: CallJudge
  readonly #tree: Tree
  readonly #serversLeftOut: readonly ServerLeftOut[]
  readonly #seenInputs = new Set<string>()
  readonly #toldSharers = new Set<RunId>()
  #stop: Stop | null = null
  #stopping: Promise<void> | null = null
  #isForced = false
  #sandbox: SandboxWatch | null = null
  #cancelTelling: (() => void) | null = null
  #cancelExitGrace: (() => void) | null = null
  #cancelAskGrace: (() => void) | null = null
  #cancelCallsGrace: (() => void) | null = null

  /** Launches the harness and watches it. Throws HarnessLaunchError. */
  static launch(parts: RunParts): LiveRun {
    const launched = launchFirst(parts, {
      onOutput: (chunk) => run.#output(chunk),
      onStderr: (chunk) => run.#pipeline.stderr(chunk),
    })
    const run = new LiveRun(parts, launched)
    run.#watch()
    return run
  }

  private constructor(parts: RunParts, { child, harness, cgroup, servers, leftOut }: LaunchedRun) {
    this.#parts = parts
    const { prepared, plan, start, world } = parts
    const { spec } = prepared.assignment
    this.#serversLeftOut = leftOut
    this.#child = child
    this.harness = harness
    const wall = prepared.wall !== null && 'end' in prepared.wall ? prepared.wall : null
    this.holder = wall?.holder ?? null
    this.#tree = { runId: spec.runId, child, leader: harness, cgroup, wall, world, log: parts.log }
    const redactor = redactorOfStart(start)
    prepared.connections.teach(redactor)
    this.#redact = wholeValues(redactor)
    this.#dialogue = plan.adapter.dialogue(spec, {
      redactText: this.#redact.text,
      redactStream: () => streamRedactor(redactor),
      cwd: prepared.cwd,
      realCwd: prepared.place.realCwd,
      mcpServers: servers,
      skills: plan.facts.skills,
    })
    this.#watchdog = watchdogOf(world, spec, (trip) => this.stop(trip.exitReason, trip.message))
    this.#judge = new CallJudge({
      spec,
      place: prepared.place,
      redactText: this.#redact.text,
      mayAct: () => this.#stop === null || this.#cancelAskGrace !== null,
      mayAsk: () => spec.gate?.needsRule !== true,
      onAsked: ({ safeSummary }) => this.#stopToAsk(safeSummary),
    })
    this.#pipeline = this.#makePipeline(streamRedactor(redactor))
    this.#calls = new Calls({
      world,
      limits: spec.limits,
      running: { runId: spec.runId, leader: harness, cgroup, exclude: [process.pid] },
      warn: (text) => setImmediate(() => this.#pipeline.input(text)),
      tell: (event) => parts.writer.emit([event]),
      onCall: () => this.#watchdog.sawToolCall(),
    })
  }

  #watch(): void {
    this.#watchdog.start()
    this.#sandbox = watchSandbox(this.#parts.world, (exhaustion) => {
      this.#stop ??= { exitReason: 'error', ...exhaustion }
      this.#endNow()
    })
  }

  #output(chunk: Uint8Array): void {
    this.#parts.prepared.timeline.mark('firstOutput')
    this.#terminalWatch?.sawTraffic()
    this.#pipeline.output(chunk)
  }

  /** Writes the first event, and sends the harness what it is sent first. */
  begin(): void {
    const { prepared, plan, writer } = this.#parts
    const { pid } = this.#child
    const { spec, wall, harnessVersion: version } = prepared.assignment
    const { harness } = spec
    writer.emit([
      {
        kind: 'started',
        data: { harness, ...(version !== null && { version }), pid, cwd: prepared.cwd, argv0: plan.launch.file },
      },
      ...(prepared.skills === null ? [] : [...skillEvents(prepared.skills), ...leftOutEvents(prepared.skills)]),
    ])
    this.tellSharers()
    if (wall !== null && isInCheckout(wall, prepared.cwd)) writer.emit([errorEvent('svc_checkout', ownCheckoutText)])
    for (const { names, why } of this.#parts.start.variablesMissed ?? [])
      writer.emit([errorEvent('variable_missed', `The run does without ${names.join(', ')}: ${why}`)])
    if (this.#serversLeftOut.length > 0) writer.emit(this.#serversLeftOut.map(leftOutEvent))
    this.#pipeline.open()
    this.#watchTerminal()
    // The shell that tried has become the harness by then; else the report of the end tells.
    this.#cancelTelling = this.#parts.world.after(triedMs, () => {
      const acts = this.#child.actsTried()
      if (acts !== null) this.#parts.onTried(acts)
    })
  }

  #watchTerminal(): void {
    const { terminal } = this.#child
    if (terminal === undefined) return
    const { world, writer, quietTerminalMs: quietMs } = this.#parts
    // A note of ours does not go by the pipeline, since it is no progress of the harness.
    const tell = (event: RunEventBody) => writer.emit([event])
    this.#terminalWatch = new TerminalWatch({ world, quietMs, listReaders: () => terminalReaders(terminal), tell })
    this.#terminalWatch.start()
  }

  stop(exitReason: ExitReason, message: string | null): void {
    this.#stop ??= { exitReason, message }
    this.#watchdog.stop()
    if (this.#stopping !== null) return
    if (!endsToAsk.includes(exitReason) || this.#calls.made === 0) return this.#interrupt()
    // An interrupt looks to the harness like a person who refuses what it does, and its session is gone on with.
    if (!this.#calls.isAnyOpen) return this.#endNow()
    this.#cancelCallsGrace ??= this.#parts.world.after(askGraceMs, () => this.#interrupt())
  }

  #interrupt(): void {
    if (this.#stopping !== null) return
    this.#pipeline.interrupt()
    this.#stopping = stopTree(this.#tree)
  }

  /**
   * Stops the run, since a person is asked about a call. More calls of the same turn may come and be asked, too: so the harness,
   * which has been told, may end by itself before it is interrupted.
   */
  #stopToAsk(summary: string): void {
    this.#stop ??= { exitReason: 'approval_requested', message: `Waits for a person's approval of ${summary}` }
    this.#watchdog.stop()
    this.#cancelAskGrace ??= this.#parts.world.after(askGraceMs, () => {
      this.#stopping ??= stopTree(this.#tree)
    })
  }

  /** Tells of each other run that works in the folder once: the daemon names all of them each time. */
  tellSharers(): void {
    const runIds = [...this.#parts.prepared.sharedWith].filter((runId) => !this.#toldSharers.has(runId))
    for (const runId of runIds) this.#toldSharers.add(runId)
    if (runIds.length > 0) this.#parts.writer.emit([{ kind: 'folder_shared', data: { runIds } }])
  }

  /** Sends a person's text to the harness, and ignores one that was sent again. */
  input(inputId: string, text: string): void {
    if (this.#seenInputs.has(inputId)) return
    this.#seenInputs.add(inputId)
    this.#terminalWatch?.sawTraffic()
    this.#pipeline.input(text)
  }

  async changeSet(): Promise<ChangeSetResult> {
    return redactWhole(await changeSetOf(this.#parts.prepared, this.#parts.world), this.#redact)
  }

  /** Resolves with the report once the ending is on disk; null: it was not waited for any longer. */
  async untilEnded(onEnding: () => void): Promise<EndReport | null> {
    const { assignment, timeline, mcpProxies } = this.#parts.prepared
    const exit = await drain(this.#tree, () => this.#stopping)
    timeline.mark('ended')
    onEnding()
    mcpProxies.close()
    this.#watchdog.stop()
    this.#calls.stop()
    this.#terminalWatch?.stop()
    this.#sandbox?.stop()
    this.#cancelTelling?.()
    this.#cancelExitGrace?.()
    this.#cancelAskGrace?.()
    this.#cancelCallsGrace?.()
    const processExit: ProcessExit = { ...exit, stoppedFor: this.#stop?.exitReason ?? null }
    this.#parts.writer.keepTail()
    this.#pipeline.end(processExit)
    const wall = this.#child.actsTried()
    const trouble = this.#child.launchTrouble()
    const outcome = trouble === null ? this.#dialogue.outcome(processExit) : notBegun(trouble, wall)
    const nothingAllowed =
      (this.#stop ?? outcome).exitReason === 'completed' ? this.#judge.nothingAllowed(this.#calls.made) : null
    const { spec } = assignment
    const exhausted = this.#sandbox?.exhausted(exit) ?? null
    const told = reportOn({ exit, outcome, stop: this.#stop, nothingAllowed, exhausted, spec, forced: this.#isForced })
    const inClone = { ...told, message: this.#redacted(told.message), wall }
    const changeSet = await this.changeSet()
    const delivered = await deliverRun(spec, (events) => this.#parts.writer.emit(events))
    const reported = withDelivery(inClone, delivered)
    return this.#parts.writer.finish(endedEvent(reported), changeSet, reportMaker(reported, assignment, timeline))
  }

  #redacted(message: string | null): string | null {
    return message === null ? null : this.#redact.text(message)
  }

  #makePipeline(redactor: StreamRedactor): Pipeline {
    const { prepared, plan, writer } = this.#parts
    const judge = this.#judge
    return new Pipeline({
      world: this.#parts.world,
      dialogue: this.#dialogue,
      redactor,
      redact: this.#redact,
      isTranscript: plan.launch.isTranscript ?? plan.launch.io === 'pty',
      lookUp: (ask) => judge.lookUp(ask, prepared.lookup),
      decide: (ask, reach) => judge.answer(ask, reach),
      emit: (bodies) => {
        this.#watchdog.sawEvent()
        for (const body of bodies) this.#calls.note(body)
        writer.emit(bodies)
        if (this.#cancelCallsGrace !== null && !this.#calls.isAnyOpen) this.#endNow()
      },
      write: (text) => this.#child.write(text),
      closeInput: () => this.#child.closeInput(),
      onFinished: () => this.#giveExitGrace(),
      onEndNow: () => this.#endNow(),
    })
  }

  /** Ends the harness without interrupting it: the dialogue says how it ended. */
  #endNow(): void {
    this.#watchdog.stop()
    this.#stopping ??= stopTree(this.#tree, 'terminate')
  }

  #giveExitGrace(): void {
    this.#cancelExitGrace ??= this.#parts.world.after(this.#parts.exitGraceMs, () => {
      // The result counts; that it did not leave is only noted.
      this.#isForced = this.#stop === null
      this.#endNow()
    })
  }
}
