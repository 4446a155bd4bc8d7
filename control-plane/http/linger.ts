import type { IncomingMessage, ServerResponse } from 'node:http'

/** Of a body that nobody wants, so much is read and thrown away, for so long. */
const lingerBytes = 64 * 1024 * 1024
const lingerMs = 10_000

/**
 * Ends the answer once the rest of the request's body has come, or a bound is reached. A connection that ends with its
 * answer while bytes lie unread is reset, and its sender would see that instead of the answer. All of the answer has been
 * written before, so the sender need not wait for the end.
 */
export function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0
  const end = () => {
    clearTimeout(timer)
    request.off('data', count)
    response.end()
  }
  const count = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > lingerBytes) end()
  }
  const timer = setTimeout(end, lingerMs).unref()
  request.on('data', count)
  request.once('end', end)
  request.once('close', end)
  request.resume()
}

/** True when the sender may still be sending on a connection that ends with the answer. */
export const mustLinger = (request: IncomingMessage, response: ServerResponse): boolean =>
  !response.shouldKeepAlive && !request.complete && !request.destroyed
