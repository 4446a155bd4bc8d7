import { z } from 'zod'

/**
 * Acts that a run must not be able to do. Its runner tries them before the first instruction of the run, from where that is going to be;
 * what was seen is kept with the run.
 */
const phrases = {
  write_outside: 'write outside of its own folders',
  connect_outside: 'connect to a network',
  read_host: 'read a file of the machine that is not for it',
  ptrace: 'reach into a process outside',
  signal: 'send a signal to a process outside',
  raw_socket: 'open a raw socket',
  mount: 'mount a file system',
  device: 'open a device of the machine',
  engine_socket: "connect to the engine's socket",
  daemon_socket: "reach the device manager's socket",
  metadata: 'reach the address of a metadata service',
  other_run: 'reach what belongs to another run',
} as const
export type WallAct = keyof typeof phrases
export const wallActs = Object.keys(phrases) as [WallAct, ...WallAct[]]

/** `not_applicable`: it is allowed there, or nothing is there that it could be tried on. What hangs was not refused. */
export const wallOutcomes = ['refused', 'not_refused', 'not_applicable'] as const
export type WallOutcome = (typeof wallOutcomes)[number]

const seenChars = 300
export const triedAct = z.object({
  act: z.enum(wallActs),
  outcome: z.enum(wallOutcomes),
  /** The act that was tried, and the answer of the system. */
  seen: z.string().max(seenChars),
})
export type TriedAct = z.infer<typeof triedAct>
export const triedActs = z.array(triedAct).max(wallActs.length)

export const tried = (act: WallAct, outcome: WallOutcome, seen: string): TriedAct => ({
  act,
  outcome,
  seen: seen.slice(0, seenChars),
})

/** A sentence about the first act that was not refused; null: all were. */
export function openedWall(acts: readonly TriedAct[]): string | null {
  const open = acts.find(({ outcome }) => outcome === 'not_refused')
  if (open === undefined) return null
  return `The wall around the run does not hold, so it was not started: it could ${phrases[open.act]} (${open.act}: ${open.seen}).`
}
