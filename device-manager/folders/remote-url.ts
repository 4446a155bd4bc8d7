/**
 * A remote's URL without credentials. For HTTP and FTP all of the user part and the query go, since a token may stand as
 * the user's name alone; for others (ssh) the name is part of the address and only a password goes.
 */
export function withoutCredentials(url: string): string {
  const parts = /^((?:[\w+-]+::)?([a-z][a-z\d+.-]*):\/\/)([^/?#]*)(.*)$/is.exec(url)
  if (parts === null) return url
  const [, lead = '', scheme = '', authority = '', rest = ''] = parts
  const at = authority.lastIndexOf('@')
  const host = authority.slice(at + 1)
  if (/^(?:https?|ftps?)$/i.test(scheme)) return lead + host + rest.replace(/[?#].*$/s, '')
  const user = at < 0 ? '' : authority.slice(0, at).replace(/:.*$/s, '') + '@'
  return lead + user + host + rest
}
