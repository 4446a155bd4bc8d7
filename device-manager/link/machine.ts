import { closeCodes, closeNameOf, linkLimits, type CloseName } from '../../shared/device/limits.ts'
import { backoffMs } from '../../shared/lib/backoff.ts'

/**
 * The daemon's link as a pure machine: connect, say hello, be welcomed, fall back, wait, connect again.
 *
 *     idle --start--> connecting --opened--> greeting --welcomed--> open
 *                        ^  |                   |                    |
 *                        |  +---- closed -------+------- closed -----+--> waiting --due--> connecting
 *                        +--------------------------------------------------+
 *     a fatal close (removed, retired, a second daemon with this identity) --> stopped: the daemon exits with 78
 *
 * The delay has full jitter and doubles; it starts over only when a link stayed open for a minute, so that a server that
 * drops everybody does not get everybody back in the same second.
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
  /** `retryAfterMs`: what the server asked for. */
  | { type: 'closed'; code: number; now: number; random: number; retryAfterMs: number | null }
  | { type: 'due' }
  | { type: 'stop' }

export type LinkEffect =
  | { type: 'connect' }
  | { type: 'hello' }
  | { type: 'wait'; ms: number }
  | { type: 'fatal'; reason: CloseName; text: string }
  | { type: 'disconnect' }

export interface LinkDelays {
  minMs: number
  maxMs: number
}

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
    const fatal: LinkEffect = { type: 'fatal', reason: name, text: closeCodes[name].text }
    return [{ phase: 'stopped', attempt: state.attempt, reason: name }, [fatal]]
  }
  const wasStable = state.phase === 'open' && event.now - state.openedAt >= linkLimits.stableMs
  const attempt = wasStable ? 0 : state.attempt
  const ms = event.retryAfterMs ?? backoffMs(attempt, { ...delays, random: event.random })
  const waiting: LinkState = { phase: 'waiting', attempt: attempt + 1, dueAt: event.now + ms }
  return [waiting, [{ type: 'wait', ms }]]
}
