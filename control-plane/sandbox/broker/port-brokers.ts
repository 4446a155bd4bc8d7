import { idFrom, type SandboxId } from '../../../shared/lib/ids.ts'
import { timingSafeEqual } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { hashToken } from '../../http/token-hash.ts'
import { brokerOf, type BrokerPlaces, type BrokerRoute, type BrokersOptions, type KnownPlace } from './brokers.ts'
import type { Broker } from './broker.ts'

export interface PortBrokersOptions extends BrokersOptions {
  /** The address at which sandboxes find this port, or that of another replica: the name of a Service. */
  host: string
  port: number
  /** Returns the key that a sandbox shows. */
  keyOf: (sandboxId: SandboxId) => string
}

/** A connection that has not said whose it is by then is nobody's. */
const helloMs = 5_000
const helloBytes = 200
const mostStrangers = 2_000
/** The most of them from one address, so that no sandbox takes the places of all. */
const mostOfAddress = 20

/**
 * The brokers of sandboxes on other machines, at one port: a connection begins with a line that says of which sandbox it is, with the
 * key of it that every replica knows. What comes after that is as at a socket of its own.
 */
export class PortBrokers implements BrokerPlaces {
  readonly folder = 'cluster'
  private readonly options: PortBrokersOptions
  private readonly brokers = new Map<SandboxId, Broker>()
  private readonly strangers = new Set<Socket>()
  private readonly strangersOf = new Map<string, number>()
  private readonly server: Server

  constructor(options: PortBrokersOptions) {
    this.options = options
    this.server = createServer({ allowHalfOpen: true, keepAlive: true }, (socket) => this.meet(socket))
  }

  async start(): Promise<void> {
    const { port, log } = this.options
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(port, resolve)
    })
    this.server.on('error', (error) => log.warn({ err: error }, 'the port of the brokers has trouble'))
  }

  folderOf(): string {
    return this.folder
  }

  reachableFolderOf(): string {
    return this.folder
  }

  async routeOf({ id }: KnownPlace): Promise<BrokerRoute> {
    const { host, port, keyOf } = this.options
    try {
      // A sandbox looks no name up.
      const { address } = await lookup(host)
      return { network: 'policy', broker: { sandbox: id, host: address, port, key: keyOf(id) } }
    } catch (error) {
      throw new Error(`${host}, by which sandboxes are to find their broker, has no address.`, { cause: error })
    }
  }

  /** A Secret that changes reaches its pod a minute later. */
  async standBy(): Promise<void> {
    throw new Error('No sandbox of a cluster waits for its run.')
  }

  async open(): Promise<void> {}
  forgetToken(): void {}
  async keep(): Promise<void> {}

  known(): SandboxId[] {
    return [...this.brokers.keys()]
  }

  async close({ id }: { id: SandboxId }): Promise<void> {
    const broker = this.brokers.get(id)
    this.brokers.delete(id)
    await broker?.close()
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    for (const socket of this.strangers) socket.destroy()
    await Promise.all([...this.brokers.values()].map((broker) => broker.close()))
    this.brokers.clear()
    await closed
  }

  private meet(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const address = socket.remoteAddress ?? ''
    const ofAddress = this.strangersOf.get(address) ?? 0
    if (this.strangers.size >= mostStrangers || ofAddress >= mostOfAddress) return void socket.destroy()
    this.strangers.add(socket)
    this.strangersOf.set(address, ofAddress + 1)
    const over = this.options.world.after(helloMs, () => socket.destroy())
    let said = Buffer.alloc(0)
    const hear = (chunk: Buffer) => {
      said = Buffer.concat([said, chunk])
      const end = said.indexOf(10)
      if (end < 0 && said.length <= helloBytes) return
      socket.pause()
      socket.off('data', hear)
      leave()
      const id = end < 0 || end > helloBytes ? null : this.sandboxOf(said.subarray(0, end).toString('latin1'))
      if (id === null) return void socket.destroy()
      socket.unshift(said.subarray(end + 1))
      this.brokerOf(id).take(socket)
    }
    const leave = () => {
      over()
      if (!this.strangers.delete(socket)) return
      const left = this.strangersOf.get(address)! - 1
      if (left === 0) this.strangersOf.delete(address)
      else this.strangersOf.set(address, left)
    }
    socket.on('data', hear)
    socket.once('close', leave)
  }

  /** Finds the sandbox that the line names; null: it does not show that one's key. */
  private sandboxOf(line: string): SandboxId | null {
    const [, id, key] = /^svc-broker (sbx_[0-9A-Za-z]{16}) ([0-9A-Za-z]{1,100})$/.exec(line) ?? []
    if (id === undefined || key === undefined) return null
    const sandboxId = idFrom<SandboxId>(id)
    const [own, shown] = [this.options.keyOf(sandboxId), key].map((each) => Buffer.from(hashToken(each)))
    return timingSafeEqual(own!, shown!) ? sandboxId : null
  }

  private brokerOf(id: SandboxId): Broker {
    const known = this.brokers.get(id)
    if (known !== undefined) return known
    const broker = brokerOf(this.options, id)
    this.brokers.set(id, broker)
    return broker
  }
}
