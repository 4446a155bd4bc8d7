import type { RunId } from '../../../shared/lib/ids.ts'
import type { ProgramFlaw } from '../program/flaw.ts'

// The values that go into the engine and come out. Texts are flat, since a copy of them between threads is cheap.

/** The functions of a program that ask for something to be done. */
export const callKinds = ['agent', 'gate', 'ask', 'checks'] as const
export type CallKind = (typeof callKinds)[number]
/** Tells whether a run does the call; such calls are numbered as steps. */
export const isStep = (kind: CallKind): kind is 'agent' | 'gate' => kind === 'agent' || kind === 'gate'

/** A call that a program made. `args` is JSON; `digest` tells two calls apart. */
export interface ProgramCall {
  kind: CallKind
  args: string
  digest: string
}

/** The outcome of a call, as it is handed to the program. */
export interface HandedResult {
  /** The number of its call, from 0. */
  seq: number
  /** Milliseconds UTC, which the program's clock shows from then on. */
  at: number
  isValue: boolean
  /** JSON of the value, or of a `StepFailure`. */
  text: string
}

/** The words of a `StepError` of a program. */
export interface StepFailure {
  message: string
  code: string
  exitReason: string | null
  runId: RunId | null
}

export interface ReplayInput {
  source: string
  /** JSON of the inputs. */
  input: string
  /** The seed of chance within the program. */
  seed: string
  startedAt: number
  /** Digests of the calls that the program is known to make, by their numbers. */
  known: readonly string[]
  /** The size of the journal so far. */
  journalBytes: number
  /** Results in the order in which they are handed over. */
  results: readonly HandedResult[]
  /** True: the log tells of each call that failed, also where the program ignores the failure. */
  logsFailures?: boolean
  /** Processor time; default: that of `engineLimits`. */
  replayMs?: number
}

export type ProgramEnd =
  | { kind: 'returned'; summary: string | null }
  | { kind: 'failed'; message: string; line: number | null; column: number | null }

export type Replayed =
  | {
      kind: 'replayed'
      /** The entries after the known ones. */
      calls: readonly ProgramCall[]
      /** The last lines. */
      log: readonly string[]
      /** The end of the program; null: it waits. */
      end: ProgramEnd | null
    }
  /** The program made another call than the known one of this number, or none. */
  | { kind: 'differs'; seq: number; made: ProgramCall | null }
  /** The program ended by a limit of the engine, not by itself. */
  | { kind: 'beyond'; limit: EngineLimit }
export type EngineLimit = 'time' | 'memory' | 'crash'

export interface EngineJobs {
  /** The flaw that keeps the program from being run, if any. */
  compile(source: string): Promise<ProgramFlaw | null>
  replay(input: ReplayInput): Promise<Replayed>
}

export const engineLimits = {
  /** Processor time of the thread. */
  replayMs: 2_000,
  memoryBytes: 64 * 1024 * 1024,
  stackBytes: 256 * 1024,
  calls: 1_000,
  journalBytes: 16 * 1024 * 1024,
  logLines: 1_000,
  logLineChars: 1_000,
  logChars: 100_000,
  summaryChars: 10_000,
  messageChars: 2_000,
} as const
