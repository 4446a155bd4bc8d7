import { BlockList, isIP, isIPv4 } from 'node:net'

// Tells which IP addresses belong to the public internet, and refuses the others: the registries of special addresses of IANA
// (RFC 6890 and the pages that follow it), and the addresses at which clouds tell their machines secrets.

const special4: readonly (readonly [net: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  // Azure gives its machines their configuration at this address, which looks public.
  ['168.63.129.16', 32],
]

/** Nets of 2000::/3, which holds all public addresses, that are special: protocols of the IETF with Teredo, documentation, 6to4. */
const special6: readonly (readonly [net: string, prefix: number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const refused4 = new BlockList()
for (const [net, prefix] of special4) refused4.addSubnet(net, prefix, 'ipv4')
const refused6 = new BlockList()
for (const [net, prefix] of special6) refused6.addSubnet(net, prefix, 'ipv6')
const global6 = new BlockList()
global6.addSubnet('2000::', 3, 'ipv6')
const nat64 = new BlockList()
nat64.addSubnet('64:ff9b::', 96, 'ipv6')

/** A text that is no IP address is not public either. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !refused4.check(address, 'ipv4')
  // An address with a zone (`fe80::1%eth0`) is one of a link.
  if (isIP(address) !== 6 || address.includes('%')) return false
  // A network without IPv4 reaches public IPv4 hosts through such addresses, and private ones, too.
  if (nat64.check(address, 'ipv6')) return isPublicAddress(lastFourBytes(address))
  return global6.check(address, 'ipv6') && !refused6.check(address, 'ipv6')
}

/** The IPv4 address at the end of an IPv6 address. */
function lastFourBytes(address: string): string {
  // A URL writes the same address in one form, without a dotted end.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':')
  const [high, low] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16))
  return [high! >> 8, high! & 255, low! >> 8, low! & 255].join('.')
}
