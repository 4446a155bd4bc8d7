/** The site that made a browser send a request. A browser adds the cookie to requests of other sites as well. */
export interface Sender {
  origin: string | undefined
  secFetchSite: string | undefined
  /** Hosts by which this server is reached. */
  hosts: readonly string[]
}

/** True when a page of this server sent it, as far as the browser tells. Other clients tell nothing. */
export function isOwnSender({ origin, secFetchSite, hosts }: Sender): boolean {
  if (origin === undefined) return secFetchSite === undefined || ['same-origin', 'none'].includes(secFetchSite)
  return URL.canParse(origin) && hosts.includes(new URL(origin).host)
}

/** A proxy need not pass on the host by which the server is known, so that of the public address counts as well. */
export function ownHosts(host: string | undefined, publicUrl: string | null): string[] {
  return [host, publicUrl === null ? undefined : new URL(publicUrl).host].filter((each) => each !== undefined)
}
