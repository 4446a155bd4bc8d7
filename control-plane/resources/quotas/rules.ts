import type { DeviceRef, PersonUuid, SecretId } from '../../../shared/lib/ids.ts'
import type { ProviderReadiness } from '../../../shared/device/protocol.ts'
import { mostLimits, type UsedLimit } from '../../../shared/device/used-limits.ts'
import { providerOf } from '../../../shared/runs/harnesses.ts'
import type { RunRow } from '../runs/store.ts'

// Quotas: a provider's limit holds for an account, so while one run has reached it, others of that account would only
// reach it as well. They wait until it resets, and then begin one after another, oldest first, since all at once could
// use it up again at once.

/** Over this time after the reset all room of the account's devices is opened, step by step; the first place at once. */
export const thawMs = 60_000

/** No limit is believed to last longer: the longest windows are of a week. */
export const longestWindowMs = 8 * 24 * 3_600_000

/** An account may be limited again by the run that goes on. This often a run is followed by another, one after another. */
export const successorsInARow = 3

export interface AccountHolder {
  publicId: DeviceRef
  personUuid: PersonUuid
  /** Digests of the accounts, by harness, that the device reported. */
  accounts: Readonly<Partial<Record<string, string>>>
}

/**
 * A name for the account that a harness uses on a device. An account that is not known is the device's own. A known one is
 * the same on all devices of one person, and of that person only: what somebody else's device reports holds up nobody.
 * `keyId`: the agent brings a key of its own, which is one on all devices of one person: other people's agents may have the
 * same, and a device that lies about its limit must stop none of them.
 */
export function accountOf(device: AccountHolder, harness: string, keyId: SecretId | null = null): string {
  if (keyId !== null) return `${harness}/${device.personUuid}/${keyId}`
  const digest = device.accounts[harness]
  return digest === undefined ? `${harness}/${device.publicId}` : `${harness}/${device.personUuid}/${digest}`
}

/** The digests that a device reported, by harness. */
export function accountsOf(readiness: ProviderReadiness | Record<string, never>): Record<string, string> {
  const harnesses = 'harnesses' in readiness ? (readiness as ProviderReadiness).harnesses : {}
  return Object.fromEntries(
    Object.entries(harnesses).flatMap(([name, { account }]) => (account === undefined ? [] : [[name, account]])),
  )
}

/** The harness of an account, or of a provider. */
export const harnessOfAccount = (account: string): string => account.split('/', 1)[0]!

/** The limit of a provider that runs on a device meet now. */
export interface MetLimit {
  reason: 'rate_limit' | 'provider_overloaded'
  /** A harness, for some with the provider that its model names. */
  provider: string
  /** How the provider is used: by what the device is signed in with, or by an agent's own key. */
  access: 'sign_in' | 'key'
  /** null: nobody wrote it down. */
  since: number | null
  until: number
}

/** `windows` and `open`: those of the workspace that are not over. */
export function limitsOf(
  device: AccountHolder,
  {
    windows,
    open,
  }: {
    windows: readonly { account: string; closedAt: number | null; resetsAt: number }[]
    open: readonly Circuit[]
  },
): MetLimit[] {
  const closed = windows.flatMap(({ account, closedAt, resetsAt }): MetLimit[] => {
    const access = accessTo(device, account)
    return access === null ? [] : [{ reason: 'rate_limit', ...access, since: closedAt, until: resetsAt }]
  })
  const failing = open
    .filter((circuit) => circuit.device === device.publicId)
    .map(({ provider, openedAt, openUntil }): MetLimit => ({
      reason: 'provider_overloaded',
      provider,
      access: 'sign_in',
      since: openedAt,
      until: openUntil,
    }))
  return [...closed, ...failing]
}

/** How the device uses the account; null: the account is none of its own. */
function accessTo(device: AccountHolder, account: string): Pick<MetLimit, 'provider' | 'access'> | null {
  const provider = harnessOfAccount(account)
  if (accountOf(device, provider) === account) return { provider, access: 'sign_in' }
  return account.startsWith(`${provider}/${device.personUuid}/sec_`) ? { provider, access: 'key' } : null
}

/** A limit that an account of a device has, and how much of it is used. */
export interface LimitInUse extends Pick<MetLimit, 'provider' | 'access'>, UsedLimit {
  toldAt: number
}

/** What is known of an account's limits, of which the last was told at `toldAt`; that is also the time of a limit that has none. */
export interface AccountUse {
  used: readonly (UsedLimit & { toldAt?: number | undefined })[]
  toldAt: number
  trueUntil: number
}

/**
 * What is known after another run told of some limits: a run may be told of none but those that it works under, as of one model. Those
 * that it does not name stay as they were told before, until they begin anew. Of more than `mostLimits` the ones that were told last
 * are kept.
 */
export function knownUse(before: AccountUse | null, told: AccountUse): AccountUse {
  const known = new Map<string, UsedLimit & { toldAt: number }>()
  for (const { used, toldAt } of before === null ? [told] : [before, told])
    for (const limit of used) {
      const one = { ...limit, toldAt: limit.toldAt ?? toldAt }
      const name = `${limit.windowMinutes} ${limit.models ?? ''}`
      if ((known.get(name)?.toldAt ?? 0) <= one.toldAt) known.set(name, one)
    }
  const toldAt = Math.max(told.toldAt, before?.toldAt ?? 0)
  const used = [...known.values()]
    .filter(({ resetsAt }) => resetsAt > toldAt)
    .toSorted((a, b) => b.toldAt - a.toldAt)
    .slice(0, mostLimits)
    .toSorted((a, b) => a.windowMinutes - b.windowMinutes)
  return { used, toldAt, trueUntil: Math.max(...used.map(({ resetsAt }) => resetsAt)) }
}

/** `uses`: those of the workspace. A limit that was reset since it was told is left out: nobody knows how much is used of it. */
export function limitsInUse(
  device: AccountHolder,
  { uses, now }: { uses: readonly ({ account: string } & AccountUse)[]; now: number },
): LimitInUse[] {
  return uses.flatMap(({ account, used, toldAt }) => {
    const access = accessTo(device, account)
    return access === null
      ? []
      : used
          .filter(({ resetsAt }) => resetsAt > now)
          .map((limit) => ({ ...access, ...limit, toldAt: limit.toldAt ?? toldAt }))
  })
}

/** No limit is believed to reset later: a provider's longest window is of a month. */
const longestUseMs = 40 * 24 * 3_600_000

/** Of what a run told at its end, what may be true; null: nothing is. */
export function believedUse(told: readonly UsedLimit[], at: number): AccountUse | null {
  const used = told.filter(({ resetsAt }) => resetsAt > at && resetsAt <= at + longestUseMs)
  if (used.length === 0) return null
  return { used, toldAt: at, trueUntil: Math.max(...used.map(({ resetsAt }) => resetsAt)) }
}

export interface Quota {
  /** Runs that may still begin on the account now. */
  room: number
  /** The time at which there is room next, in ms UTC. */
  opensAt: number
}

/** `capacity`: runs that the account's devices take at once; `live`: those of the harness that they hold. */
export function quotaAt(now: number, window: { resetsAt: number; capacity: number; live: number }): Quota {
  const { resetsAt, capacity, live } = window
  if (now < resetsAt) return { room: 0, opensAt: resetsAt }
  const stepMs = thawMs / Math.max(1, capacity)
  const open = 1 + Math.floor((now - resetsAt) / stepMs)
  return { room: Math.max(0, open - live), opensAt: resetsAt + live * stepMs }
}

// Circuit breakers, one for each provider and device: after several failures of the provider in a row its runs there wait
// for a while. Then one run is tried; while it does not fail, the others follow a minute later, and if it does, all wait
// again, for twice as long.

const failuresToOpen = 3
/** Failures that lie further apart say nothing of each other. */
export const streakMs = 15 * 60_000
const firstOpenMs = 30_000
const longestOpenMs = 10 * 60_000
/** Runs are tried one at a time for this long after the breaker was open. */
export const trialMs = 60_000

export interface Circuit {
  device: DeviceRef
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
  failure: { device: DeviceRef; provider: string; at: number },
  { before, ended }: { before: Circuit | null; ended: readonly Ended[] },
): Circuit | null {
  const { device, provider, at } = failure
  // Runs that were at work when the breaker was opened fail as well.
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

const isOf = (run: Ended, { device, provider }: { device: DeviceRef; provider: string }) =>
  run.device === device && providerOf(run.harness, run.modelId) === provider

const successesOf = (ended: readonly Ended[], of: { device: DeviceRef; provider: string }): number[] =>
  ended.filter((run) => isOf(run, of) && run.status === 'succeeded').map((run) => run.endedAt ?? 0)

const openMsOf = (times: number) => Math.min(firstOpenMs * 2 ** (times - 1), longestOpenMs)

/** `live`: runs of the harness that the device holds. */
export function roomAt(now: number, { openUntil, live }: { openUntil: number; live: number }): Quota {
  return now < openUntil
    ? { room: 0, opensAt: openUntil }
    : { room: Math.max(0, 1 - live), opensAt: openUntil + trialMs }
}

export const circuitKey = ({ device, provider }: { device: DeviceRef; provider: string }): string =>
  `${device}/${provider}`
