import type { ProviderReadiness } from '../../../shared/device/protocol.ts'

/**
 * Quotas: a provider's limit holds for an account, so while one run has reached it, others of that account would only
 * reach it as well. They wait until it resets, and then begin one after another, oldest first, since all at once could
 * use it up again at once.
 */

/** Over this time after the reset all room of the account's devices is opened, step by step; the first place at once. */
export const thawMs = 60_000

/** No limit is believed to last longer: the longest windows are of a week. */
export const longestWindowMs = 8 * 24 * 3_600_000

/** An account may be limited again by the run that goes on. This often a run is followed by another, one after another. */
export const successorsInARow = 3

export interface AccountHolder {
  publicId: string
  userId: string
  /** Digests of the accounts, by harness, that the device reported. */
  accounts: Readonly<Partial<Record<string, string>>>
}

/**
 * A name for the account that a harness uses on a device. An account that is not known is the device's own. A known one is
 * the same on all devices of one person, and of that person only: what somebody else's device reports holds up nobody.
 * `keyId`: the agent brings a key of its own, which is one on all devices of one person: other people's agents may have the
 * same, and a device that lies about its limit must stop none of them.
 */
export function accountOf(device: AccountHolder, harness: string, keyId: string | null = null): string {
  if (keyId !== null) return `${harness}/${device.userId}/${keyId}`
  const digest = device.accounts[harness]
  return digest === undefined ? `${harness}/${device.publicId}` : `${harness}/${device.userId}/${digest}`
}

/** The digests that a device reported, by harness. */
export function accountsOf(readiness: ProviderReadiness | Record<string, never>): Record<string, string> {
  const harnesses = 'harnesses' in readiness ? (readiness as ProviderReadiness).harnesses : {}
  return Object.fromEntries(
    Object.entries(harnesses).flatMap(([name, { account }]) => (account === undefined ? [] : [[name, account]])),
  )
}

/** The harness of an account, or of a provider. */
export const harnessOf = (account: string): string => account.split('/', 1)[0]!

export interface Quota {
  /** Runs that may still begin on the account now. */
  room: number
  /** When there is room next. */
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
