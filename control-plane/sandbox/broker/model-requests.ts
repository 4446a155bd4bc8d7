import type { IncomingMessage, ServerResponse } from 'node:http'
import type { NetworkDecision } from '../../../shared/runs/network.ts'
import { forward, isPacked, type ForwardLimits, type ForwardOptions } from './forward.ts'
import { KeyGuard } from './key-guard.ts'
import { addressOf, headersFrom, headersTo } from './model-services.ts'
import type { Permit } from './permits.ts'

export interface ModelLimits extends ForwardLimits {
  /** The requests of one sandbox that may be open at once. */
  open: number
}

export const modelLimits: ModelLimits = {
  sentBytes: 64 * 1024 * 1024,
  answerBytes: 256 * 1024 * 1024,
  timeMs: 30 * 60_000,
  connectMs: 30_000,
  open: 32,
}

export interface ModelRequestsOptions extends ForwardOptions {
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
      const { value } = model.key
      return await forward(
        { request, response },
        {
          url,
          headers: headersTo(url, request, model.key),
          hasBody: method !== 'GET',
          whom: 'the model',
          headOf: (answer) =>
            whyNot(answer) ?? headersFrom(answer, value) ?? 'The provider told the key in its answer.',
          guards: [new KeyGuard(value, limits.answerBytes)],
          end,
        },
        this.options,
      )
    } finally {
      this.open--
    }
  }
}

/** A provider that sends elsewhere is not followed: whoever it names would be told the key. */
function whyNot(answer: IncomingMessage): string | null {
  const { statusCode = 0 } = answer
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) return 'The provider sends to another address.'
  return isPacked(answer) ? 'The provider answers in a packed form that was not asked for.' : null
}

function refuse(response: ServerResponse, status: number, message: string): 'refused' {
  end(response, status, message)
  return 'refused'
}

/** Answers in the form in which both providers tell errors, so that a harness shows the words. */
function end(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.destroy()
  const body = JSON.stringify({ type: 'error', error: { type: 'broker_error', code: 'broker_error', message } })
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(body)
}
