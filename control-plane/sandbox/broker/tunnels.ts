import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { World } from '../../../shared/lib/world.ts'
import type { NetworkDecision } from '../../../shared/runs/network.ts'
import { readHost } from '../../outbound/host-name.ts'
import type { Outbound } from '../../outbound/outbound.ts'
import { OutboundError } from '../../outbound/outbound-error.ts'
import { isNamed } from './host-requests.ts'
import type { Permit } from './permits.ts'

export interface TunnelLimits {
  /** The tunnels of one sandbox that may be open at once. */
  open: number
  /** The bytes in both directions, of one tunnel and of all of a sandbox (`allBytes`). */
  bytes: number
  allBytes: number
  /** The time without a byte, and in all (`timeMs`). */
  idleMs: number
  timeMs: number
}

const gib = 1024 ** 3
export const tunnelLimits: TunnelLimits = {
  open: 64,
  bytes: 4 * gib,
  allBytes: 20 * gib,
  idleMs: 5 * 60_000,
  timeMs: 2 * 3_600_000,
}

export interface TunnelRequest {
  request: IncomingMessage
  socket: Socket
  /** The bytes that came behind the request. */
  head: Buffer
}

/** Connections to hosts that the workspace names. Their bytes are nobody's business here, and nothing is added to them. */
export class Tunnels {
  private readonly options: { world: World; outbound: Pick<Outbound, 'connect'>; limits: TunnelLimits }
  private open = 0
  private left: number

  constructor(options: Tunnels['options']) {
    this.options = options
    this.left = options.limits.allBytes
  }

  /** Resolves when the tunnel has ended, with the host and what became of it. */
  async pass(
    { request, socket, head }: TunnelRequest,
    { egress, secrets }: Pick<Permit, 'egress' | 'secrets'>,
  ): Promise<{ host: string; decision: NetworkDecision }> {
    const { outbound, limits } = this.options
    const to = placeOf(request.url ?? '')
    const host = to?.host ?? ''
    const refused = { host, decision: 'refused' } as const
    if (to === null || !egress.has(to.host)) {
      const message = isNamed(host, secrets)
        ? `Ask ${host} by http://, so that the broker can put the secret in. It speaks TLS outside.`
        : `The broker of this sandbox does not let ${host || 'this'} through.`
      answer(socket, '403 Forbidden', message)
      return refused
    }
    if (this.open >= limits.open || this.left <= 0) {
      answer(socket, '429 Too Many Requests', 'This sandbox has too many connections, or has sent too much.')
      return refused
    }
    this.open++
    try {
      const outside = await outbound.connect(to)
      return { host, decision: (await this.join({ socket, head }, outside)) ? 'allowed' : 'failed' }
    } catch (error) {
      const why = error instanceof OutboundError ? error : null
      const isRefused = why?.reason === 'refused_address'
      answer(socket, isRefused ? '403 Forbidden' : '502 Bad Gateway', why?.message ?? 'The host could not be reached.')
      return isRefused ? refused : { host, decision: 'failed' }
    } finally {
      this.open--
    }
  }

  /** False when a limit ended it. */
  private async join({ socket, head }: Pick<TunnelRequest, 'socket' | 'head'>, outside: Socket): Promise<boolean> {
    const { world, limits } = this.options
    const ended = Promise.withResolvers<void>()
    let isCut = false
    let left = limits.bytes
    const end = () => {
      socket.destroy()
      outside.destroy()
      ended.resolve()
    }
    const cut = () => {
      isCut = true
      end()
    }
    const count = (chunk: Buffer) => {
      left -= chunk.length
      this.left -= chunk.length
      if (left < 0 || this.left < 0) cut()
    }
    const cancel = world.after(limits.timeMs, cut)
    if (socket.destroyed) end()
    else {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      count(head)
      outside.write(head)
    }
    for (const [one, other] of [
      [socket, outside],
      [outside, socket],
    ] as const) {
      one.setTimeout(limits.idleMs, cut)
      one.on('data', count)
      one.on('error', end)
      // The other end sends what was written before it closes.
      one.on('close', () => {
        other.destroySoon()
        if (other.destroyed) ended.resolve()
      })
      one.pipe(other)
    }
    await ended.promise
    cancel()
    return !isCut
  }
}

/** A host and a port as CONNECT names them; the host is one that nothing reads in another way. */
function placeOf(authority: string): { host: string; port: number } | null {
  const [, text, digits] = /^(\[[0-9a-fA-F:.]+\]|[\w.-]{1,253}):(\d{1,5})$/.exec(authority) ?? []
  const host = text === undefined ? null : readHost(text)
  const port = Number(digits)
  return host === null || port < 1 || port > 65_535 ? null : { host, port }
}

function answer(socket: Socket, status: string, message: string): void {
  const body = `${message}\n`
  const head = `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`
  socket.end(head + body)
}
