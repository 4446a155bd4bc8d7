/** Returns the address at which the server takes links: beside its API, also below a path of a proxy. */
export function linkUrl(server: string): string {
  const url = new URL(server)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/device/link`
  return url.toString()
}
