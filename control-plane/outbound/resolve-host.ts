import { lookup, Resolver } from 'node:dns/promises'

/** Returns the addresses of a name, none when it has none. Rejects when it cannot be told. */
export type ResolveHost = (host: string, options: { isAllowed: boolean; signal: AbortSignal }) => Promise<string[]>

const queryMs = 3_000
const tries = 2

/**
 * Names of the operator are resolved as the machine does it, with its `/etc/hosts`. All others are asked of DNS directly: the
 * machine's way holds a thread of the few that files are read with for as long as a server of DNS likes, and knows names of
 * its own network.
 */
export const resolveHost: ResolveHost = async (host, { isAllowed, signal }) => {
  if (isAllowed) return (await lookup(host, { all: true })).map(({ address }) => address)
  const resolver = new Resolver({ timeout: queryMs, tries })
  const stop = () => resolver.cancel()
  signal.addEventListener('abort', stop, { once: true })
  try {
    const families = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const addresses = families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []))
    const [first] = families
    if (addresses.length === 0 && first.status === 'rejected') throw first.reason
    return addresses
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
