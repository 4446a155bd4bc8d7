import type { RunEventBody } from '../../shared/runs/events.ts'
import type { World } from '../../shared/lib/world.ts'
import { errorEvent } from '../harness/parts/error-event.ts'
import type { TerminalReader } from '../process/terminal-readers.ts'

export interface TerminalWatchOptions {
  world: World
  /** The terminal is looked at when nothing was printed for this long. */
  quietMs: number
  /** Lists those that read from the terminal, as `terminalReaders` does. */
  listReaders: () => TerminalReader[] | null
  tell: (event: RunEventBody) => void
}

/** The number of times that a run is said to wait: a program may ask again and again. */
const maxTold = 20

/**
 * Notices that a run waits for its terminal, at which nobody sits, and says so: once for each time that it fell silent. What is seen changes nothing,
 * for a person may send the answer.
 */
export class TerminalWatch {
  readonly #options: TerminalWatchOptions
  #lastOutput: number
  #isTold = false
  #count = 0
  #cancel: (() => void) | null = null

  constructor(options: TerminalWatchOptions) {
    this.#options = options
    this.#lastOutput = options.world.monotonic()
  }

  start(): void {
    this.#cancel ??= this.#options.world.after(this.#options.quietMs / 2, () => {
      this.#cancel = null
      this.#check()
      if (this.#count < maxTold) this.start()
    })
  }

  stop(): void {
    this.#count = maxTold
    this.#cancel?.()
    this.#cancel = null
  }

  /** The run printed something, or was sent something. */
  sawTraffic(): void {
    this.#lastOutput = this.#options.world.monotonic()
    this.#isTold = false
  }

  #check(): void {
    const { world, quietMs, listReaders, tell } = this.#options
    const silentMs = world.monotonic() - this.#lastOutput
    if (this.#isTold || silentMs < quietMs) return
    const readers = listReaders()
    // Where the system does not tell, silence is all that is known, and most silent runs are at work: it is said once.
    if (readers?.length === 0 || (readers === null && silentMs < quietMs * 2)) return
    this.#isTold = true
    this.#count = readers === null ? maxTold : this.#count + 1
    tell(errorEvent('waits_for_terminal', readers === null ? unknownText(silentMs) : waitsText(readers, silentMs)))
  }
}

const seconds = (ms: number) => `${Math.round(ms / 1000)} seconds`

const unknownText = (silentMs: number) =>
  `Nothing was printed for ${seconds(silentMs)}. This system does not tell whether a program waits for its terminal, at which nobody sits.`

const waitsText = (readers: readonly TerminalReader[], silentMs: number) =>
  `${readers.map(({ name, pid }) => `${name} (process ${pid})`).join(', ')} waits for input from the terminal, at which nobody sits; nothing was printed for ${seconds(silentMs)}. Give the program its answer by an option or a file.`
