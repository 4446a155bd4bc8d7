import type { IncomingMessage } from 'node:http'

/** A body that is sent while it is read. */
export interface StreamedBody {
  /** null: not known before its end. */
  length: number | null
  /** Whether it can be read once more; standard input cannot. */
  isRepeatable: boolean
  read(): AsyncIterable<Uint8Array>
}

export interface ApiCall {
  method: string
  /** From the root of the server, with parameters filled in; may contain a query. */
  path: string
  query?: Readonly<Record<string, unknown>> | undefined
  /** JSON, unless `bytes` or `streamed` is given. */
  body?: unknown
  bytes?: Buffer
  streamed?: StreamedBody
  headers?: Readonly<Record<string, string>>
  /** Sends an Idempotency-Key with the write, so that it may be retried. */
  isKeyed?: boolean
  /** The answer may be text instead of JSON. */
  mayBeText?: boolean
}

export interface ApiReply {
  status: number
  headers: IncomingMessage['headers']
  text: string
  /** Undefined when the answer is empty or not JSON. */
  body: unknown
}
