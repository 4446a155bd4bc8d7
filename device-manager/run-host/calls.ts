import type { RunId } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { errorEvent } from '../harness/parts/error-event.ts'
import { sinceBoot } from '../process/boot-clock.ts'
import type { ProcessIdentity } from '../process/identity.ts'
import { signalEach } from '../process/kill.ts'
import { findProcessesOfRun } from '../process/orphans.ts'

/** Facts by which the processes of a run are found, and those that are never ended. */
interface Running {
  runId: RunId
  leader: ProcessIdentity
  cgroup: string | null
  /** Processes that are never ended. */
  exclude: readonly number[]
}

export interface CallsOptions {
  world: World
  limits: Pick<RunSpec['limits'], 'toolCalls' | 'callMs' | 'warnAtCalls'>
  running: Running
  /** Tells the agent the text. */
  warn: (text: string) => void
  onCall: () => void
  tell: (event: RunEventBody) => void
}

const graceMs = 5_000
/** The kernel notes when a process began to a hundredth of a second. */
const tickMs = 10

/**
 * The tool calls that the harness told of. In a sandbox the agent is warned before it has made as many as it may, and a call that
 * takes too long loses its processes, which its harness then tells the agent. Of the run's processes those belong to a call that
 * began after it; so do those of calls that were made meanwhile.
 */
export class Calls {
  readonly #options: CallsOptions
  /** Calls that have no result yet, by their ids, each with the function that stops its time. */
  readonly #open = new Map<string, () => void>()
  #made = 0

  constructor(options: CallsOptions) {
    this.#options = options
  }

  get made(): number {
    return this.#made
  }

  get isAnyOpen(): boolean {
    return this.#open.size > 0
  }

  note(event: RunEventBody): void {
    if (event.kind === 'tool_call') this.#began(event.data.toolCallId)
    if (event.kind === 'tool_result') this.#finished(event.data.toolCallId)
  }

  #began(toolCallId: string): void {
    const { world, limits, warn, onCall } = this.#options
    this.#made++
    if (this.#made === limits.warnAtCalls)
      warn(
        `You have made ${this.#made} of the ${limits.toolCalls} tool calls that this run may make. Bring your work to a good end before they are used up, and say what is left to do.`,
      )
    const begunAt = sinceBoot()
    const { callMs } = limits
    const stopTimer = callMs == null ? () => {} : world.after(callMs, () => void this.#end(begunAt).catch(leftToTheRun))
    this.#finished(toolCallId)
    this.#open.set(toolCallId, stopTimer)
    onCall()
  }

  #finished(toolCallId: string): void {
    this.#open.get(toolCallId)?.()
    this.#open.delete(toolCallId)
  }

  /** Ends no call from now on. */
  stop(): void {
    for (const stopTimer of this.#open.values()) stopTimer()
  }

  async #end(begunAt: number): Promise<void> {
    const { world, limits, tell } = this.#options
    const hours = limits.callMs! / 3_600_000
    tell(
      errorEvent(
        'call_too_long',
        `A tool call took longer than ${hours} hours, which is the most in a sandbox; its processes are ended.`,
      ),
    )
    const found = await this.#begunAfter(begunAt)
    signalEach(found, ['SIGTERM'])
    await world.sleep(graceMs)
    signalEach(found, ['SIGKILL'])
  }

  async #begunAfter(at: number): Promise<ProcessIdentity[]> {
    const { runId, leader, cgroup, exclude } = this.#options.running
    const { own } = await findProcessesOfRun({
      runId,
      roots: [leader],
      since: leader.startTime,
      cgroup,
      exclude: [...exclude, leader.pid],
    })
    return own.filter(({ startTime }) => (Number(startTime) + 1) * tickMs > at)
  }
}

/** A call keeps its processes where no file is left to find them with: the limits of the run end them. */
const leftToTheRun = () => {}
