import type { World } from '../../shared/lib/world.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import { harnessFactsOf } from '../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { sinceBoot, type SinceBoot } from '../process/boot-clock.ts'

export interface WatchLimits {
  runMs: number
  noProgressMs: number
  /** The time until the first event; null: the harness may be silent at its start. */
  firstEventMs: number | null
  toolCalls: number
}
export interface Trip {
  exitReason: ExitReason
  message: string
}

const longestTickMs = 15_000

/**
 * Ends a run that takes too long, does nothing, or calls too many tools. The whole time counts the machine's sleep, and no change of
 * the wall clock. Silence is measured while the machine is awake: a tick that comes late counts for no more than its own interval, so
 * no watchdog ends a healthy run on waking.
 */
export class Watchdog {
  readonly #world: World
  readonly #limits: WatchLimits
  readonly #onTrip: (trip: Trip) => void
  readonly #tickMs: number
  readonly #sinceBoot: SinceBoot
  #startedAt = 0
  #lastTick = 0
  #silentMs = 0
  #sawFirst = false
  #toolCalls = 0
  #cancelTimer: (() => void) | null = null
  #tripped = false

  constructor(clocks: { world: World; sinceBoot?: SinceBoot }, limits: WatchLimits, onTrip: (trip: Trip) => void) {
    this.#world = clocks.world
    this.#sinceBoot = clocks.sinceBoot ?? sinceBoot
    this.#limits = limits
    this.#onTrip = onTrip
    const shortest = Math.min(limits.runMs, limits.noProgressMs, limits.firstEventMs ?? Infinity)
    this.#tickMs = Math.max(10, Math.min(longestTickMs, Math.floor(shortest / 4)))
  }

  start(): void {
    if (this.#cancelTimer || this.#tripped) return
    this.#startedAt = this.#sinceBoot()
    this.#lastTick = this.#world.monotonic()
    this.#arm()
  }

  stop(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#tripped = true
  }

  /** The harness did something. */
  sawEvent(): void {
    this.#sawFirst = true
    this.#silentMs = 0
  }

  sawToolCall(): void {
    this.#toolCalls++
    if (this.#toolCalls > this.#limits.toolCalls) {
      this.#trip('budget_exceeded', `The run made more than ${this.#limits.toolCalls} tool calls.`)
    }
  }

  #arm(): void {
    this.#cancelTimer = this.#world.after(this.#tickMs, () => this.#tick())
  }

  #tick(): void {
    const monotonic = this.#world.monotonic()
    this.#silentMs += Math.min(monotonic - this.#lastTick, this.#tickMs * 2)
    this.#lastTick = monotonic
    const elapsed = this.#sinceBoot() - this.#startedAt
    const { runMs, noProgressMs, firstEventMs } = this.#limits
    if (elapsed >= runMs) {
      this.#trip('timeout', `The run took longer than its limit of ${inWords(runMs)}.`)
    } else if (!this.#sawFirst && firstEventMs !== null && this.#silentMs >= firstEventMs) {
      this.#trip('harness_start_failed', `The harness gave no event in its first ${inWords(firstEventMs)}.`)
    } else if (this.#silentMs >= noProgressMs) {
      this.#trip('no_progress', `The harness gave no event for ${inWords(noProgressMs)}.`)
    } else {
      this.#arm()
    }
  }

  #trip(exitReason: ExitReason, message: string): void {
    if (this.#tripped) return
    this.stop()
    this.#onTrip({ exitReason, message })
  }
}

/** A command may be silent for as long as it likes at its start; a structured harness tells at once that it is there. */
export function watchdogOf(
  world: World,
  { harness, protocol, limits }: RunSpec,
  onTrip: (trip: Trip) => void,
): Watchdog {
  return new Watchdog(
    { world },
    { ...limits, firstEventMs: harnessFactsOf({ harness, protocol }).speaksFirst ? limits.firstEventMs : null },
    onTrip,
  )
}

function inWords(ms: number): string {
  if (ms < 1_000) return `${ms} ms`
  if (ms < 120_000) return `${Math.round(ms / 1_000)} seconds`
  return `${Math.round(ms / 60_000)} minutes`
}
