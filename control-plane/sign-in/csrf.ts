import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * A form of ours carries a token that only this server and the pages it showed to this browser know: a hash of the
 * browser's cookie, which other sites can neither read nor set. And it must come from this site.
 */
export function csrfToken(cookie: string): string {
  return createHash('sha256').update(`svc form ${cookie}`).digest('base64url')
}

export function isCsrfToken(cookie: string, token: string): boolean {
  return isSame(csrfToken(cookie), token)
}

/** Takes as long wherever the two differ. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest())
  return timingSafeEqual(a!, b!)
}
