import type { IncomingMessage } from 'node:http'

/**
 * Returns the name of the cookie. Over https it has the prefix `__Host-`, with which browsers take it from this very host only (RFC
 * 6265bis, section 4.1.3.2): no other host of the domain can plant one.
 */
export const cookieName = (name: string, isHttps: boolean): string => (isHttps ? `__Host-${name}` : name)

export function cookieOf(request: IncomingMessage, name: string): string | null {
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim() || null
  }
  return null
}
