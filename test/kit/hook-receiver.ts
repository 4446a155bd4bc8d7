import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Received {
  path: string
  headers: IncomingMessage['headers']
  body: string
  // Tests look into bodies of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  json: any
}

type Answer = (response: ServerResponse, received: Received) => void

/** A receiver of webhooks on loopback. It takes everything, unless a test has it answer otherwise. */
export class HookReceiver {
  readonly received: Received[] = []
  answer: Answer = (response) => response.writeHead(200).end('thanks')
  private readonly server
  private waiting: (() => void)[] = []

  private constructor() {
    this.server = createServer((request, response) => void this.take(request, response))
  }

  static async start(): Promise<HookReceiver> {
    const receiver = new HookReceiver()
    await new Promise<void>((resolve) => receiver.server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`
  }

  /** Deliveries of one event or type. */
  of(name: string): Received[] {
    return this.received.filter(({ headers }) => headers['svc-event-id'] === name || headers['svc-event-type'] === name)
  }

  /** Resolves with the deliveries of a type once there are so many. */
  async until(type: string, count = 1): Promise<Received[]> {
    while (this.of(type).length < count) await new Promise<void>((resolve) => this.waiting.push(resolve))
    return this.of(type)
  }

  status(status: number, headers: Record<string, string> = {}): void {
    this.answer = (response) => response.writeHead(status, headers).end(`answered ${status}`)
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined)
    const body = await text(request)
    const received = { path: request.url ?? '', headers: request.headers, body, json: JSON.parse(body) as unknown }
    this.received.push(received)
    this.answer(response, received)
    for (const resolve of this.waiting.splice(0)) resolve()
  }
}
