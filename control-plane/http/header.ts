import type { IncomingMessage } from 'node:http'

/** A header of the request; one that came several times is joined. */
export function headerOf({ headers }: Pick<IncomingMessage, 'headers'>, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
