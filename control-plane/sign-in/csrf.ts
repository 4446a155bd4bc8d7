import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * The token in forms of this server. Only this server and its pages in this browser know it: it is a hash of the
 * browser's cookie, which other sites can neither read nor set. Forms must also come from this site.
 */
export function csrfToken(cookie: string): string {
  return createHash('sha256').update(`svc form ${cookie}`).digest('base64url')
}

export function isCsrfToken(cookie: string, token: string): boolean {
  return isSame(csrfToken(cookie), token)
}

/** Compares in constant time. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest())
  return timingSafeEqual(a!, b!)
}
