import { readFileSync } from 'node:fs'
import { createServer as createPlain, type RequestListener } from 'node:http'
import { createServer as createTls } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** Loopback servers whose answers a test writes, plain or with a certificate of their own. */
export interface TestServer {
  readonly port: number
  /** Requests that came so far. */
  readonly asked: number
  close(): Promise<void>
}

export interface TestServerOptions {
  host?: string
  tls?: Certificate
}

export interface Certificate {
  key: string
  cert: string
}

export async function startServer(answer: RequestListener, options: TestServerOptions = {}): Promise<TestServer> {
  const counts = { asked: 0 }
  const listener: RequestListener = (request, response) => {
    counts.asked++
    answer(request, response)
  }
  const server = options.tls === undefined ? createPlain(listener) : createTls(options.tls, listener)
  await new Promise<void>((resolve) => server.listen(0, options.host ?? '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    get asked() {
      return counts.asked
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../fixtures/tls', name), 'utf8')

/** A certificate of 127.0.0.2 alone, which nobody has signed. */
export const secondLoopbackCertificate = (): Certificate => ({
  key: fixture('second-loopback-key.pem'),
  cert: fixture('second-loopback-cert.pem'),
})

/** A certificate of the name `a.test` alone, which nobody has signed. */
export const testCertificate = (): Certificate => ({ key: fixture('key.pem'), cert: fixture('cert.pem') })
