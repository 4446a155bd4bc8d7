import type { RunId } from '../../shared/lib/ids.ts'
import { anyId } from '../../shared/lib/id-schema.ts'
import { z } from 'zod'
import { exitReasonNames } from '../../shared/runs/exit-reasons.ts'
import { mostSharedWith } from '../../shared/device/change-set.ts'
import { runSpec, type RunSpec } from '../../shared/runs/spec.ts'
import type { ExpectedRun } from '../spool/rows.ts'

/**
 * The life of one run on this device, as a pure function: `step(state, event)` answers the next state and the effects it
 * calls for. State and effects are journalled before an effect runs, and every effect may run again after a crash.
 *
 *     (nothing) --offered--> accepted --start--> starting --host started--> live --host ended--> ended --closed--> (nothing)
 *                               |                    |                        |                    ^
 *                               |                    +------ host lost: the tree is killed, -------+
 *                               |                            the ending is `crashed`, or what was asked for before
 *                               +-- withdrawn, given up --> (nothing)
 *                               +-- host lost --> another host prepares it: nothing was launched (nor was anything in
 *                                   `starting` when the start came before a host was taken, or when the host left in
 *                                   order without an ending: it had not read its start)
 *
 * May interleave: a start that comes twice (the host ignores the second), a cancel before the start (the host ends
 * the run without launching anything), `given up` in any phase (the run is ended here and what it left is sent as
 * evidence), the host's end while a cancel is under way (the host's ending counts: there is one ending), `closed` before the
 * host's word that it ended (its ending is in the spool before it says so, and may be sent and answered by then).
 *
 * A harness is launched at most once: only `starting` leads to a launch, and a run found in `starting` or `live` whose
 * host died is never given to another one.
 */
const stop = z.object({ exitReason: z.enum(exitReasonNames), message: z.string().nullable() })
export type Stop = z.infer<typeof stop>

/** The state of a run as the journal keeps it; earlier releases leave out what has a default. */
export const runState = z.object({
  runId: anyId<RunId>(),
  fence: z.number().int(),
  phase: z.enum(['accepted', 'starting', 'live', 'ended']),
  spec: runSpec,
  hostId: z.string().nullable(),
  /** The number of hosts that were given the run without launching it. */
  hostsLost: z.number().int(),
  cancel: stop.nullable(),
  /** The control plane gave the run up: its lease is over. */
  givenUp: z.boolean(),
  /** The control plane has the ending and wants nothing more of the run. */
  closed: z.boolean().default(false),
  acceptedAt: z.number(),
  /** The run's host lived and did not answer any more, so the daemon ended it with what it held. */
  hostHung: z.boolean().default(false),
  /** The rows and bytes that the spool held of the run when it ended, by which a loss is counted; null: not known. */
  written: z.object({ lastSeq: z.number(), ackedSeq: z.number(), bytes: z.number() }).nullable().default(null),
  /** Names of the secrets the harness was given; their values are in the memory of the daemon that was told and of the host. */
  secretNames: z.array(z.string()).readonly().default([]),
  /** The runs that work, or worked, in its folder at the same time. */
  sharedWith: z.array(anyId<RunId>()).readonly().default([]),
})
export type RunState = z.infer<typeof runState>
export type RunPhase = RunState['phase']

export type RunEvent =
  /** `hostId`: the run host that stood by and was taken for this run. */
  | { type: 'offered'; spec: RunSpec; fence: number; at: number; hostId?: string | null }
  | { type: 'host_taken'; hostId: string }
  | { type: 'start_received'; secretNames?: readonly string[] }
  | { type: 'host_started' }
  /** Another run works in its folder. */
  | { type: 'folder_shared'; other: RunId }
  | { type: 'host_ended'; written?: RunState['written'] }
  /** `isHung`: it lived and did not answer, and was ended for that. */
  | { type: 'host_lost'; isHung?: boolean }
  /** The host left in order and left no ending behind: it launched nothing. */
  | { type: 'host_left' }
  /** The host that was taken says that it was never given the run. */
  | { type: 'host_returned' }
  /** A daemon that was started again finds the run; no host was taken before. */
  | { type: 'found_without_host' }
  | { type: 'prepare_failed'; stop: Stop }
  | { type: 'cancel_received'; stop: Stop }
  | { type: 'withdrawn' }
  | { type: 'given_up' }
  | { type: 'closed' }

export type RunEffect =
  | { type: 'accept' }
  | { type: 'prepare' }
  | { type: 'start_host' }
  | { type: 'report_started' }
  /** Tells the host of all runs that share the folder. */
  | { type: 'tell_shared' }
  | { type: 'stop_host'; stop: Stop }
  | { type: 'discard_host' }
  /** Writes the ending itself: no host has the run and nothing was launched. */
  | { type: 'end_without_host'; stop: Stop }
  /** Ends what the dead host left, then writes the ending: as it was told to end, else `crashed`. */
  | { type: 'end_crashed' }
  | { type: 'forward' }
  | { type: 'forget' }

export type Step = [RunState | null, RunEffect[]]

const lostLease: Stop = { exitReason: 'runner_lost', message: 'The control plane gave the run up.' }
const maxHostsLost = 3

/** Returns the ending that the run was told to have, whoever carries it out; null: it was told nothing. */
export function stopWanted(state: Pick<RunState, 'givenUp' | 'cancel'>): Stop | null {
  return state.givenUp ? lostLease : state.cancel
}

export function step(state: RunState | null, event: RunEvent): Step {
  if (!state) return event.type === 'offered' ? offered(event) : [null, []]
  switch (state.phase) {
    case 'accepted':
      return inAccepted(state, event)
    case 'starting':
    case 'live':
      return inHands(state, event)
    case 'ended':
      return inEnded(state, event)
  }
}

function offered(event: RunEvent & { type: 'offered' }): Step {
  const state: RunState = {
    runId: event.spec.runId,
    fence: event.fence,
    phase: 'accepted',
    spec: event.spec,
    hostId: event.hostId ?? null,
    hostsLost: 0,
    cancel: null,
    givenUp: false,
    closed: false,
    acceptedAt: event.at,
    hostHung: false,
    written: null,
    secretNames: [],
    sharedWith: [],
  }
  return [state, [{ type: 'accept' }, { type: 'prepare' }]]
}

function inAccepted(state: RunState, event: RunEvent): Step {
  switch (event.type) {
    case 'offered':
      // The answer was lost on its way.
      return [state, [{ type: 'accept' }]]
    case 'host_taken':
      return [{ ...state, hostId: event.hostId }, []]
    case 'start_received':
      if (state.cancel) return [state, [{ type: 'stop_host', stop: state.cancel }]]
      return [{ ...state, phase: 'starting', secretNames: event.secretNames ?? [] }, [{ type: 'start_host' }]]
    case 'cancel_received':
      return [{ ...state, cancel: event.stop }, [{ type: 'stop_host', stop: event.stop }]]
    case 'prepare_failed':
      return [{ ...state, phase: 'ended' }, [{ type: 'end_without_host', stop: event.stop }]]
    case 'host_ended':
      return [{ ...state, phase: 'ended', written: event.written ?? null }, [{ type: 'forward' }]]
    case 'host_lost':
    case 'host_left':
      return prepareAgain(state, state.hostsLost + 1)
    case 'found_without_host':
      return prepareAgain(state, state.hostsLost)
    case 'host_returned':
      return [{ ...state, hostId: null }, []]
    case 'withdrawn':
    case 'given_up':
    case 'closed':
      return forgotten
    case 'folder_shared':
      return folderShared(state, event.other)
    case 'host_started':
      // The daemon was restarted with a journal that is a step behind, and finds the run at work.
      return started(state)
  }
}

const forgotten: Step = [null, [{ type: 'discard_host' }, { type: 'forget' }]]

const tellShared: RunEffect = { type: 'tell_shared' }

/** A host that was not there yet when the folder was found to be shared hears of it now. */
function started(state: RunState): Step {
  const effects: RunEffect[] = [{ type: 'report_started' }]
  return [{ ...state, phase: 'live' }, state.sharedWith.length > 0 ? [...effects, tellShared] : effects]
}

function folderShared(state: RunState, other: RunId): Step {
  const { sharedWith } = state
  if (sharedWith.includes(other) || sharedWith.length >= mostSharedWith) return [state, []]
  return [{ ...state, sharedWith: [...sharedWith, other] }, [tellShared]]
}

/** Gives the run to another host, since nothing was launched, unless it is not wanted any more or hosts do not stay. */
function prepareAgain(state: RunState, hostsLost: number): Step {
  const lost = { ...state, hostId: null, hostsLost }
  if (state.closed) return forgotten
  const stop = stopWanted(state)
  if (stop) return [{ ...lost, phase: 'ended' }, [{ type: 'end_without_host', stop }]]
  if (hostsLost < maxHostsLost) return [lost, [{ type: 'prepare' }, { type: 'start_host' }]]
  const failed: Stop = { exitReason: 'dispatch_error', message: 'The run host could not be kept running.' }
  return [{ ...lost, phase: 'ended' }, [{ type: 'end_without_host', stop: failed }]]
}

function inHands(state: RunState, event: RunEvent): Step {
  switch (event.type) {
    case 'offered':
      return [state, [{ type: 'accept' }]]
    case 'host_taken':
      return [{ ...state, hostId: event.hostId }, []]
    case 'start_received':
      // The start came again after a cancel: the host must not launch what is not wanted any more.
      if (state.cancel) return [state, [{ type: 'stop_host', stop: state.cancel }]]
      return [state, state.phase === 'starting' ? [{ type: 'start_host' }] : []]
    case 'folder_shared':
      return folderShared(state, event.other)
    case 'host_started':
      return started(state)
    case 'host_ended':
      if (state.closed) return [null, [{ type: 'forget' }]]
      return [{ ...state, phase: 'ended', written: event.written ?? null }, [{ type: 'forward' }]]
    case 'host_lost':
      // The start came before a host was there: none can have launched anything.
      if (state.hostId === null) return prepareAgain(state, state.hostsLost + 1)
      return [event.isHung ? { ...state, hostHung: true } : state, [{ type: 'end_crashed' }]]
    case 'host_left':
      return state.phase === 'starting' ? prepareAgain(state, state.hostsLost + 1) : [state, [{ type: 'end_crashed' }]]
    case 'found_without_host':
      return state.hostId === null ? prepareAgain(state, state.hostsLost) : [state, [{ type: 'end_crashed' }]]
    case 'host_returned':
      return [state.phase === 'starting' ? { ...state, hostId: null } : state, []]
    case 'cancel_received':
      if (state.givenUp) return [state, []]
      return [{ ...state, cancel: event.stop }, [{ type: 'stop_host', stop: event.stop }]]
    case 'withdrawn':
    case 'given_up':
      return [{ ...state, givenUp: true }, [{ type: 'stop_host', stop: lostLease }]]
    case 'closed':
      return [{ ...state, givenUp: true, closed: true }, [{ type: 'stop_host', stop: lostLease }]]
    case 'prepare_failed':
      if (state.closed) return forgotten
      // The preparation failed before a host was taken, so nobody else would write the ending.
      return [{ ...state, phase: 'ended' }, [{ type: 'end_without_host', stop: event.stop }]]
  }
}

function inEnded(state: RunState, event: RunEvent): Step {
  switch (event.type) {
    case 'closed':
      return [null, [{ type: 'forget' }]]
    case 'withdrawn':
    case 'given_up':
      return [{ ...state, givenUp: true }, [{ type: 'forward' }]]
    default:
      return [state, []]
  }
}

/** Returns what hello says of the run. A run whose start may not have reached its host is told as `accepted`: start comes again. */
export function helloState(state: RunState): 'accepted' | 'live' | 'ended' {
  return state.phase === 'starting' ? 'accepted' : state.phase
}

/** Returns what the spool must hold of these runs. For a run that has not ended only its host knows how much that is. */
export function expectedRows(states: readonly RunState[]): ExpectedRun[] {
  return states.flatMap(({ runId, fence, phase, written }) => {
    if (phase === 'ended' && written !== null) {
      const { lastSeq, ackedSeq, bytes } = written
      return [{ runId, fence, ackedSeq, lastSeq: Math.max(ackedSeq, lastSeq - 1), bytes, isExact: true }]
    }
    const none = { ackedSeq: 0, lastSeq: 0, bytes: 0, isExact: false }
    return phase === 'ended' || phase === 'live' ? [{ runId, fence, ...none }] : []
  })
}

/** Runs that take up one of the device's places: an ended run only waits to be sent. */
export function holdsPlace(state: RunState): boolean {
  return state.phase !== 'ended'
}
