import type { WebhookRow } from './store.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** The time that is waited after each attempt but the last, about a day in all. */
const againMs = [
  10_000,
  minuteMs,
  5 * minuteMs,
  15 * minuteMs,
  hourMs,
  2 * hourMs,
  4 * hourMs,
  8 * hourMs,
  8 * hourMs,
] as const

/** How far the waits of deliveries that failed together lie apart. */
const jitter = 0.2

/** The time until the next attempt, after so many; null: there is none. `random` is within [0, 1). */
export function waitAfter(attempts: number, random: number): number | null {
  const ms = againMs[attempts - 1]
  return ms === undefined ? null : Math.round(ms * (1 - jitter + 2 * jitter * random))
}

/** A webhook of which no delivery succeeded for so long is disabled. */
export const failingDaysMs = 3 * 24 * hourMs

/** How long the secret before the present one signs as well. */
export const oldSecretMs = 24 * hourMs

export const wantsEvent = ({ events }: Pick<WebhookRow, 'events'>, type: string): boolean =>
  events.includes('*') || events.includes(type)

/** What an attempt came to: the status of the answer, or why there was none. */
export type AttemptEnd = { status: number } | { trouble: string }

export interface AttemptOutcome {
  isSuccess: boolean
  /** null: the address took it. */
  error: string | null
  /** null: there is no further attempt. */
  nextMs: number | null
  disables: 'gone' | 'failing' | null
}

/** Decides what follows from an attempt. `attempts` counts it; `failingSince` is as it was before it. */
export function outcomeOf(
  end: AttemptEnd,
  facts: { attempts: number; failingSince: number | null; now: number; random: number },
): AttemptOutcome {
  if ('status' in end && end.status >= 200 && end.status < 300)
    return { isSuccess: true, error: null, nextMs: null, disables: null }
  const error = 'trouble' in end ? end.trouble : sentenceOf(end.status)
  if ('status' in end && end.status === 410) return { isSuccess: false, error, nextMs: null, disables: 'gone' }
  const nextMs = waitAfter(facts.attempts, facts.random)
  const { failingSince, now } = facts
  const isLost = nextMs === null && failingSince !== null && now - failingSince >= failingDaysMs
  return { isSuccess: false, error, nextMs, disables: isLost ? 'failing' : null }
}

const sentenceOf = (status: number): string =>
  status >= 300 && status < 400
    ? `The answer has the status ${status}: redirects are not followed.`
    : `The answer has the status ${status}.`
