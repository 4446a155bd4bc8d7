import { isIPv4 } from 'node:net'

export function isOnThisMachine({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'))
}

/** Characters that end the name and password of a URL, or divide it, unless they are percent-encoded. */
const dividers = /[@:/?#\s]|%(?![0-9a-f]{2})/i

/**
 * What an address of PostgreSQL must be, or null when it is well-formed. A password with a raw `/`, `?` or `#` ends the
 * host in its middle, and one with a raw `@` or `:` is read differently by the programs that take such an address.
 */
export function postgresTrouble(text: string): string | null {
  const [, rest] = /^postgres(?:ql)?:\/\/(.*)$/s.exec(text) ?? []
  if (rest === undefined) return 'an address that begins with postgres://'
  const [name, password] = credentialsOf(rest)
  if (dividers.test(name) || dividers.test(password))
    return 'an address whose name and password are percent-encoded: write %40 for @, %3A for :, %2F for /, %3F for ?, %23 for # and %25 for %'
  if (!URL.canParse(text)) return 'an address as postgres://NAME:PASSWORD@HOST:PORT/DATABASE with one host'
  if (text.includes('#')) return 'an address without "#"'
  return null
}

/** Name and password before the last `@` that is not behind the `?` of an address without credentials. */
function credentialsOf(rest: string): [name: string, password: string] {
  const [beforeQuery = '', query = ''] = rest.split('?')
  // `svc:a?b@host`: what stands before the `?` is no host with its port, or no parameter follows, so the `?` is a
  // character of the password.
  const hasQuery = URL.canParse(`postgres://${beforeQuery}`) && !/^[^=]*@/.test(query)
  const end = (hasQuery ? beforeQuery : rest).lastIndexOf('@')
  if (end === -1) return ['', '']
  const both = rest.slice(0, end)
  const colon = both.indexOf(':')
  return colon === -1 ? [both, ''] : [both.slice(0, colon), both.slice(colon + 1)]
}
