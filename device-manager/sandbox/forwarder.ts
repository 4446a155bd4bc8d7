import { connect, createServer, type AddressInfo, type Server, type TcpNetConnectOpts } from 'node:net'

/** Where the broker is: a socket, or a port to which `hello` is said first. */
export type BrokerAddress = { path: string } | { host: string; port: number; hello: string }

/**
 * Hands each connection to a port of 127.0.0.1 on to the broker, which is the one way out of a sandbox. It understands nothing of what
 * goes through it.
 */
export async function forward(
  broker: BrokerAddress,
  { port }: { port: number },
): Promise<{ port: number; close(): void }> {
  const server: Server = createServer({ allowHalfOpen: true }, (inside) => {
    const outside = 'path' in broker ? connect({ path: broker.path, allowHalfOpen: true }) : connect(atPort(broker))
    if ('hello' in broker) outside.write(broker.hello)
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

const atPort = ({ host, port }: { host: string; port: number }): TcpNetConnectOpts & { allowHalfOpen: true } => ({
  host,
  port,
  allowHalfOpen: true,
  keepAlive: true,
  noDelay: true,
})
