import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { silentLog } from '../../../control-plane/process/log.ts'
import { createOutbound, type OutboundOptions } from '../../../control-plane/outbound/outbound.ts'
import type { NetworkRow } from '../../../control-plane/resources/sandboxes/network-store.ts'
import { Broker, type BrokerOptions } from '../../../control-plane/sandbox/broker/broker.ts'
import type { Permit } from '../../../control-plane/sandbox/broker/permits.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'
import { startServer } from '../../kit/hostile-server.ts'

// A broker on a socket, without an engine, and what a hostile sandbox sends to it.

export const key = 'sk-real-0123456789abcdef'

export const nothing: Permit = { egress: new Set(), model: null, repo: null, secrets: [], servers: [] }

export interface TestBroker {
  broker: Broker
  socket: string
  /** What this server's API was asked. */
  asked: string[]
  counted: () => Promise<Pick<NetworkRow, 'host' | 'decision' | 'requests'>[]>
  /** Sends these bytes, and returns all that comes until the connection ends. */
  say: (bytes: string) => Promise<string>
  open: () => Promise<Socket>
}

export async function startBroker({
  permit,
  limits,
  outbound = {},
  world = realWorld,
}: {
  permit: Partial<Permit> | (() => Promise<Permit | null>) | null
  limits?: BrokerOptions['limits']
  outbound?: Partial<OutboundOptions>
  world?: World
}): Promise<TestBroker> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-b-'))
  const socket = join(folder, 'sock')
  const asked: string[] = []
  const http: Server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.end('the API')
  })
  http.on('upgrade', (request, given: Socket) => {
    asked.push(`upgrade ${request.url}`)
    given.end()
  })
  const rows: NetworkRow[] = []
  const broker = new Broker({
    sandboxId: idFrom('sbx_test'),
    http,
    world,
    log: silentLog,
    outbound: createOutbound({ allowHosts: ['127.0.0.1'], world, ...outbound }),
    permit: async () => (typeof permit === 'function' ? permit() : permit && { ...nothing, ...permit }),
    record: async (counted) => void rows.push(...counted.map((row) => ({ ...row, runId: idFrom<RunId>('run') }))),
    ...(limits && { limits }),
  })
  await broker.listen(socket)
  let isOpen = true
  const close = async () => {
    if (isOpen) await broker.close()
    isOpen = false
  }
  onTestFinished(async () => {
    await close()
    rmSync(folder, { recursive: true, force: true })
  })
  const open = () =>
    new Promise<Socket>((resolve, reject) => {
      const made = connect({ path: socket, allowHalfOpen: true })
      made.once('connect', () => resolve(made))
      made.once('error', reject)
    })
  return {
    broker,
    socket,
    asked,
    open,
    async counted() {
      await close()
      // They are written down about once a second.
      const told = Map.groupBy(rows, ({ host, decision }) => `${host} ${decision}`)
      return [...told.values()].map((same) => {
        const { host, decision } = same[0]!
        return { host, decision, requests: same.reduce((sum, { requests }) => sum + requests, 0) }
      })
    },
    async say(bytes) {
      const made = await open()
      made.write(bytes)
      return textOf(made)
    },
  }
}

export function textOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    socket.on('error', () => undefined)
    socket.on('end', () => socket.end())
    socket.on('close', () => resolve(text))
  })
}

/** A provider on loopback, and the permit of a run whose model is there. */
export async function startProvider(answer: RequestListener) {
  const server = await startServer(answer)
  onTestFinished(() => server.close())
  const url = `http://127.0.0.1:${server.port}`
  const permit: Permit = {
    ...nothing,
    model: { provider: 'anthropic', url, key: { value: key, header: 'x-api-key' } },
  }
  return { server, url, permit }
}

export const post = (path: string, body = '{}', more: readonly string[] = []): string =>
  [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    ...more,
    '',
    body,
  ].join('\r\n')

export const get = (target: string, more: readonly string[] = []): string =>
  [`GET ${target} HTTP/1.1`, 'host: 127.0.0.1', 'connection: close', ...more, '', ''].join('\r\n')

export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
