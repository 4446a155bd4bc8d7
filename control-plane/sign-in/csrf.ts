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

export interface Sender {
  origin: string | undefined
  secFetchSite: string | undefined
  /** Hosts by which this server is reached. */
  hosts: readonly string[]
}

/** Whether a form was sent by a page of this server, as far as the browser tells. Not a browser: it tells nothing. */
export function isOwnSender({ origin, secFetchSite, hosts }: Sender): boolean {
  if (origin === undefined) return secFetchSite === undefined || ['same-origin', 'none'].includes(secFetchSite)
  return URL.canParse(origin) && hosts.includes(new URL(origin).host)
}
