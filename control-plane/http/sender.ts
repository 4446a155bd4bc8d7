import type { IncomingMessage } from 'node:http'
import { headerOf } from './headers.ts'

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
export function senderOf(request: IncomingMessage, publicUrl: string | null): Sender {
  const { origin, host } = request.headers
  const hosts = [host, publicUrl === null ? undefined : new URL(publicUrl).host].filter((each) => each !== undefined)
  return { origin, secFetchSite: headerOf(request, 'sec-fetch-site'), hosts }
}
