import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'

/**
 * What passes the door, by name. All else stays on its side: what belongs to one connection (RFC 9110, section 7.6.1), cookies, and
 * whatever the harness sends as a credential of its own. `mcp-` covers both versions of the protocol, with its parameters of tools.
 */
const passedOn = new Set(['accept', 'accept-language', 'content-type', 'last-event-id', 'user-agent'])
const passedBack = new Set(['allow', 'cache-control', 'content-language', 'content-type', 'retry-after'])
const traced = new Set(['traceparent', 'tracestate', 'baggage'])

const passes = (name: string, named: ReadonlySet<string>): boolean =>
  named.has(name) || traced.has(name) || name.startsWith('mcp-')

function kept(headers: IncomingHttpHeaders, named: ReadonlySet<string>): OutgoingHttpHeaders {
  const entries = Object.entries(headers).filter(([name, value]) => value !== undefined && passes(name, named))
  return Object.fromEntries(entries)
}

/** Headers of the request to the server: the door's own count more than those of the harness. */
export function headersOn(
  sent: IncomingHttpHeaders,
  own: Readonly<Record<string, string>>,
  body: Buffer | null,
): OutgoingHttpHeaders {
  const ownByName = Object.fromEntries(Object.entries(own).map(([name, value]) => [name.toLowerCase(), value]))
  return {
    ...kept(sent, passedOn),
    ...ownByName,
    // Bytes that are packed could not be looked through on the way back.
    'accept-encoding': 'identity',
    ...(body !== null && { 'content-length': body.length }),
  }
}

/** Headers of the answer. Its length changes where a value is taken out of it. */
export const headersBack = (answered: IncomingHttpHeaders): OutgoingHttpHeaders => kept(answered, passedBack)
