import type { IncomingMessage } from 'node:http'
import { outboundErrorOf } from './exchange.ts'
import { OutboundError } from './outbound-error.ts'

// An answer as `fetch` gives it, whose body comes as it is read and ends at a limit.

export interface AnswerOptions {
  url: URL
  isRedirected: boolean
  maxBytes: number
  signal: AbortSignal
  /** Called once, when nothing of the answer is left to come. */
  onEnd: () => void
}

/** Statuses whose answers have no body. */
const bodyless = [204, 205, 304]

/** Fails with OutboundError; the connection is ended then. */
export function answerOf(message: IncomingMessage, options: AnswerOptions): Response {
  const { url, isRedirected } = options
  const status = message.statusCode ?? 0
  // A packed form was not asked for. Inflating it would be work whose size the sender chooses.
  if (!['', 'identity'].includes(message.headers['content-encoding']?.trim().toLowerCase() ?? ''))
    throw new OutboundError('unreachable', `${url.host} answers in a packed form that was not asked for`)
  if (status < 200 || status > 599)
    throw new OutboundError('unreachable', `${url.host} answers with the status ${status}, which does not exist`)
  const body = bodyOf(message, options)
  const answer = new Response(bodyless.includes(status) ? null : body, { status, headers: headersOf(message) })
  if (answer.body === null) void body.cancel()
  return Object.defineProperties(answer, { url: { value: url.href }, redirected: { value: isRedirected } })
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!)
  return headers
}

const aheadBytes = 64 * 1024

function bodyOf(message: IncomingMessage, { url, maxBytes, signal, onEnd }: AnswerOptions) {
  let size = 0
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        message.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > maxBytes)
            return void message.destroy(new OutboundError('too_large', `the answer of ${url.host} is too large`))
          controller.enqueue(new Uint8Array(chunk))
          if ((controller.desiredSize ?? 0) <= 0) message.pause()
        })
        message.once('end', () => {
          onEnd()
          controller.close()
        })
        message.on('error', (error) => {
          onEnd()
          controller.error(error instanceof OutboundError ? error : outboundErrorOf(error, url.host, signal))
        })
        message.pause()
      },
      pull: () => void message.resume(),
      cancel() {
        message.removeAllListeners().on('error', () => {})
        message.destroy()
        onEnd()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: aheadBytes }),
  )
}
