import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { allProcesses } from './programs-processes.ts'

// The programs of the system as real processes, and waiting for what they do.

export interface ProgramOptions {
  name: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  /** Both outputs are appended there. */
  logPath: string
  /** A command that becomes the program: `nsenter ... --`. */
  via?: readonly string[]
}

export interface ProgramExit {
  code: number | null
  signal: string | null
}

/** One process of a program, from its start to its exit. */
export class Program {
  readonly pid: number
  readonly exited: Promise<ProgramExit>
  readonly #options: ProgramOptions
  readonly #child: ChildProcess
  #exit: ProgramExit | null = null

  constructor(options: ProgramOptions) {
    this.#options = options
    const log = openSync(options.logPath, 'a')
    const command = [process.execPath, '--disable-warning=ExperimentalWarning', ...options.args]
    const [file = '', ...args] = [...(options.via ?? []), ...command]
    this.#child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    this.pid = this.#child.pid ?? 0
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        this.#exit = { code, signal }
        resolve(this.#exit)
      })
    })
  }

  get isRunning(): boolean {
    return this.#exit === null
  }

  /** Returns what it printed, for messages of failed tests. */
  get log(): string {
    return readFileSync(this.#options.logPath, 'utf8')
  }

  /** Power off: no handler of the program runs. */
  async kill9(): Promise<void> {
    if (this.isRunning) this.#child.kill('SIGKILL')
    await this.exited
  }

  /** Asks it to end and waits. */
  async end(ms = 30_000): Promise<ProgramExit> {
    if (this.isRunning) this.#child.kill('SIGTERM')
    return this.exit(ms)
  }

  /** Its exit, for which it is given `ms`. */
  async exit(ms: number): Promise<ProgramExit> {
    await waitFor(() => !this.isRunning, `${this.#options.name} (pid ${this.pid}) ends`, { ms, about: () => this.log })
    return this.exited
  }

  /** `SIGSTOP`: as a machine that sleeps. */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }
}

/** Thrown while waiting: what is waited for cannot come any more. */
export class Hopeless extends Error {}

export interface WaitOptions {
  ms?: number
  /** The time between two questions; by itself a tenth of what was waited, between 20 ms and `atMostMs`. */
  everyMs?: number
  /** By itself 100: longer where each question costs a server much, and nobody measures how long it takes. */
  atMostMs?: number
  /** More for the message of a failure. */
  about?: () => string
}

/** Asks until the answer is neither null, undefined nor false, and returns it; fails when that takes longer than `ms`. */
export async function waitFor<Value>(
  ask: () => Value | Promise<Value>,
  what: string,
  { ms = 30_000, everyMs, atMostMs = 100, about }: WaitOptions = {},
): Promise<NonNullable<Exclude<Value, false>>> {
  const begun = performance.now()
  const deadline = begun + ms
  let trouble: unknown
  for (;;) {
    try {
      const value = await ask()
      if (value !== null && value !== undefined && value !== false) return value as NonNullable<Exclude<Value, false>>
      trouble = undefined
    } catch (error) {
      if (error instanceof Hopeless) throw error
      // A program that is being started again refuses connections for a while.
      trouble = error
    }
    const now = performance.now()
    if (now > deadline) {
      const more = [trouble instanceof Error && trouble.message, about?.().split('\n').slice(-30).join('\n')]
        .filter(Boolean)
        .join('\n')
      throw new Error(`not within ${ms} ms: ${what}${more ? `\n${more}` : ''}`)
    }
    // Each question to a server costs both of them milliseconds, which programs that start beside it need.
    await delay(everyMs ?? Math.min(atMostMs, Math.max(20, (now - begun) / 10)))
  }
}

/** For faults at random points in time; never to wait for something. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/**
 * Processes that name `text` in their arguments or environment, which they inherit: with the folder of a test, all that
 * came of it. Asked of the system itself, not of the code under test.
 */
export function processesNaming(text: string): { pid: number; command: string }[] {
  return allProcesses(text).filter(({ pid }) => pid !== process.pid)
}

/** Waits until no process names `text` any more; a failure tells which did last. */
export async function nothingNames(text: string, ms = 10_000): Promise<void> {
  let last: { pid: number; command: string }[] = []
  const isGone = () => {
    const found = processesNaming(text)
    if (found.length > 0) last = found
    return found.length === 0
  }
  const about = () => last.map(({ pid, command }) => `${pid} ${command}`).join('\n')
  await waitFor(isGone, `no process of ${text} lives`, { ms, about })
}

/** A run of pseudo-random numbers that a seed repeats; the seed is printed, `FAULT_SEED` sets it. */
export function seededRandom(name: string): () => number {
  const seed = Number(process.env['FAULT_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  process.stderr.write(`${name}: FAULT_SEED=${seed}\n`)
  return randomOf(seed)
}

/** The pseudo-random numbers of that seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
