import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { pipeline, type Readable, type Transform } from 'node:stream'
import type { World } from '../../../shared/lib/world.ts'
import type { NetworkDecision } from '../../../shared/runs/network.ts'
import type { Outbound } from '../../outbound/outbound.ts'
import { OutboundError } from '../../outbound/outbound-error.ts'
import type { Log } from '../../process/log.ts'
import { Counted } from './counted.ts'

// Hands a request of a sandbox on to an address outside, with headers of ours.

export interface ForwardLimits {
  /** The bytes of one request, and of its answer (`answerBytes`). */
  sentBytes: number
  answerBytes: number
  /** The time from a request to the end of its answer. */
  timeMs: number
  /** The time within which the host must be reached. */
  connectMs: number
}

export interface ForwardOptions {
  world: World
  outbound: Pick<Outbound, 'send'>
  log: Log
  limits: ForwardLimits
}

export interface BrokerRequest {
  request: IncomingMessage
  response: ServerResponse
}

export interface Forwarded {
  url: URL
  headers: OutgoingHttpHeaders
  hasBody: boolean
  /** The name of the host in sentences: `the model`. */
  whom: string
  /** The head that the sandbox gets, or a sentence that says why it gets nothing. */
  headOf: (answer: IncomingMessage) => OutgoingHttpHeaders | string
  /** Answers in place of the host, and says what became of the request; null: the sandbox gets the host's answer. */
  instead?: (answer: IncomingMessage) => Promise<NetworkDecision | null>
  /** Streams that end the body where it holds what must not come in, or take that out. */
  guards: readonly Transform[]
  /** The same for the body of the request, which ends with their error. */
  sentGuards?: readonly Transform[]
  /** Ends the request at any time. */
  signal?: AbortSignal
  /** Answers with a sentence. */
  end: (response: ServerResponse, status: number, message: string) => void
}

/** The reason for which a request goes no further, in a sentence for the sandbox. */
export class ForwardRefusal extends Error {
  override name = 'ForwardRefusal'
}

/** Resolves when the answer has ended, with what became of it. */
export async function forward(
  { request, response }: BrokerRequest,
  { url, headers, hasBody, whom, instead, headOf, guards, sentGuards = [], signal, end }: Forwarded,
  { world, outbound, log, limits }: ForwardOptions,
): Promise<NetworkDecision> {
  const ending = new AbortController()
  const cancel = world.after(limits.timeMs, () =>
    ending.abort(new OutboundError('timed_out', `the answer of ${whom} took too long`)),
  )
  const onConnected = world.after(limits.connectMs, () =>
    ending.abort(new OutboundError('timed_out', `${url.host} could not be reached in time`)),
  )
  response.once('close', () => ending.abort(new Error('the sandbox left')))
  const leave = () => ending.abort(signal?.reason)
  if (signal?.aborted === true) leave()
  signal?.addEventListener('abort', leave, { once: true })
  const { method = 'GET' } = request
  const parts = hasBody ? [new Counted(limits.sentBytes), ...sentGuards] : []
  for (const part of parts) part.once('error', (error) => ending.abort(error))
  const body = parts.length === 0 ? null : parts.reduce<Readable>((from, part) => from.pipe(part), request)
  const length = request.headers['content-length']
  try {
    const sent = { ...headers, ...(body && length !== undefined && { 'content-length': length }) }
    const answer = await outbound.send(url, { method, headers: sent, body, onConnected }, ending.signal)
    const decision = (await instead?.(answer)) ?? null
    if (decision !== null) {
      answer.destroy()
      return decision
    }
    const head = headOf(answer)
    if (typeof head === 'string') {
      answer.destroy()
      end(response, 502, head)
      return 'failed'
    }
    response.writeHead(answer.statusCode ?? 502, head)
    return await new Promise<NetworkDecision>((resolve) => {
      // Flushed headers let each event arrive at once.
      response.flushHeaders()
      pipeline([answer, ...guards, response], (error) => {
        if (error) log.debug({ err: error, host: url.host }, 'an answer to a sandbox broke off')
        resolve(error ? 'failed' : 'allowed')
      })
    })
  } catch (error) {
    if (error instanceof ForwardRefusal) {
      end(response, 403, error.message)
      return 'refused'
    }
    const why = error instanceof OutboundError ? error : null
    if (why === null && !ending.signal.aborted) log.warn({ err: error, host: url.host }, 'a host could not be asked')
    const message = `${whom[0]!.toUpperCase()}${whom.slice(1)} could not be asked: ${why?.message ?? 'the request broke off'}.`
    const isTooLarge = why?.reason === 'too_large'
    end(response, isTooLarge ? 413 : 502, message)
    return isTooLarge || why?.reason === 'refused_address' || why?.reason === 'not_https' ? 'refused' : 'failed'
  } finally {
    cancel()
    onConnected()
    signal?.removeEventListener('abort', leave)
    for (const part of parts) part.destroy()
  }
}

/** A packed answer could hold a secret unseen. */
export function isPacked({ headers }: IncomingMessage): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  return !['', 'identity'].includes(encoding)
}
