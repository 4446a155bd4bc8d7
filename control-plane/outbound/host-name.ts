import { isIP } from 'node:net'

/** The host of a URL as names and addresses are compared: without brackets, and without the dot that ends a full name. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')

/** Names of DNS. Others would mean something in the settings of git and curl (`*`, `,`). */
export const isHostName = (host: string): boolean =>
  host.length <= 253 && /^(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(host)

/** A host as an operator writes it, as `hostOf` gives it; null for what is none, such as one with a port. */
export function readHost(text: string): string | null {
  const isAddress6 = isIP(text) === 6 && !text.includes('%')
  if (!isAddress6 && !/^(?:\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)$/i.test(text)) return null
  const url = URL.parse(`http://${isAddress6 ? `[${text}]` : text}`)
  if (url === null) return null
  const host = hostOf(url)
  return isIP(host) !== 0 || isHostName(host) ? host : null
}

/** A host as secrets name it: with its port where that is not that of TLS. Plain HTTP of a sandbox means TLS outside. */
export function hostWithPort(url: URL): string {
  const port = url.port === '443' ? '' : url.port
  return port === '' ? hostOf(url) : `${hostOf(url)}:${port}`
}
