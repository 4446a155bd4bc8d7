import { isIP } from 'node:net'
import { hostOf, isHostName } from './host-name.ts'
import { OutboundError } from './outbound-error.ts'
import { isPublicAddress } from './public-address.ts'
import type { ResolveHost } from './resolve-host.ts'

/** The place to which a request may go: the addresses were checked, and nothing resolves the name again. */
export interface Destination {
  url: URL
  /** The name or address that stands in the URL, without brackets. */
  host: string
  port: number
  /** The addresses of the host, at least one. */
  addresses: readonly string[]
}

export interface DestinationRules {
  /** Hosts, as `hostOf` gives them, that may be private and may be asked without TLS. */
  allowHosts: ReadonlySet<string>
  resolveHost: ResolveHost
}

/** More say nothing new; a connection may be tried with each. */
const maxAddresses = 8

/** Fails with OutboundError when the URL may not be asked. */
export async function destinationOf(url: URL, rules: DestinationRules, signal: AbortSignal): Promise<Destination> {
  if (url.username !== '' || url.password !== '')
    throw new OutboundError('refused_address', 'an address with a name or password before its host is not asked')
  const host = hostOf(url)
  const isAllowed = rules.allowHosts.has(host)
  if (url.protocol !== 'https:' && !(isAllowed && url.protocol === 'http:'))
    throw new OutboundError('not_https', 'the address must begin with https://')
  const isAddress = isIP(host) !== 0
  if (!isAddress && !isHostName(host)) throw new OutboundError('refused_address', 'the host of the address is no name')
  const addresses = isAddress ? [host] : await resolved(host, { isAllowed, signal }, rules.resolveHost)
  // A private address among public ones is refused, too: which of them is used is not for the sender to choose.
  if (!isAllowed && !addresses.every(isPublicAddress))
    throw new OutboundError('refused_address', `${host} is not in the public internet`)
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  return { url, host, port, addresses: addresses.slice(0, maxAddresses) }
}

async function resolved(host: string, options: Parameters<ResolveHost>[1], resolveHost: ResolveHost) {
  let addresses: string[]
  try {
    addresses = await untilAborted(resolveHost(host, options), options.signal)
  } catch (error) {
    options.signal.throwIfAborted()
    throw new OutboundError('unresolvable', `${host} could not be resolved`, { cause: error })
  }
  if (addresses.length === 0) throw new OutboundError('unresolvable', `${host} has no address`)
  return addresses
}

/** Waits until the signal at the longest: what resolves names cannot always be stopped. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
