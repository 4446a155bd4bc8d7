import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { World } from '../../../shared/lib/world.ts'
import type { NetworkDecision } from '../../../shared/runs/network.ts'
import type { Outbound } from '../../outbound/outbound.ts'
import { OutboundError } from '../../outbound/outbound-error.ts'
import type { Log } from '../../process/log.ts'
import { Counted } from './counted.ts'
import { KeyGuard } from './key-guard.ts'
import { addressOf, headersFrom, headersTo } from './model-services.ts'
import type { Permit } from './permits.ts'

export interface ModelLimits {
  /** Of one request, and of its answer. */
  sentBytes: number
  answerBytes: number
  /** From a request to the end of its answer. */
  timeMs: number
  /** Of one sandbox at once. */
  open: number
}

export const modelLimits: ModelLimits = {
  sentBytes: 64 * 1024 * 1024,
  answerBytes: 256 * 1024 * 1024,
  timeMs: 30 * 60_000,
  open: 32,
}

export interface ModelRequestsOptions {
  world: World
  outbound: Pick<Outbound, 'send'>
  log: Log
  limits: ModelLimits
}

/** Hands requests for a model on to its provider with the key, which stays out here. */
export class ModelRequests {
  private readonly options: ModelRequestsOptions
  private open = 0

  constructor(options: ModelRequestsOptions) {
    this.options = options
  }

  /** Resolves when the answer has ended, with what became of it. `target`: what stands behind the path of the provider. */
  async pass(
    { request, response, target }: { request: IncomingMessage; response: ServerResponse; target: string },
    model: NonNullable<Permit['model']>,
  ): Promise<NetworkDecision> {
    const { limits } = this.options
    const { method = '' } = request
    const url = addressOf(model, { method, target })
    if (url === null) return refuse(response, 403, 'The broker of this sandbox lets models through, and not this.')
    if (model.key === null) return refuse(response, 403, 'The key of this run was taken away, or cannot be used.')
    if (Number(request.headers['content-length'] ?? 0) > limits.sentBytes)
      return refuse(response, 413, 'The request is larger than the broker of this sandbox takes.')
    if (this.open >= limits.open) return refuse(response, 429, 'Too many requests for models are open at once.')
    this.open++
    try {
      return await this.exchange({ request, response }, { url, key: model.key })
    } finally {
      this.open--
    }
  }

  private async exchange(
    { request, response }: { request: IncomingMessage; response: ServerResponse },
    { url, key }: { url: URL; key: NonNullable<NonNullable<Permit['model']>['key']> },
  ): Promise<NetworkDecision> {
    const { world, outbound, log, limits } = this.options
    const ending = new AbortController()
    const cancel = world.after(limits.timeMs, () =>
      ending.abort(new OutboundError('timed_out', 'the answer of the model took too long')),
    )
    response.once('close', () => ending.abort(new Error('the sandbox left')))
    const { method = 'GET' } = request
    const body = method === 'GET' ? null : request.pipe(new Counted(limits.sentBytes))
    body?.once('error', (error) => ending.abort(error))
    const length = request.headers['content-length']
    try {
      const headers = {
        ...headersTo(url, request, key),
        ...(body && length !== undefined && { 'content-length': length }),
      }
      const answer = await outbound.send(url, { method, headers, body }, ending.signal)
      const told = headersFrom(answer, key.value)
      const trouble = whyNot(answer) ?? (told === null ? 'The provider told the key in its answer.' : null)
      if (trouble !== null) {
        answer.destroy()
        return fail(response, trouble)
      }
      response.writeHead(answer.statusCode ?? 502, told!)
      return await new Promise<NetworkDecision>((resolve) => {
        // Each event is there at once.
        response.flushHeaders()
        pipeline(answer, new KeyGuard(key.value, limits.answerBytes), response, (error) => {
          if (error) log.debug({ err: error, host: url.host }, 'the answer of a model broke off')
          resolve(error ? 'failed' : 'allowed')
        })
      })
    } catch (error) {
      const why = error instanceof OutboundError ? error : null
      if (why === null && !ending.signal.aborted) log.warn({ err: error }, 'a model could not be asked')
      const message = `The model could not be asked: ${why?.message ?? 'the request broke off'}.`
      if (why?.reason === 'too_large') return refuse(response, 413, message)
      fail(response, message)
      return why?.reason === 'refused_address' || why?.reason === 'not_https' ? 'refused' : 'failed'
    } finally {
      cancel()
      body?.destroy()
    }
  }
}

/** A provider that sends elsewhere is not followed: whoever it names would be told the key. */
function whyNot({ statusCode = 0, headers }: IncomingMessage): string | null {
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) return 'The provider sends to another address.'
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  return ['', 'identity'].includes(encoding) ? null : 'The provider answers in a packed form that was not asked for.'
}

function refuse(response: ServerResponse, status: number, message: string): 'refused' {
  end(response, status, message)
  return 'refused'
}

function fail(response: ServerResponse, message: string): 'failed' {
  end(response, 502, message)
  return 'failed'
}

/** As both providers tell errors, so that a harness shows the words. */
function end(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.destroy()
  const body = JSON.stringify({ type: 'error', error: { type: 'broker_error', code: 'broker_error', message } })
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(body)
}
