import type { IncomingMessage } from 'node:http'

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

/** The address under which a server that listens on this host is reached from its own machine. */
export function localUrlOf(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}
