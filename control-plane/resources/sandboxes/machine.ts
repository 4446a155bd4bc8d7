import type { SandboxState } from '../../../shared/runs/sandbox-states.ts'

/** The time that a sandbox has in a state, in ms; null: as long as its run lives. */
export const stateLimits: Readonly<Record<SandboxState, number | null>> = {
  wanted: 5 * 60_000,
  creating: 5 * 60_000,
  starting: 60_000,
  linked: null,
  lost: 5 * 60_000,
  // The time includes the push of a repository, which has half of it.
  salvaging: 300_000,
  // Work that is not pushed may still be rescued.
  ended: 120_000,
}

/** Containers that are tried, one after another, to tell what a run left. */
export const mostSalvages = 3

export interface Seen {
  /** The engine's word on the container; `waiting`: it was started and does not run yet. null: there is none. */
  container: 'created' | 'waiting' | 'running' | 'exited' | null
  /** The runner is linked, or was. */
  hasLinked: boolean
  /** A runner has begun with the run. */
  hasStarted: boolean
  /** The run has ended, or is gone. */
  isRunOver: boolean
  /** Somebody has begun to create it who may still be at it. */
  isBeingCreated: boolean
  /** A container that was to tell what is left ended before it had, and another one may come further. */
  maySalvageAgain: boolean
  /** The sandbox was given a container that was made ahead of its run. */
  isWarm: boolean
  /** The engine may have one more container, those that are made ahead among them. */
  hasPlace: boolean
  /** The time for which the sandbox has been in its state, in ms. */
  forMs: number
}

export type Act =
  | { do: 'wait' }
  | { do: 'create' }
  | { do: 'start' }
  /** Tells the container that was made ahead who it is. */
  | { do: 'admit' }
  /** The container that was made ahead came to nothing: another one is made in its place. */
  | { do: 'replace' }
  | { do: 'enter'; state: SandboxState }
  /** Notes what became of the container. */
  | { do: 'note loss' }
  /** Has a container with its volume tell what is left. */
  | { do: 'salvage' }
  /** The run cannot go on in it. `why` for people, after what is known of its loss, and before what its log says. */
  | { do: 'give up'; exitReason: 'dispatch_error' | 'sandbox_lost'; why: string }
  /** Ends the container if it still runs. */
  | { do: 'stop' }
  /** The container, its volume and its folder go. */
  | { do: 'remove' }

const wait = { do: 'wait' } as const

/**
 * Decides what is to be done next with a sandbox, as a pure function of what was seen. Its life:
 *
 *     wanted --> creating --> starting --> linked --> ended --> removed
 *        | |         |            ^ |       |  |          ^
 *        | +---------|- - warm - -+ |       |  +-> lost --> salvaging --+
 *        +-----------+--------------+-------+-----------+---------------+   it came to nothing
 *
 * `wanted`: the row is there, and nothing else, or a container that was made ahead (`nextWarmAct`). One that has died since makes place
 * for another one, from `creating` on. `creating`: the engine was asked. `starting`: its container runs, and its runner
 * has not said hello. `linked`: the runner has. `lost`: its container is gone though the run was under way. `salvaging`: a container with
 * the same volume tells what the run left. `ended`: its run needs it no more; the container and the volume are there.
 * `removed` is `removed_at`. Only what the engine lists says that a container is gone; its events hurry the next list.
 */
export function nextAct(state: SandboxState, seen: Seen): Act {
  if (state === 'ended') {
    // The container leaves by itself once all it has is stored.
    if (seen.container === 'running') return isOver('ended', seen) ? { do: 'stop' } : wait
    return { do: 'remove' }
  }
  if (seen.isRunOver) return { do: 'enter', state: 'ended' }
  if (isOver(state, seen)) return { do: 'give up', exitReason: reasonIn(state), why: tooLate[state] }
  switch (state) {
    case 'wanted':
      if (seen.isWarm) return seen.container === 'running' ? { do: 'admit' } : { do: 'replace' }
      return seen.hasPlace ? { do: 'enter', state: 'creating' } : wait
    case 'creating':
      if (seen.container === null) return seen.isBeingCreated ? wait : { do: 'create' }
      if (seen.container === 'waiting') return wait
      return seen.container === 'created' ? { do: 'start' } : { do: 'enter', state: 'starting' }
    case 'starting':
      if (seen.hasLinked) return { do: 'enter', state: 'linked' }
      if (seen.container === 'running') return wait
      // The container may have died before it was told who it is.
      if (seen.isWarm && !seen.hasStarted) return { do: 'replace' }
      return { do: 'give up', exitReason: 'dispatch_error', why: 'The sandbox ended before its runner was connected.' }
    case 'linked':
      if (seen.container === 'running') return wait
      // A run that has not started has nothing there that could be lost.
      return seen.hasStarted ? { do: 'note loss' } : { do: 'give up', exitReason: 'sandbox_lost', why: gone }
    case 'lost':
      // A server started the second container and died before it noted that.
      return isStarted(seen) ? { do: 'enter', state: 'salvaging' } : { do: 'salvage' }
    case 'salvaging':
      if (isStarted(seen)) return wait
      // The time of the state is not renewed: each try has what those before left of it.
      if (seen.maySalvageAgain) return { do: 'salvage' }
      return { do: 'give up', exitReason: 'sandbox_lost', why: unsaved }
  }
}

const isStarted = ({ container }: Seen): boolean => container === 'waiting' || container === 'running'

const gone = 'The sandbox of this run is gone.'
/** After what became of the sandbox. */
const unsaved = 'What it had not sent is lost.'

const reasonIn = (state: SandboxState) =>
  state === 'lost' || state === 'salvaging' ? ('sandbox_lost' as const) : ('dispatch_error' as const)

function isOver(state: SandboxState, { forMs }: Seen): boolean {
  const limit = stateLimits[state]
  return limit !== null && forMs > limit
}

const tooLate: Readonly<Record<SandboxState, string>> = {
  wanted: 'No engine made the sandbox in time.',
  creating: 'The engine took too long to make the sandbox.',
  starting: 'The runner in the sandbox was not connected in time.',
  linked: '',
  lost: unsaved,
  salvaging: unsaved,
  ended: '',
}

export const warmStates = ['making', 'ready', 'retiring'] as const
export type WarmState = (typeof warmStates)[number]

/** The time in which one is made, in ms. */
export const warmMakingMs = 5 * 60_000

export interface SeenWarm {
  container: Seen['container']
  /** The container is made as one would be made now, and there are not too many. */
  isWanted: boolean
  forMs: number
}

export type WarmAct =
  | { do: 'wait' }
  | { do: 'create' }
  | { do: 'start' }
  | { do: 'enter'; state: WarmState }
  /** The container is nobody's to take from now on. `hasDied`: by itself, or by somebody else's hand. */
  | { do: 'retire'; hasDied: boolean }
  /** The container, its volume, its folder and its row go. */
  | { do: 'remove' }

/**
 * Decides what is to be done next with a container that is made ahead of the run that it will have:
 *
 *     making --> ready --> (taken: its row becomes that of a sandbox, which is `wanted`)
 *        |         |
 *        +---------+--> retiring --> (gone)
 *
 * `making`: the row is there, the container may be. `ready`: its container runs, and its runner waits to be told who it is. `retiring`: it
 * is taken away. Whoever takes it or retires it changes the row first, so only one of both happens.
 */
export function nextWarmAct(state: WarmState, { container, isWanted, forMs }: SeenWarm): WarmAct {
  if (state === 'retiring') return { do: 'remove' }
  if (!isWanted) return { do: 'retire', hasDied: false }
  if (state === 'ready') return container === 'running' ? wait : { do: 'retire', hasDied: true }
  if (container === 'exited' || forMs > warmMakingMs) return { do: 'retire', hasDied: true }
  if (container === null) return { do: 'create' }
  if (container === 'created') return { do: 'start' }
  return container === 'waiting' ? wait : { do: 'enter', state: 'ready' }
}

export interface SeenPool {
  /** The containers that have no run yet, oldest first. */
  warm: readonly { id: string; state: WarmState; madeOf: string; isKept: boolean }[]
  /** The things of which a container would be made now; null: none is to be made. */
  madeOf: string | null
  /** The number of containers that are to wait for runs. */
  wanted: number
  /** Containers that the engine may have at once. */
  most: number
  /** Sandboxes of runs. */
  sandboxes: number
}

/**
 * Decides which of the containers made ahead are not wanted, and how many are to be made. They give way to runs: together there are never
 * more than the engine may have. A container that is made of something else stays as long as some server keeps it.
 */
export function planPool({ warm, madeOf, wanted, most, sandboxes }: SeenPool): {
  unwanted: Set<string>
  missing: number
} {
  const unwanted = new Set<string>()
  const alive = warm.filter(({ state }) => state !== 'retiring')
  const own = alive.filter((each) => each.madeOf === madeOf)
  for (const { id, isKept, madeOf: its } of alive) if (its !== madeOf && !isKept) unwanted.add(id)
  for (const { id } of own.slice(wanted)) unwanted.add(id)
  // Runs come first.
  let surplus = sandboxes + alive.length - unwanted.size - most
  for (const { id } of alive.toReversed()) {
    if (surplus <= 0) break
    if (unwanted.has(id)) continue
    unwanted.add(id)
    surplus--
  }
  const kept = own.filter(({ id }) => !unwanted.has(id)).length
  const missing = madeOf === null ? 0 : Math.min(wanted - kept, most - sandboxes - warm.length)
  return { unwanted, missing: Math.max(0, missing) }
}
