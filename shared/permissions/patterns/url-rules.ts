import { glob } from './glob.ts'

/** Says whether a rule that forbids is about the address, however it is spelt. One that cannot be read may be any address. */
export function forbidsUrl(pattern: string, url: string): boolean {
  const parsed = URL.parse(url)
  if (parsed === null) return true
  const domain = domainOf(pattern)
  if (domain !== null) return hostsOf(parsed, url).some((host) => host === '' || isWithin(host, domain))
  const patterns = [pattern, pattern.toLowerCase(), withPlainHost(pattern.toLowerCase())]
  return spellingsOf(parsed, url).some((text) => patterns.some((one) => glob(one, text)))
}

/** Says whether a rule that allows is about the address, both as it is written and as it is read. */
export function allowsUrl(pattern: string, url: string): boolean {
  const parsed = URL.parse(url)
  const domain = domainOf(pattern)
  if (domain !== null) return parsed !== null && hostsOf(parsed, url).every((host) => isWithin(host, domain))
  const read = parsed === null ? [url] : [parsed.href, parsed.href.replace(/\/$/, '')]
  const plain = withPlainHost(pattern)
  return matches(pattern, url) && read.some((text) => matches(plain, text))
}

/** A star in the place of a host stands for nothing that follows the host: `https://*.good.com/*` is no page of another host. */
function matches(pattern: string, url: string): boolean {
  const origin = originOf(pattern)
  return glob(pattern, url) && (origin === null || glob(origin, originOf(url) ?? url))
}

/** The scheme and the host, with what stands before the path; null where the text names no host. */
const originOf = (text: string): string | null => /^[^/?#\\]*:\/\/[^/?#\\]*/.exec(text)?.[0] ?? null

const domainOf = (pattern: string): string | null =>
  pattern.startsWith('domain:') ? plainHost(hostIn(pattern.slice('domain:'.length))) : null

/** Says whether the pattern is about a host and names none, so that it can hold for no address. */
export function namesNoHost(pattern: string): boolean {
  const domain = domainOf(pattern)
  if (domain === null) return false
  return domain === '' || (domain.includes('*') ? /[\s()]/.test(domain) : URL.parse(`http://${domain}`) === null)
}

/** People write a whole address, a leading dot, or an IPv6 address without its brackets. */
function hostIn(text: string): string {
  const host = text
    .trim()
    .replace(/^[a-z][a-z\d+.-]*:\/\//i, '')
    .replace(/^\.+(?=.)/, '')
  return /^[\da-f]*:[\da-f:.]*$/i.test(host) ? `[${host}]` : host
}

const isWithin = (host: string, domain: string): boolean =>
  host === domain || host.endsWith(`.${domain}`) || (domain.includes('*') && glob(domain, host))

/** Returns the host in small letters, without the dots of the root, in the letters that the name service knows. */
function plainHost(host: string): string {
  const read = host.includes('*') ? host.toLowerCase() : (URL.parse(`http://${host}`)?.hostname ?? host.toLowerCase())
  return asIpv4(read) ?? read.replace(/\.+$/, '')
}

/** An IPv6 address that stands for one of IPv4 leads to the same machine. */
function asIpv4(host: string): string | null {
  const [, high, low] = /^\[(?:::ffff:|::|64:ff9b::)([\da-f]{1,4}):([\da-f]{1,4})\]$/.exec(host) ?? []
  if (high === undefined || low === undefined) return null
  return [high, low].flatMap((part) => [Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 0xff]).join('.')
}

/** The host as a browser reads it, and as older programs do, for which a backslash is a letter. */
function hostsOf(parsed: URL, url: string): string[] {
  const [, authority = parsed.host] = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(url.trim()) ?? []
  const older = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '')
  return [...new Set([plainHost(parsed.hostname), plainHost(older)])]
}

function withPlainHost(pattern: string): string {
  return pattern.replace(
    /^([a-z][a-z\d+.-]*:\/\/)([^/?#:*]+)(?=[/?#:]|$)/i,
    (_, scheme: string, host: string) => `${scheme}${plainHost(host)}`,
  )
}

/** Addresses that lead to the same place: without user, fragment and the port that goes without saying, by http or https. */
function spellingsOf(parsed: URL, url: string): string[] {
  const { host, hostname, port, pathname, search } = parsed
  const names = [parsed.href]
  if (host !== '') {
    const at = `${plainHost(hostname)}${port === '' ? '' : `:${port}`}`
    const schemes = /^https?:$/.test(parsed.protocol) ? ['http:', 'https:'] : [parsed.protocol]
    const rests = [pathname + search, pathname + search + parsed.hash, ...(pathname === '/' ? [search] : [])]
    names.push(...schemes.flatMap((scheme) => rests.map((rest) => `${scheme}//${at}${rest}`)))
  }
  const all = [url, url.trim(), ...names, ...names.map(unescaped)]
  return [...new Set([...all, ...all.map((text) => text.toLowerCase())])]
}

const unescaped = (text: string): string =>
  text.replaceAll(/(?:%[\da-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      return escapes
    }
  })
