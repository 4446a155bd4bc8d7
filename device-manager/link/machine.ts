import { closeCodes, closeNameOf, linkLimits, type CloseName } from '../../shared/device/limits.ts'
import { backoffCeilingMs, backoffMs } from '../../shared/lib/backoff.ts'

/**
 * The daemon's link as a pure machine: connect, say hello, be welcomed, fall back, wait, connect again.
 *
 *     idle --start--> connecting --opened--> greeting --welcomed--> open
 *                        ^  |                   |                    |
 *                        |  +---- closed -------+------- closed -----+--> waiting --due--> connecting
 *                        +--------------------------------------------------+
 *     a fatal close (removed, retired, a second daemon with this identity) --> stopped: the daemon exits with 78
 *
 * A server that does not know the token may have been restored from a backup. While runs are live they go on, and the device
 * asks again until its owner connects it anew, or the runs are over.
 *
 * The delay has full jitter and doubles; it starts over only when a link stayed open for a minute, so that a server that
 * drops everybody does not get everybody back in the same second. How long it may become grows in steps: a wire that was
 * cut for seconds or a minute or two must be in use again soon after it is healed, and one
 * that is down for long is not asked all the time.
 *
 * A device that holds runs has something to tell, for which people wait: its delay stays as short as at first, however long
 * the server is away, but no shorter than the server asked its devices to spread.
 *
 * A server that ends, or refuses, does so to all its devices at once. It told them beforehand over how long to spread:
 * where that is longer than the delay, the first try comes at any time within it, and each further one that much later, so
 * that the tries of all stay spread evenly however long the server is away. A wire that went silent is this
 * device's own matter and is tried without the spread.
 */
export type LinkState =
  | { phase: 'idle'; attempt: number }
  | { phase: 'connecting' | 'greeting'; attempt: number }
  | { phase: 'open'; attempt: number; openedAt: number }
  | { phase: 'waiting'; attempt: number; dueAt: number }
  | { phase: 'stopped'; attempt: number; reason: CloseName | 'asked' }

export type LinkEvent =
  | { type: 'start' }
  | { type: 'opened' }
  | { type: 'welcomed'; now: number }
  /**
   * `retryAfterMs`: what the server asked for. `spreadMs`: over how long the devices of this server spread their return; 0
   * where nothing was heard from the other end. `runsWithinMs`: the longest delay of a device that holds runs; null: it holds none.
   * `hasLiveRuns`: a harness is at work.
   */
  | {
      type: 'closed'
      code: number
      now: number
      random: number
      retryAfterMs: number | null
      spreadMs: number
      runsWithinMs: number | null
      hasLiveRuns: boolean
    }
  | { type: 'due' }
  | { type: 'stop' }

export type LinkEffect =
  | { type: 'connect' }
  | { type: 'hello' }
  | { type: 'wait'; ms: number }
  | { type: 'fatal' | 'refused'; reason: CloseName; text: string }
  | { type: 'disconnect' }

export interface LinkDelays {
  minMs: number
  maxMs: number
}

/** Tries, each with its longest delay as a part of `maxMs`: of a minute 4 s, 12 s, then all of it. */
const ceilings = [
  { tries: 12, part: 1 / 15 },
  { tries: 40, part: 1 / 5 },
] as const

export const startState: LinkState = { phase: 'idle', attempt: 0 }

export function linkStep(state: LinkState, event: LinkEvent, delays: LinkDelays): [LinkState, LinkEffect[]] {
  if (state.phase === 'stopped') return [state, []]
  switch (event.type) {
    case 'start':
    case 'due':
      if (state.phase !== 'idle' && state.phase !== 'waiting') return [state, []]
      return [{ phase: 'connecting', attempt: state.attempt }, [{ type: 'connect' }]]
    case 'opened':
      if (state.phase !== 'connecting') return [state, []]
      return [{ phase: 'greeting', attempt: state.attempt }, [{ type: 'hello' }]]
    case 'welcomed':
      if (state.phase !== 'greeting') return [state, []]
      return [{ phase: 'open', attempt: state.attempt, openedAt: event.now }, []]
    case 'closed':
      return closed(state, event, delays)
    case 'stop':
      return [{ phase: 'stopped', attempt: state.attempt, reason: 'asked' }, [{ type: 'disconnect' }]]
  }
}

function closed(
  state: Exclude<LinkState, { phase: 'stopped' }>,
  event: LinkEvent & { type: 'closed' },
  delays: LinkDelays,
): [LinkState, LinkEffect[]] {
  if (state.phase === 'idle' || state.phase === 'waiting') return [state, []]
  const name = closeNameOf(event.code)
  if (name && closeCodes[name].fatal) {
    const { text } = closeCodes[name]
    if (name !== 'auth_failed' || !event.hasLiveRuns)
      return [{ phase: 'stopped', attempt: state.attempt, reason: name }, [{ type: 'fatal', reason: name, text }]]
    const ms = Math.round(delays.maxMs * (0.5 + event.random / 2))
    const waiting: LinkState = { phase: 'waiting', attempt: state.attempt, dueAt: event.now + ms }
    return [
      waiting,
      [
        { type: 'refused', reason: name, text },
        { type: 'wait', ms },
      ],
    ]
  }
  const wasStable = state.phase === 'open' && event.now - state.openedAt >= linkLimits.stableMs
  const attempt = wasStable ? 0 : state.attempt
  const ms = delayOf(event, { attempt, wasOpen: state.phase === 'open' }, delays)
  const waiting: LinkState = { phase: 'waiting', attempt: attempt + 1, dueAt: event.now + ms }
  return [waiting, [{ type: 'wait', ms }]]
}

function delayOf(
  { random, retryAfterMs, spreadMs, runsWithinMs }: LinkEvent & { type: 'closed' },
  { attempt, wasOpen }: { attempt: number; wasOpen: boolean },
  delays: LinkDelays,
): number {
  if (retryAfterMs !== null) return Math.round(retryAfterMs + random * spreadMs)
  const limits = withCeiling(attempt, delays, runsWithinMs)
  if (spreadMs <= backoffCeilingMs(attempt, limits)) return backoffMs(attempt, { ...limits, random })
  return Math.round(spreadMs * (wasOpen ? random : 0.9 + 0.2 * random))
}

/** The longest delay of a device that holds runs. `spreadMs`: what the server said last, whatever became of the link. */
export const delayWithRunsMs = ({ maxMs }: Pick<LinkDelays, 'maxMs'>, spreadMs: number): number =>
  Math.max(maxMs * ceilings[0].part, spreadMs)

function withCeiling(attempt: number, { minMs, maxMs }: LinkDelays, mostMs: number | null): LinkDelays {
  const part = ceilings.find(({ tries }) => attempt < tries)?.part ?? 1
  return { minMs, maxMs: Math.max(minMs, Math.min(maxMs * part, mostMs ?? Infinity)) }
}
