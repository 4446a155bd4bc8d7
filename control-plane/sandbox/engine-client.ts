import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { z } from 'zod'
import { EngineError } from './engine.ts'

export interface EngineClientOptions {
  /** The place of the engine, as people are told it. */
  name: string
  /** Returns how the engine is connected to, looked at anew for each call: tokens are rotated. */
  connection: () => Omit<RequestOptions, 'headers'> & {
    isEncrypted?: boolean
    ca?: string
    headers: Readonly<Record<string, string>>
  }
  /** A call that takes longer is given up. */
  timeoutMs: number
}

export interface EngineCall {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  query?: Readonly<Record<string, string>>
  body?: unknown
  /** The media type of the body. */
  type?: string
  timeoutMs?: number
}

export interface EngineReply {
  status: number
  body: Buffer
}

/** The bytes that are read of an answer at most. */
const mostBytes = 16 * 1024 * 1024

/** Asks what runs containers, by HTTP and JSON. */
export class EngineClient {
  protected readonly options: EngineClientOptions

  constructor(options: EngineClientOptions) {
    this.options = options
  }

  /** Resolves with the answer, whatever its status. */
  async call(call: EngineCall): Promise<EngineReply> {
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
      throw new EngineError(`The engine at ${this.options.name} ${why}.`, { cause: error })
    }
  }

  /** The answer by its shape. Fails unless the status is one of success. */
  async read<Shape extends z.ZodType>(call: EngineCall, shape: Shape): Promise<z.output<Shape>> {
    const reply = await this.call(call)
    if (reply.status !== 200 && reply.status !== 201) throw this.refusal(call, reply)
    return this.parsed(call, reply, shape)
  }

  parsed<Shape extends z.ZodType>(call: EngineCall, { body }: EngineReply, shape: Shape): z.output<Shape> {
    const parsed = shape.safeParse(jsonOrUndefined(body))
    if (!parsed.success)
      throw new EngineError(`The engine answered ${call.method} ${call.path} with what cannot be read.`)
    return parsed.data
  }

  /** Does it, where one of these statuses says that it is done. */
  async does(call: EngineCall, done: readonly number[]): Promise<number> {
    const reply = await this.call(call)
    if (!done.includes(reply.status)) throw this.refusal(call, reply)
    return reply.status
  }

  /** Calls `line` for each line of an answer that has no end, until the engine hangs up or the signal is aborted. */
  async follow(call: EngineCall, line: (text: string) => void, signal: AbortSignal): Promise<void> {
    const answer = await this.open(call, signal)
    if (answer.statusCode !== 200) {
      answer.destroy()
      throw new EngineError(`The engine answered its events with ${answer.statusCode}.`)
    }
    let rest = ''
    for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n')
      rest = (lines.pop() ?? '').slice(-65_536)
      for (const each of lines) if (each !== '') line(each)
    }
  }

  /** Makes an error of a refusal, in the engine's own words, as far as they are words. */
  refusal({ method, path }: EngineCall, { status, body }: EngineReply): EngineError {
    const said = jsonOrUndefined(body) as { message?: unknown } | undefined
    const words = typeof said?.message === 'string' ? said.message.slice(0, 500) : `status ${status}`
    return new EngineError(`The engine refused ${method} ${path}: ${words}`, { isRefusal: this.isFinal(status, words) })
  }

  /** Tells whether asking again does not help. */
  protected isFinal(status: number, _words: string): boolean {
    return status >= 400 && status < 500
  }

  protected open({ method, path, query = {}, body, type }: EngineCall, signal: AbortSignal): Promise<IncomingMessage> {
    const search = new URLSearchParams(query).toString()
    const json = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const { isEncrypted = false, headers, ...where } = this.options.connection()
      const asked = (isEncrypted ? requestHttps : requestHttp)({
        ...where,
        method,
        path: search === '' ? path : `${path}?${search}`,
        // A connection that is kept may be closed by the engine at the moment of the next call.
        agent: false,
        signal,
        headers: {
          ...headers,
          ...(json !== undefined && {
            'content-type': type ?? 'application/json',
            'content-length': Buffer.byteLength(json),
          }),
        },
      })
      asked.once('error', reject)
      asked.once('response', resolve)
      asked.end(json)
    })
  }
}

/** Parses JSON; undefined: the body is none. */
export function jsonOrUndefined(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
