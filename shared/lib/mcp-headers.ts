// The headers that a request to an MCP server, and its answer, take over from the other side.

type Received = Readonly<Record<string, string | string[] | undefined>>
type Passed = Record<string, string | string[] | number>

/**
 * Headers that pass, by name. All others stay on their side: those of one connection (RFC 9110, section 7.6.1), cookies, and whatever the
 * harness sends as a credential of its own. `mcp-` covers both versions of the protocol, with its parameters of tools.
 */
const passedOn = new Set(['accept', 'accept-language', 'content-type', 'last-event-id', 'user-agent'])
const passedBack = new Set(['allow', 'cache-control', 'content-language', 'content-type', 'retry-after'])
const traced = new Set(['traceparent', 'tracestate', 'baggage'])

const passes = (name: string, named: ReadonlySet<string>): boolean =>
  named.has(name) || traced.has(name) || name.startsWith('mcp-')

function kept(headers: Received, named: ReadonlySet<string>): Passed {
  const entries = Object.entries(headers).filter(([name, value]) => value !== undefined && passes(name, named))
  return Object.fromEntries(entries) as Passed
}

/** Headers of the request to the server: those that are added count more than those of the harness. `body`: where it is known whole. */
export function headersOn(sent: Received, own: Readonly<Record<string, string>>, body: Uint8Array | null): Passed {
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
export const headersBack = (answered: Received): Passed => kept(answered, passedBack)

/** Tells whether the sign-in does not go as far as the request (RFC 6750, section 3.1). */
export const asksForMore = ({ statusCode, headers }: { statusCode?: number | undefined; headers: Received }): boolean =>
  statusCode === 403 && /\berror="?insufficient_scope\b/i.test(String(headers['www-authenticate'] ?? ''))

export const moreIsAsked =
  'the sign-in of its connection does not go as far as this call (403, insufficient_scope). A person revokes the connection, and signs in anew with more rights'
