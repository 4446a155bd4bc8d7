import { randomBytes } from 'node:crypto'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { lineReader } from '../../../shared/lib/lines.ts'
import type { HttpDoor } from '../../harness/adapter.ts'
import { httpOrder, type HttpOrder } from '../../harness/parts/http-lines.ts'
import { parseJson } from '../../harness/parts/json-lines.ts'
import type { Child, ChildLaunch } from './child.ts'
import { launchOnPipes } from './pipes.ts'

/** The module is loaded by the first call: it takes megabytes, which a run host without such a harness does not need. */
const nodeHttp = () => process.getBuiltinModule('node:http')

/** The bytes that are held of one line, one event and one answer; more of a line is dropped, of an event or answer it ends the run or the request. */
export const httpLimits = {
  lineBytes: 32 * 1024 * 1024,
  answerBytes: 8 * 1024 * 1024,
  openRequests: 256,
  requestMs: 60_000,
  /** The time from the launch to the open event stream. */
  startMs: 120_000,
}
export type HttpLimits = typeof httpLimits

/**
 * Launches a harness that serves HTTP on loopback, and makes lines of it for its dialogue (harness/parts/http-lines.ts):
 *
 *     launched -- it prints its address -> the event stream is asked for -- 200 -> listening
 *         \____________________________________\___________________________________ \-> lost (told once)
 *
 * Orders that come before `listening` wait for it. The server's password is made here, for this run alone. The address
 * must be one of loopback, redirects are not followed, and an event stream that ends is never taken up anew: nobody
 * could say what was missed. `closed` waits for the rest of the events, so that none that was sent is lost.
 */
export function launchOverHttp(launch: ChildLaunch & { http: HttpDoor }, limits = httpLimits): Child {
  const password = randomBytes(32).toString('base64url')
  const { http } = launch
  const server = new HttpServer(http, password, { limits, tell: (line) => launch.onOutput(lineOf(line)) })
  const stdout = lineReader(limits.lineBytes)
  const child = launchOnPipes({
    ...launch,
    env: { ...launch.env, [http.passwordVariable]: password },
    onOutput: (chunk) => {
      for (const { bytes } of stdout.push(chunk)) server.printed(Buffer.from(bytes).toString('utf8'))
    },
  })
  const orders = lineReader(limits.lineBytes)
  const carryOut = ({ bytes }: { bytes: Uint8Array }) => {
    const order = httpOrder.parse(JSON.parse(Buffer.from(bytes).toString('utf8')))
    if ('stdin' in order) child.write(order.stdin)
    else server.order(order)
  }
  void child.leaderGone.then(() => server.programLeft())
  return {
    ...child,
    write: (text) => orders.push(Buffer.from(text)).forEach(carryOut),
    closed: child.closed.then(async (exit) => {
      const rest = stdout.end()
      if (rest !== null) server.printed(Buffer.from(rest).toString('utf8'))
      await server.ended
      return exit
    }),
    abandon: () => {
      child.abandon()
      server.stop()
    },
  }
}

const lineOf = (line: object): Uint8Array => Buffer.from(`${JSON.stringify(line)}\n`)

interface ServerOptions {
  limits: HttpLimits
  tell(line: object): void
}

/** The HTTP side of one program. */
class HttpServer {
  /** The event stream has ended, or will never begin. */
  readonly ended: Promise<void>
  readonly #http: HttpDoor
  readonly #headers: Record<string, string>
  readonly #options: ServerOptions
  readonly #open = new Set<ClientRequest>()
  readonly #end: () => void
  readonly #startLimit: NodeJS.Timeout
  #address: URL | null = null
  #waiting: HttpOrder[] | null = []
  #events: ClientRequest | null = null
  #isOver = false

  constructor(http: HttpDoor, password: string, options: ServerOptions) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#end = resolve
    this.#http = http
    this.#headers = { authorization: `Basic ${Buffer.from(`${http.user}:${password}`).toString('base64')}` }
    this.#options = options
    this.#startLimit = setTimeout(() => this.#lost('it did not serve its events in time'), options.limits.startMs)
    this.#startLimit.unref()
  }

  /** A line of the program's standard output; the first that holds an address says where it serves. */
  printed(line: string): void {
    const address = this.#address === null ? addressIn(line) : null
    if (address === null) return this.#options.tell({ stdout: line.replace(/\r?\n$/, '') })
    this.#address = address
    if (!isLoopback(address)) return this.#lost(`it serves at ${address.host}, which is not loopback`)
    if (!this.#isOver) this.#openEvents(address)
  }

  order(order: HttpOrder): void {
    if (this.#isOver) return
    if (this.#waiting === null) return this.#send(order)
    if (this.#waiting.length < this.#options.limits.openRequests) this.#waiting.push(order)
    else this.#refuse(order, 'too many requests')
  }

  /** Ends the sockets with the program, once what they still hold is read. */
  programLeft(): void {
    if (this.#events === null) this.stop()
  }

  stop(): void {
    this.#isOver = true
    clearTimeout(this.#startLimit)
    for (const each of this.#open) each.destroy()
    this.#events?.destroy()
    this.#end()
  }

  #lost(reason: string): void {
    if (this.#isOver) return
    this.#options.tell({ lost: reason })
    this.stop()
  }

  #openEvents(address: URL): void {
    const url = new URL(this.#http.events, address)
    this.#events = nodeHttp().request(
      url,
      { headers: { ...this.#headers, accept: 'text/event-stream' } },
      (response) => {
        if (response.statusCode !== 200) return this.#lost(`it answered ${response.statusCode} instead of its events`)
        clearTimeout(this.#startLimit)
        this.#readEvents(response)
        this.#options.tell({ listening: true })
        const waiting = this.#waiting ?? []
        this.#waiting = null
        for (const order of waiting) this.#send(order)
      },
    )
    this.#events.on('error', (error) => this.#lost(`its events could not be read: ${error.message}`))
    this.#events.end()
  }

  #readEvents(response: IncomingMessage): void {
    const lines = lineReader(this.#options.limits.lineBytes)
    let held: string[] = []
    let heldChars = 0
    response.on('data', (chunk: Buffer) => {
      for (const { kind, bytes } of lines.push(chunk)) {
        if (kind === 'part') return this.#lost('one of its events is too long')
        const line = Buffer.from(bytes)
          .toString('utf8')
          .replace(/\r?\n$/, '')
        if (line.startsWith('data:')) {
          held.push(line.slice(5).trimStart())
          heldChars += line.length
        }
        if (heldChars > this.#options.limits.lineBytes) return this.#lost('one of its events is too long')
        if (line !== '' || held.length === 0) continue
        this.#options.tell({ event: jsonOr(held.join('\n')) })
        held = []
        heldChars = 0
      }
    })
    // An error is followed by it, too.
    response.on('error', () => {})
    response.on('close', () => this.#lost('its events ended'))
  }

  #send(order: HttpOrder): void {
    if (this.#isOver || this.#address === null) return
    if (this.#open.size >= this.#options.limits.openRequests) return this.#refuse(order, 'too many requests')
    const { id, method, path, body } = order
    const content = body === undefined ? null : JSON.stringify(body)
    const headers = { ...this.#headers, ...(content !== null && { 'content-type': 'application/json' }) }
    const url = new URL(path, this.#address)
    const sent = nodeHttp().request(url, { method, headers, timeout: this.#options.limits.requestMs }, (response) => {
      void this.#answerOf(response).then(
        (answer) => this.#answer(sent, { id, status: response.statusCode ?? 0, body: answer }),
        (error: Error) => this.#answer(sent, { id, status: 0, body: error.message }),
      )
    })
    this.#open.add(sent)
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.on('error', (error) => this.#answer(sent, { id, status: 0, body: error.message }))
    sent.end(content ?? undefined)
  }

  async #answerOf(response: IncomingMessage): Promise<unknown> {
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > this.#options.limits.answerBytes) throw new Error('the answer is too long')
      chunks.push(chunk)
    }
    return bytes === 0 ? null : jsonOr(Buffer.concat(chunks).toString('utf8'))
  }

  /** Answers an order once, whatever happens to its request after that. */
  #answer(sent: ClientRequest, answer: { id: number; status: number; body: unknown }): void {
    if (!this.#open.delete(sent) || this.#isOver) return
    this.#options.tell({ answer })
  }

  #refuse({ id }: HttpOrder, reason: string): void {
    this.#options.tell({ answer: { id, status: 0, body: reason } })
  }
}

function addressIn(line: string): URL | null {
  const found = /\bhttps?:\/\/[^\s"'<>]+/.exec(line)?.[0]
  return found !== undefined && URL.canParse(found) ? new URL(found) : null
}

const isLoopback = ({ protocol, hostname, username }: URL): boolean =>
  protocol === 'http:' && username === '' && /^(127(\.\d{1,3}){3}|localhost|\[::1\])$/.test(hostname)

function jsonOr(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
