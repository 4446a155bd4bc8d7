/** Returns the address of a server in its only spelling (no path of the API, no slash at the end), or null. */
export function serverUrl(text: string): string | null {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`
  if (!URL.canParse(withScheme)) return null
  const url = new URL(withScheme)
  if ((url.protocol !== 'http:' && url.protocol !== 'https:') || url.username !== '' || url.search !== '') return null
  return url.origin + url.pathname.replace(/\/api(\/v1)?\/?$/, '').replace(/\/+$/, '')
}
