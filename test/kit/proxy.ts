import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/**
 * A TCP proxy in the test's own process, between daemon and control plane, that does to a connection what networks do.
 *
 * `cut` ends what is open and refuses what is new (the other side sees it). `blackHole` keeps connections open and
 * passes nothing on, as a cable that was pulled out: nobody sees it. `delayMs` holds every chunk back, in order.
 * `duplicate` sends what the client says over two connections at once. `intercept` sees each chunk towards the client
 * before it is passed on (what a server says is not masked, so its messages can be read there).
 */
export interface TestProxy {
  readonly url: string
  /** Connections open now, from clients. */
  readonly open: number
  /** Connections accepted so far, refused ones included. */
  readonly accepted: number
  cut(): void
  blackHole(): void
  delayMs(ms: number): void
  duplicate(on: boolean): void
  intercept(look: ((chunk: string) => 'pass' | 'cut' | 'drop') | null): void
  /** All of it is undone; connections that were in a black hole are dropped. */
  heal(): void
  close(): Promise<void>
}

type Mode = 'pass' | 'cut' | 'black_hole'

export async function startProxy(target: () => { host: string; port: number }): Promise<TestProxy> {
  const proxy = new Proxy(target)
  await proxy.listen()
  return proxy
}

interface Pair {
  client: Socket
  servers: Socket[]
}

class Proxy implements TestProxy {
  readonly #target: () => { host: string; port: number }
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  #mode: Mode = 'pass'
  #delayMs = 0
  #isDuplicating = false
  #look: ((chunk: string) => 'pass' | 'cut' | 'drop') | null = null
  #accepted = 0

  constructor(target: () => { host: string; port: number }) {
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
    this.#dropAll()
  }

  blackHole(): void {
    this.#mode = 'black_hole'
  }

  delayMs(ms: number): void {
    this.#delayMs = ms
  }

  duplicate(on: boolean): void {
    this.#isDuplicating = on
  }

  intercept(look: ((chunk: string) => 'pass' | 'cut' | 'drop') | null): void {
    this.#look = look
  }

  heal(): void {
    const wasDead = this.#mode === 'black_hole'
    this.#mode = 'pass'
    this.#delayMs = 0
    this.#isDuplicating = false
    this.#look = null
    // What was swallowed is missing from the stream: no real network goes on with such a connection.
    if (wasDead) this.#dropAll()
  }

  async close(): Promise<void> {
    this.#dropAll()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #dropAll(): void {
    for (const pair of this.#pairs) this.#drop(pair)
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
    const pair: Pair = { client, servers }
    this.#pairs.add(pair)
    this.#carry(pair, client, (chunk) => servers.forEach((server) => server.writable && server.write(chunk)))
    servers.forEach((server, index) => {
      // Only the first answers; the second is the echo of a network that delivers twice.
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
    from.on('data', (chunk: Buffer) => {
      if (this.#mode !== 'pass') return
      if (this.#delayMs === 0 && queued === 0) return write(chunk)
      const due = performance.now() + this.#delayMs
      queued++
      queue = queue.then(async () => {
        await new Promise((resolve) => setTimeout(resolve, due - performance.now()))
        queued--
        if (this.#mode === 'pass') write(chunk)
      })
    })
    from.on('error', () => {})
    from.on('close', () => {
      const isEcho = pair.servers.indexOf(from) > 0
      if (!isEcho && this.#mode !== 'black_hole') this.#drop(pair)
    })
  }
}
