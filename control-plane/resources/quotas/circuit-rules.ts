import { providerOf } from '../../../shared/runs/harnesses.ts'
import type { RunRow } from '../runs/store.ts'
import type { Quota } from './rules.ts'

/**
 * Circuit breakers, one for each provider and device: after several failures of the provider in a row its runs there wait
 * for a while. Then one run is tried; while it does not fail, the others follow a minute later, and if it does, all wait
 * again, for twice as long.
 */

export const failuresToOpen = 3
/** Failures that lie further apart say nothing of each other. */
export const streakMs = 15 * 60_000
const firstOpenMs = 30_000
const longestOpenMs = 10 * 60_000
/** One run at a time, for this long after the breaker was open. */
export const trialMs = 60_000

export interface Circuit {
  device: string
  provider: string
  /** The number of times that it was opened without a success in between. */
  times: number
  openedAt: number
  openUntil: number
}

/** A run of the provider on the device that ended, as far as it tells of the provider. */
export type Ended = Pick<RunRow, 'device' | 'harness' | 'modelId' | 'status' | 'providerFailed' | 'endedAt'>

/**
 * The breaker after another failure at `at`; null: it stays as it is. `ended`: what ended there before, in any order; runs
 * of other devices and providers do not count.
 */
export function circuitAfter(
  failure: { device: string; provider: string; at: number },
  { before, ended }: { before: Circuit | null; ended: readonly Ended[] },
): Circuit | null {
  const { device, provider, at } = failure
  // Others that were at work when it was opened fail as well.
  if (before !== null && at < before.openUntil) return null
  const since = Math.max(...successesOf(ended, failure), 0)
  const open = (times: number) => ({ device, provider, times, openedAt: at, openUntil: at + openMsOf(times) })
  if (before !== null && before.openedAt > since && at - before.openUntil < streakMs) return open(before.times + 1)
  const failures = ended.filter(
    (run) => isOf(run, failure) && run.providerFailed === true && isWithin(run.endedAt, { since, at }),
  )
  return failures.length + 1 < failuresToOpen ? null : open(1)
}

const isWithin = (endedAt: number | null, { since, at }: { since: number; at: number }) =>
  endedAt !== null && endedAt > since && at - endedAt < streakMs

const isOf = (run: Ended, { device, provider }: { device: string; provider: string }) =>
  run.device === device && providerOf(run.harness, run.modelId) === provider

const successesOf = (ended: readonly Ended[], of: { device: string; provider: string }): number[] =>
  ended.filter((run) => isOf(run, of) && run.status === 'succeeded').map((run) => run.endedAt ?? 0)

const openMsOf = (times: number) => Math.min(firstOpenMs * 2 ** (times - 1), longestOpenMs)

/** `live`: runs of the harness that the device holds. */
export function roomAt(now: number, { openUntil, live }: { openUntil: number; live: number }): Quota {
  return now < openUntil
    ? { room: 0, opensAt: openUntil }
    : { room: Math.max(0, 1 - live), opensAt: openUntil + trialMs }
}

export const circuitKey = ({ device, provider }: { device: string; provider: string }): string =>
  `${device}/${provider}`
