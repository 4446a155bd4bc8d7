/**
 * The decisions of the device authorization flow (RFC 8628). A grant goes
 *
 *       pending -> approved -> redeemed
 *               -> denied
 *
 * and expires ten minutes after it was made, whatever its state. Several polls and decisions may come at once: the
 * store changes the state by compare-and-set, so one of them wins.
 */
export const grantStates = ['pending', 'approved', 'denied', 'redeemed'] as const
export type GrantState = (typeof grantStates)[number]

export const deviceFlowLimits = {
  lifeMs: 10 * 60_000,
  intervalMs: 5_000,
  /** Added to the interval of a client that polls too fast (RFC 8628, section 3.5). */
  slowDownMs: 5_000,
  /** A poll may be early by this much, since delays in the network vary. */
  toleranceMs: 500,
  /** Codes a person may enter within a window, right or wrong: at most one in 2.5 billion guesses is right. */
  guesses: 10,
  guessWindowMs: 10 * 60_000,
} as const

export interface PolledGrant {
  status: GrantState
  expiresAt: number
  intervalMs: number
  lastPolledAt: number | null
}

export type PollOutcome =
  | 'redeem'
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'invalid_grant'

/** A redeemed code counts as unknown. */
export function pollOutcome(grant: PolledGrant, now: number): PollOutcome {
  if (grant.status === 'redeemed') return 'invalid_grant'
  if (now >= grant.expiresAt) return 'expired_token'
  if (grant.status === 'denied') return 'access_denied'
  const { lastPolledAt, intervalMs } = grant
  if (lastPolledAt !== null && now - lastPolledAt < intervalMs - deviceFlowLimits.toleranceMs) return 'slow_down'
  return grant.status === 'approved' ? 'redeem' : 'authorization_pending'
}

export function mayDecide(grant: Pick<PolledGrant, 'status' | 'expiresAt'>, now: number): boolean {
  return grant.status === 'pending' && now < grant.expiresAt
}

/** The letters are consonants alone, so that codes form no words and no letter looks like a digit (RFC 8628, section 6.1). */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const codeLength = 8

/** Random bytes for one code; more than enough, since only one in sixteen is ignored. */
export const userCodeBytes = 64

/** Eight letters, 34 bits. Bytes of 240 and above are ignored, so that all letters are equally likely. */
export function userCodeFrom(bytes: Uint8Array): string {
  const usable = [...bytes].filter((byte) => byte < 240).slice(0, codeLength)
  if (usable.length < codeLength) throw new Error('too few random bytes for a code')
  return usable.map((byte) => letters[byte % letters.length]).join('')
}

/** Shows `BCDFGHJK` as `BCDF-GHJK`. */
export function showUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`
}

/** Reads a typed code in its only spelling; null when it cannot be one. */
export function readUserCode(typed: string): string | null {
  const code = typed
    .toUpperCase()
    .split('')
    .filter((letter) => letters.includes(letter))
    .join('')
  return code.length === codeLength && typed.length <= 20 ? code : null
}
