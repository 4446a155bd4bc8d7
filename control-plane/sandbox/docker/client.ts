import { request, type IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { EngineError } from '../engine.ts'

/** Where the engine listens: a unix socket, as `unix:///run/docker.sock`. */
export interface DockerClientOptions {
  socket: string
  /** A call that takes longer is given up. */
  timeoutMs: number
}

interface Call {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  query?: Readonly<Record<string, string>>
  body?: unknown
  timeoutMs?: number
}

export interface Reply {
  status: number
  body: Buffer
}

/** More of an answer is not read. */
const mostBytes = 16 * 1024 * 1024
/** The newest version of the API that this client was written for: 1.41. */
const newestMinor = 41

/** Asks a Docker engine, or what speaks its API as Podman does, over its socket. */
export class DockerClient {
  private readonly options: DockerClientOptions
  private version: string | null = null

  constructor(options: DockerClientOptions) {
    this.options = options
  }

  /** The lower one of the engine's version and ours: old engines know no new ones, and new ones refuse old ones. */
  async versioned(): Promise<string> {
    if (this.version !== null) return this.version
    const { status, body } = await this.send({ method: 'GET', path: '/version' })
    const said = status === 200 ? /"ApiVersion"\s*:\s*"1\.(\d{1,3})"/.exec(body.toString('utf8')) : null
    if (said === null) throw new EngineError(`${this.options.socket} does not answer as a Docker engine does.`)
    return (this.version = `v1.${Math.min(Number(said[1]), newestMinor)}`)
  }

  /** Resolves with the answer, whatever its status. */
  async call(call: Call): Promise<Reply> {
    const version = await this.versioned()
    return this.send({ ...call, path: `/${version}${call.path}` })
  }

  /** The answer by its shape. Fails unless the status is one of `ok`. */
  async read<Shape extends z.ZodType>(call: Call, shape: Shape): Promise<z.output<Shape>> {
    const reply = await this.call(call)
    if (reply.status !== 200 && reply.status !== 201) throw refusal(call, reply)
    const parsed = shape.safeParse(parseJson(reply.body))
    if (!parsed.success)
      throw new EngineError(`The engine answered ${call.method} ${call.path} with what cannot be read.`)
    return parsed.data
  }

  /** Does it, where one of these statuses says that it is done. */
  async does(call: Call, done: readonly number[]): Promise<number> {
    const reply = await this.call(call)
    if (!done.includes(reply.status)) throw refusal(call, reply)
    return reply.status
  }

  /** Calls `line` for each line of an answer that has no end, until the engine hangs up or the signal is aborted. */
  async follow(call: Call, line: (text: string) => void, signal: AbortSignal): Promise<void> {
    const version = await this.versioned()
    const answer = await this.open({ ...call, path: `/${version}${call.path}` }, signal)
    if (answer.statusCode !== 200) throw new EngineError(`The engine answered its events with ${answer.statusCode}.`)
    let rest = ''
    for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n')
      rest = (lines.pop() ?? '').slice(-65_536)
      for (const each of lines) if (each !== '') line(each)
    }
  }

  private async send(call: Call): Promise<Reply> {
    const signal = AbortSignal.timeout(call.timeoutMs ?? this.options.timeoutMs)
    try {
      const answer = await this.open(call, signal)
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > mostBytes) throw new EngineError(`The engine answered ${call.method} ${call.path} with too much.`)
        chunks.push(chunk)
      }
      return { status: answer.statusCode ?? 0, body: Buffer.concat(chunks) }
    } catch (error) {
      if (error instanceof EngineError) throw error
      const why = signal.aborted ? 'does not answer in time' : `cannot be reached (${(error as Error).message})`
      throw new EngineError(`The engine at ${this.options.socket} ${why}.`, { cause: error })
    }
  }

  private open({ method, path, query = {}, body }: Call, signal: AbortSignal): Promise<IncomingMessage> {
    const search = new URLSearchParams(query).toString()
    const json = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const asked = request({
        socketPath: this.options.socket,
        method,
        path: search === '' ? path : `${path}?${search}`,
        // A socket that is kept may be closed by the engine at the moment of the next call.
        agent: false,
        signal,
        headers: {
          host: 'engine',
          ...(json !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }),
        },
      })
      asked.once('error', reject)
      asked.once('response', resolve)
      asked.end(json)
    })
  }
}

/** undefined: it is none. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

/** In the engine's own words, as far as they are words. */
export function refusal({ method, path }: Call, { status, body }: Reply): EngineError {
  const said = parseJson(body) as { message?: unknown } | undefined
  const words = typeof said?.message === 'string' ? said.message.slice(0, 500) : `status ${status}`
  return new EngineError(`The engine refused ${method} ${path}: ${words}`, { isRefusal: status >= 400 && status < 500 })
}
