import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'

// Outside services on loopback, and the operator's file that names them.

/** The variables of a server whose catalog has these services, too. */
export function serviceSettings(file: { services: readonly object[]; clients?: readonly object[] }) {
  const path = join(mkdtempSync(join(inject('databases').folder, 'services-')), 'services.json')
  writeFileSync(path, JSON.stringify(file))
  return { SVC_SERVICES_FILE: path, SVC_ALLOW_HOSTS: '127.0.0.1' }
}

export interface KeyService {
  url: string
  /** The only key that it takes. */
  key: string
  /** The headers of each request. */
  asked: IncomingHttpHeaders[]
  /** Its entry in the catalog. */
  entry: Record<string, unknown>
  stop(): Promise<void>
}

/** A service that takes one key, and repeats what it was sent. */
export async function startKeyService(id = 'key-service'): Promise<KeyService> {
  const server = createServer((request, response) => {
    service.asked.push(request.headers)
    const isGood = request.headers.authorization === `Bearer ${service.key}`
    response.writeHead(isGood ? 200 : 401).end(`you sent ${request.headers.authorization}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const service: KeyService = {
    url,
    key: 'key_good123',
    asked: [],
    entry: {
      id,
      label: 'Key service',
      authKind: 'api_key',
      surfaces: ['mcp', 'native'],
      mcp: { url: `${url}/mcp` },
      fields: [
        { name: 'apiKey', label: 'Key', required: true, pattern: '^key_[a-z0-9]+$', env: 'KEY_SERVICE_KEY' },
        { name: 'region', label: 'Region', required: false, env: 'KEY_SERVICE_REGION' },
      ],
      probe: { url: `${url}/me`, headers: { authorization: 'Bearer {apiKey}' } },
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return service
}
