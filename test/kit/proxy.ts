import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/**
 * A TCP proxy in the test's own process, between daemon and control plane, that does to connections what networks do.
 * Each fault lasts until `heal`.
 */
export interface TestProxy {
  readonly url: string
  /** Connections open now, from clients. */
  readonly open: number
  /** Connections accepted so far, refused ones included. */
  readonly accepted: number
  /** Ends what is open and refuses what is new: both sides see it. */
  cut(): void
  /** Passes nothing on, as when a cable is pulled for a moment: what was sent arrives after `heal`. */
  stall(): void
  /** Loses what is sent and keeps connections open, new ones too: no side sees it. `heal` ends what was so lost. */
  blackHole(): void
  /** The same for the connections that are open now; new ones work. */
  halfOpen(): void
  /** Holds every chunk back, in order. */
  delayMs(ms: number): void
  /** Sends what the client says over two connections at once; the first one answers. */
  duplicate(on: boolean): void
  /** Sees each chunk towards the client before it is passed on: what a server says is not masked. */
  intercept(look: ((chunk: string) => Verdict) | null): void
  heal(): void
  close(): Promise<void>
}

export type Target = { host: string; port: number } | { path: string }
export type Verdict = 'pass' | 'cut' | 'drop'
type Mode = 'pass' | 'cut' | 'stall' | 'black_hole'

export async function startProxy(target: () => Target): Promise<TestProxy> {
  const proxy = new Proxy(target)
  await proxy.listen()
  return proxy
}

interface Pair {
  client: Socket
  servers: Socket[]
  isDead: boolean
}

class Proxy implements TestProxy {
  readonly #target: () => Target
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  #mode: Mode = 'pass'
  #delayMs = 0
  #isDuplicating = false
  #look: ((chunk: string) => Verdict) | null = null
  #accepted = 0

  constructor(target: () => Target) {
    this.#target = target
    this.#server = createServer((client) => this.#accept(client))
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
  get open(): number {
    return this.#pairs.size
  }
  get accepted(): number {
    return this.#accepted
  }

  cut(): void {
    this.#mode = 'cut'
    for (const pair of this.#pairs) this.#drop(pair)
  }

  stall(): void {
    this.#mode = 'stall'
    for (const socket of this.#sockets()) socket.pause()
  }

  blackHole(): void {
    this.#mode = 'black_hole'
    this.halfOpen()
  }

  halfOpen(): void {
    for (const pair of this.#pairs) pair.isDead = true
  }

  delayMs(ms: number): void {
    this.#delayMs = ms
  }

  duplicate(on: boolean): void {
    this.#isDuplicating = on
  }

  intercept(look: ((chunk: string) => Verdict) | null): void {
    this.#look = look
  }

  heal(): void {
    this.#mode = 'pass'
    this.#delayMs = 0
    this.#isDuplicating = false
    this.#look = null
    // What was lost is missing from the stream: no real network goes on with such a connection.
    for (const pair of this.#pairs) if (pair.isDead) this.#drop(pair)
    for (const socket of this.#sockets()) socket.resume()
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) this.#drop(pair)
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #sockets(): Socket[] {
    return [...this.#pairs].flatMap(({ client, servers }) => [client, ...servers])
  }

  #drop(pair: Pair): void {
    this.#pairs.delete(pair)
    for (const socket of [pair.client, ...pair.servers]) socket.destroy()
  }

  #accept(client: Socket): void {
    this.#accepted++
    if (this.#mode === 'cut') return void client.destroy()
    const servers = [connect(this.#target())]
    if (this.#isDuplicating) servers.push(connect(this.#target()))
    const pair: Pair = { client, servers, isDead: this.#mode === 'black_hole' }
    this.#pairs.add(pair)
    this.#carry(pair, client, (chunk) => {
      for (const server of servers) if (server.writable) server.write(chunk)
    })
    servers.forEach((server, index) => {
      this.#carry(pair, server, (chunk) => {
        if (index > 0) return
        const verdict = this.#look?.(chunk.toString('latin1')) ?? 'pass'
        if (verdict === 'cut') this.#drop(pair)
        if (verdict === 'pass' && client.writable) client.write(chunk)
      })
    })
  }

  #carry(pair: Pair, from: Socket, write: (chunk: Buffer) => void): void {
    let queue = Promise.resolve()
    let queued = 0
    from.setNoDelay(true)
    if (this.#mode === 'stall') from.pause()
    from.on('data', (chunk: Buffer) => {
      if (pair.isDead) return
      if (this.#delayMs === 0 && queued === 0) return write(chunk)
      const due = performance.now() + this.#delayMs
      queued++
      queue = queue.then(async () => {
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
        queued--
        if (!pair.isDead) write(chunk)
      })
    })
    from.on('error', () => {})
    from.on('close', () => {
      const isEcho = pair.servers.indexOf(from) > 0
      if (!isEcho && !pair.isDead) this.#drop(pair)
    })
  }
}
