import type { OutgoingHttpHeaders } from 'node:http'
import { OutboundError } from './outbound-error.ts'
import type { Sent as SentByExchange } from './exchange.ts'

// The request to the place that an answer names, as the Fetch standard has it, but with less trust.

interface Sent extends SentByExchange {
  body: Buffer | null
}

const redirects: readonly number[] = [301, 302, 303, 307, 308]
/** The headers that another origin may see. All else may be a credential, by whatever name. */
const harmless: readonly string[] = [
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'mcp-protocol-version',
  'user-agent',
]

/** Returns null when the answer sends nowhere. Fails with OutboundError when nobody follows it. */
export function placeNamedBy(status: number, location: string | undefined, from: URL): URL | null {
  if (!redirects.includes(status) || location === undefined) return null
  const to = URL.parse(location, from.href)
  if (to === null) throw new OutboundError('refused_address', `${from.host} redirects to something that is no address`)
  if (from.protocol === 'https:' && to.protocol !== 'https:')
    throw new OutboundError('not_https', `${from.host} redirects to an address without https://`)
  return to
}

export function sentNext(sent: Sent, status: number, { from, to }: { from: URL; to: URL }): Sent {
  const { method, headers, body } = asksAgain(sent, status) ? sent : asGet(sent)
  if (from.origin === to.origin) return { method, headers, body }
  if (body !== null)
    throw new OutboundError('refused_address', `${from.host} redirects to another server, which is not sent the body`)
  return { method, headers: only(headers, (name) => harmless.includes(name)), body }
}

function asksAgain({ method }: Sent, status: number): boolean {
  if (method === 'GET' || method === 'HEAD') return true
  return status === 307 || status === 308 || (method !== 'POST' && status !== 303)
}

const asGet = ({ headers }: Sent): Sent => ({
  method: 'GET',
  headers: only(headers, (name) => !name.startsWith('content-')),
  body: null,
})

const only = (headers: OutgoingHttpHeaders, isKept: (name: string) => boolean): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => isKept(name)))
