import type { JobAnswer } from '../../process/worker-pool.ts'
import type { CallRow } from '../../resources/workflows/call-store.ts'
import type { Stall } from '../../resources/workflows/run-store.ts'
import { engineLimits, type Replayed } from '../engine/words.ts'

const limits = {
  time: `The program took more than ${engineLimits.replayMs / 1_000} s of processor time.`,
  memory: `The program took more than ${engineLimits.memoryBytes / 1024 / 1024} MiB of memory.`,
  crash: 'The program cannot be run.',
} as const

/** Tells why a program did not go on, as its run shows it: a limit of the engine, or a call that differs from the journal. */
export function stallOf(answer: JobAnswer<Replayed>, calls: readonly CallRow[]): Stall {
  const nothing = { seq: null, recorded: null, made: null }
  if (answer.kind === 'gave_up') return { ...nothing, message: limits[answer.why] }
  const { value } = answer
  if (value.kind !== 'differs') return { ...nothing, message: limits[value.kind === 'beyond' ? value.limit : 'crash'] }
  const { seq, made } = value
  const recorded = calls.find((call) => call.seq === seq)
  const shown = (call: { kind: string; args: string }) => ({ kind: call.kind, args: call.args.slice(0, 2_000) })
  return {
    message: `The program made another call than before at the place of call ${seq}.`,
    seq,
    recorded: recorded === undefined ? null : shown(recorded),
    made: made === null ? null : shown(made),
  }
}
