import { readFileSync, writeFileSync } from 'node:fs'
import { sandboxFactsIn } from '../../shared/device/sandbox.ts'
import type { World } from '../../shared/lib/world.ts'

// The memory of a sandbox. Want of it shows in three ways: the kernel ends a process, and the harness is preferred to the runner, which then
// says so; a program gives up by itself; or nothing is ended, and all that is done is to read programs again and again, which
// goes on for minutes.

/** The files of cgroups of version 2, and those of version 1. */
const places = [
  {
    kills: '/sys/fs/cgroup/memory.events',
    limit: '/sys/fs/cgroup/memory.max',
    stat: '/sys/fs/cgroup/memory.stat',
    held: /^anon (\d+)$/m,
    faults: /^pgmajfault (\d+)$/m,
  },
  {
    kills: '/sys/fs/cgroup/memory/memory.oom_control',
    limit: '/sys/fs/cgroup/memory/memory.limit_in_bytes',
    stat: '/sys/fs/cgroup/memory/memory.stat',
    held: /^total_rss (\d+)$/m,
    faults: /^total_pgmajfault (\d+)$/m,
  },
] as const

const gib = 1024 ** 3
export const inGib = (bytes: number): string => `${Number((bytes / gib).toFixed(2))} GiB`

const sampleMs = 1_000
/** A sandbox thrashes when in so many samples in a row programs hold this share of its memory, and this many pages were read again in each. */
const thrashing = { samples: 5, share: 0.9, faults: 200 }
/** A program that gives up by itself has a limit of its own below that of the sandbox: V8's is half of it. */
const givesUp = { share: 0.4, withinMs: 10_000 }
/** The signals and codes by which a program ends that gives up for want of memory, also where a shell tells it. */
const gaveUpBy = { signals: ['SIGABRT', 'SIGSEGV'], codes: [134, 139] }

interface Exit {
  exitCode: number | null
  signal: string | null
}

export class MemoryWatch {
  readonly #world: World
  readonly #size: string
  readonly #onThrashing: (message: string) => void
  readonly #read: ReadFile
  readonly #killsBefore: number
  readonly #limit: number | null
  #cancel: (() => void) | null = null
  #faults = 0
  #inARow = 0
  #fullAt = Number.NEGATIVE_INFINITY

  /** `size`: the name of the sandbox's. `onThrashing`: called once, with a sentence. `read`: null where a file is not there. */
  constructor(world: World, size: string, onThrashing: (message: string) => void, read: ReadFile = readText) {
    this.#world = world
    this.#size = size
    this.#onThrashing = onThrashing
    this.#read = read
    this.#killsBefore = killsNow(read)
    this.#limit = limitNow(read)
    if (this.#limit !== null) this.#arm()
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  /** Returns a sentence about a process that ended for want of memory since the run began; null: none did. */
  exhausted({ exitCode, signal }: Exit): string | null {
    if (killsNow(this.#read) > this.#killsBefore) return this.#sentence('the kernel ended a process of the run')
    const gaveUp = gaveUpBy.signals.includes(signal ?? '') || gaveUpBy.codes.includes(exitCode ?? 0)
    if (!gaveUp || this.#world.monotonic() - this.#fullAt > givesUp.withinMs) return null
    return this.#sentence('a program of the run gave up, as programs do that get no more')
  }

  #sentence(what: string): string {
    const at = this.#limit === null ? '' : `, ${inGib(this.#limit)}`
    return `The sandbox ran out of memory (${this.#size}${at}): ${what}.`
  }

  #arm(): void {
    this.#cancel = this.#world.after(sampleMs, () => this.#sample())
  }

  #sample(): void {
    const { held, faults } = usageNow(this.#read)
    const share = held / this.#limit!
    if (share >= givesUp.share) this.#fullAt = this.#world.monotonic()
    const isThrashing = share >= thrashing.share && faults - this.#faults >= thrashing.faults
    this.#faults = faults
    this.#inARow = isThrashing ? this.#inARow + 1 : 0
    if (this.#inARow < thrashing.samples) return this.#arm()
    this.#onThrashing(this.#sentence('it did little else but to read its programs again'))
  }
}

/** Has the kernel end this process, and all that it starts from now on, before others of its sandbox. Raising the score needs no right. */
export function endFirst(pid: number, env: NodeJS.ProcessEnv = process.env): void {
  if (sandboxFactsIn(env) === null) return
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000')
  } catch {
    // The process has ended already.
  }
}

function killsNow(read: ReadFile): number {
  for (const { kills } of places) {
    const found = /^oom_kill (\d+)$/m.exec(read(kills) ?? '')
    if (found !== null) return Number(found[1])
  }
  return 0
}

/** Reads the bytes that programs hold now, and the count of pages that were read again since the sandbox began. */
function usageNow(read: ReadFile): { held: number; faults: number } {
  for (const { stat, held, faults } of places) {
    const text = read(stat) ?? ''
    const found = held.exec(text)
    if (found !== null) return { held: Number(found[1]), faults: Number(faults.exec(text)?.[1] ?? 0) }
  }
  return { held: 0, faults: 0 }
}

function limitNow(read: ReadFile): number | null {
  for (const { limit } of places) {
    const bytes = Number(read(limit) ?? Number.NaN)
    // Version 1 writes a number beyond all memory where there is none.
    if (bytes > 0 && bytes < 2 ** 53) return bytes
  }
  return null
}

type ReadFile = (path: string) => string | null

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}
