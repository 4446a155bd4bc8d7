import { connect, createServer, type AddressInfo, type Server } from 'node:net'

/**
 * Hands each connection to a port of 127.0.0.1 on to the socket of the broker, which is the one way out of a sandbox. It understands
 * nothing of what goes through it.
 */
export async function forward({
  socket,
  port,
}: {
  socket: string
  port: number
}): Promise<{ port: number; close(): void }> {
  const server: Server = createServer({ allowHalfOpen: true }, (inside) => {
    const outside = connect({ path: socket, allowHalfOpen: true })
    for (const [one, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroySoon())
      one.pipe(other)
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() }
}
