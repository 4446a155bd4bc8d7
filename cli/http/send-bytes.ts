import type { ClientRequest } from 'node:http'
import type { StreamedBody } from '../calls/api-call.ts'

/**
 * Sends a body piece by piece, as fast as the server takes it. Nothing is read before there is a connection, so that a call
 * to a server that is away can be repeated. Stops when the server has answered: it refuses what it does not want to the end.
 */
export function sendStreamed(request: ClientRequest, body: StreamedBody): void {
  let isOver = false
  let wake = () => {}
  const roomIn = () => new Promise<void>((resolve) => (wake = resolve))
  const end = () => {
    isOver = true
    wake()
  }
  const pump = async () => {
    for await (const piece of body.read()) {
      if (isOver) return
      if (!request.write(piece)) await roomIn()
    }
    if (!isOver) request.end()
  }
  request.on('drain', () => wake())
  request.once('response', end).once('error', end).once('close', end)
  request.once('socket', (socket) => {
    const begin = () => void pump().catch((error: unknown) => request.destroy(error as Error))
    if (socket.connecting) socket.once('connect', begin)
    else begin()
  })
  request.flushHeaders()
}
