import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * The address of a client. Behind proxies each adds the address that it saw to the right of X-Forwarded-For; what stands
 * further left than the operator has proxies is what the client chose to send.
 */
export function clientAddress(request: IncomingMessage, trustedProxies: number): string {
  const own = request.socket.remoteAddress ?? ''
  const header = request.headers['x-forwarded-for']
  if (trustedProxies === 0 || header === undefined) return own
  const seen = String(header)
    .split(',')
    .map((address) => address.trim())
  return seen.slice(-trustedProxies)[0] || own
}

/** A header of the request; one that came several times is joined. */
export function headerOf({ headers }: Pick<IncomingMessage, 'headers'>, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

export const bearerOf = (header: string): string | null => /^Bearer +([!-~]{1,4096})$/i.exec(header)?.[1] ?? null

/** Sets headers given as names and values in turn. */
export function setHeaders(res: ServerResponse, headers: readonly string[]): void {
  for (let index = 0; index < headers.length; index += 2) res.setHeader(headers[index]!, headers[index + 1]!)
}
