import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { World } from '../../shared/lib/world.ts'
import { bootId, startTimeOf } from '../../device-manager/process/identity.ts'
import type { HostProcess, StartHost } from '../../device-manager/run/hosts/host-process.ts'
import { endedEvent, reportMaker } from '../../device-manager/run-host/end-report.ts'
import { spoolOpener } from '../../device-manager/run-host/host-spool.ts'
import { EventWriter } from '../../device-manager/run-host/output/writer.ts'
import { writerLimits } from '../../device-manager/run-host/output/writer-options.ts'
import type { Assignment } from '../../device-manager/run-host/preparation.ts'
import { Timeline } from '../../device-manager/run-host/timeline.ts'
import type { HostReply, HostRequest } from '../../device-manager/run-host/wire/protocol.ts'
import { hostPaths, removeHostFiles, writeHostRecord } from '../../device-manager/run-host/wire/record.ts'
import { HostSocket } from '../../device-manager/run-host/wire/socket.ts'

// Stands in for run hosts and their harnesses: a process of each of ten thousand would take an hour. The socket, the words on it, the writer
// of events and the spool are the real ones.

/** A run at work, which ends when it is told to. */
export interface StandInRun {
  runId: string
  /** Prints so many numbered lines. */
  print(lines: number): void
  end(exitReason: ExitReason): Promise<void>
}

/** `pid`: of a process that lives as long as all hosts, and does nothing. */
export function standInHosts(
  world: World,
  { pid, started }: { pid: number; started: (run: StandInRun) => void },
): StartHost {
  const ended: HostProcess = {
    exitCode: null,
    signalCode: null,
    kill: () => true,
    once: () => ended as never,
    ref: () => undefined,
  }
  return (hostId, { places, spoolPages }) => {
    const begin = async () => {
      await new StandInHost({ world, hostId, stateDir: places.stateDir, spoolPages, pid, started }).listen()
      return ended
    }
    return { hostId, child: begin() }
  }
}

interface Options {
  world: World
  hostId: string
  stateDir: string
  spoolPages: number
  pid: number
  started: (run: StandInRun) => void
}

const silent = () => undefined

class StandInHost {
  readonly #options: Options
  readonly #socket: HostSocket
  #assignment: Assignment | null = null
  #writer: EventWriter | null = null
  #phase: (HostReply & { type: 'hello' })['phase'] = 'idle'
  #printed = 0

  constructor(options: Options) {
    this.#options = options
    this.#socket = new HostSocket({
      path: hostPaths(options.stateDir, options.hostId).socket,
      log: silent,
      hello: () => ({
        type: 'hello',
        hostId: options.hostId,
        pid: options.pid,
        runId: this.#assignment?.spec.runId ?? null,
        fence: this.#assignment?.fence ?? null,
        phase: this.#phase,
        lastSeq: this.#writer?.lastSeq ?? 0,
      }),
      onConnect: silent,
      onRequest: (request) => this.#hear(request),
      onDisconnect: silent,
    })
  }

  async listen(): Promise<void> {
    await this.#socket.listen()
    this.#record()
  }

  #record(): void {
    const { stateDir, hostId, pid } = this.#options
    const identity = { pid, startTime: startTimeOf(pid) ?? '' }
    const { spec, fence } = this.#assignment ?? { spec: null, fence: null }
    writeHostRecord(hostPaths(stateDir, hostId), {
      hostId,
      ...identity,
      bootId: bootId(),
      socket: hostPaths(stateDir, hostId).socket,
      stateDir,
      runId: spec?.runId ?? null,
      fence,
      harness: spec === null ? null : identity,
    })
  }

  #hear(request: HostRequest): void {
    if (request.type === 'assign') this.#assign(request)
    if (request.type === 'start' && this.#phase === 'prepared') this.#start()
    if (request.type === 'stop' && this.#phase === 'running') void this.#end(request.exitReason)
    if (request.type === 'discard' && (this.#phase === 'idle' || this.#phase === 'prepared')) void this.#leave()
  }

  #assign(assignment: Assignment): void {
    const { world, stateDir, spoolPages } = this.#options
    const openSpool = spoolOpener(hostPaths(stateDir, this.#options.hostId).spool, spoolPages)
    this.#assignment = assignment
    this.#writer = new EventWriter({
      world,
      key: { runId: assignment.spec.runId, fence: assignment.fence },
      log: silent,
      spool: openSpool(),
      openSpool,
      limits: writerLimits,
      onSpooled: (lastSeq) => this.#socket.spooled(lastSeq),
      onBroken: silent,
      onDamaged: silent,
      onGone: silent,
    })
    this.#phase = 'prepared'
    this.#socket.reply({ type: 'prepared' })
  }

  #start(): void {
    const { world, pid, started } = this.#options
    this.#phase = 'running'
    this.#record()
    this.#socket.reply({ type: 'started', pid, at: world.now() })
    started({
      runId: this.#assignment!.spec.runId,
      print: (lines) => {
        const texts = Array.from({ length: lines }, () => `${++this.#printed} a line\n`)
        this.#writer!.emit(texts.map((text) => ({ kind: 'text', data: { text } })))
      },
      end: (exitReason) => this.#end(exitReason),
    })
  }

  async #end(exitReason: ExitReason): Promise<void> {
    if (this.#phase !== 'running') return
    this.#phase = 'ending'
    const exitCode = exitReason === 'completed' ? 0 : 1
    const reported = { exitReason, exitCode, signal: null, message: null, sessionId: null, forced: false }
    const timeline = new Timeline(this.#options.world)
    const report = await this.#writer!.finish(
      endedEvent(reported),
      null,
      reportMaker(reported, this.#assignment!, timeline),
    )
    this.#phase = 'ended'
    if (report !== null) this.#socket.reply({ type: 'ended', report })
    await this.#leave()
  }

  async #leave(): Promise<void> {
    this.#writer?.close()
    await this.#socket.close()
    removeHostFiles(hostPaths(this.#options.stateDir, this.#options.hostId))
  }
}

/** The lines that a run printed. */
export const standInLines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `${index + 1} a line\n`).join('')
