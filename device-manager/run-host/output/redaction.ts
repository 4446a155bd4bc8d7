import { maskOwnTokens, beforeToken, maxTokenChars, mayHoldToken, openToken } from '../../../shared/lib/own-tokens.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'

const nothing = new Uint8Array(0)

/** Masks tokens of this service in bytes that come in any cuts; it holds back only what may be or become one. */
export class OwnTokenMask {
  #held: Buffer = Buffer.alloc(0)
  /** The number of held bytes that were released. */
  #shown = 0

  push(chunk: Uint8Array): Uint8Array {
    if (chunk.length === 0) return chunk
    const bytes = Buffer.concat([this.#held, chunk])
    const tail = bytes.toString('latin1', Math.max(0, bytes.length - maxTokenChars))
    const open = openToken.exec(tail)?.[0].length ?? 0
    return this.#take(bytes, bytes.length - open)
  }

  flush(): Uint8Array {
    return this.#take(this.#held, this.#held.length)
  }

  /** Returns what is held back and has nothing of a token yet but what all of them begin with. */
  release(): Uint8Array {
    if (!beforeToken.test(this.#held.toString('latin1'))) return nothing
    const rest = this.#held.subarray(this.#shown)
    this.#shown = this.#held.length
    return rest
  }

  get isHolding(): boolean {
    return this.#held.length > this.#shown
  }

  /** Returns the first bytes and holds the others. */
  #take(bytes: Buffer, safe: number): Uint8Array {
    const shown = bytes.subarray(0, Math.min(this.#shown, safe))
    this.#shown -= shown.length
    this.#held = bytes.subarray(safe)
    const rest = masked(bytes.subarray(0, safe))
    // Else the released bytes became a token, whose name stands in their place.
    return rest.subarray(0, shown.length).equals(shown) ? rest.subarray(shown.length) : rest
  }
}

function masked(bytes: Buffer): Buffer {
  return mayHoldToken(bytes) ? Buffer.from(maskOwnTokens(bytes.toString('latin1')), 'latin1') : bytes
}

const maxDepth = 100

/**
 * Returns the event with every string and every key without secrets. A structured harness's events are redacted after they were
 * parsed and not as bytes before: a secret that holds a quote would break the line it is found in, and a tool's input
 * must go back to the harness as it was when the call is allowed.
 */
export function redactBody(body: RunEventBody, redact: Redact): RunEventBody {
  if ((body.kind === 'raw' || body.kind === 'text') && body.data.base64 !== undefined) {
    const bytes = redact.bytes(Buffer.from(body.data.base64, 'base64'))
    return { kind: body.kind, data: { ...body.data, base64: Buffer.from(bytes).toString('base64') } } as RunEventBody
  }
  if (body.kind === 'permission' && body.data.ask !== undefined) {
    // The ask is made without secrets (permission/call-judge.ts) and within limits: its digest must not be taken for a secret.
    const { ask, ...rest } = body.data
    return { kind: body.kind, data: { ...(redactValue(rest, redact.text, 0) as typeof rest), ask } }
  }
  return { kind: body.kind, data: redactValue(body.data, redact.text, 0) } as RunEventBody
}

export interface Redact {
  text: (text: string) => string
  /** Redacts bytes that are no text: base64 of them would hide a secret, and replacing in it would spoil the rest. */
  bytes: (bytes: Uint8Array) => Uint8Array
}

/** Returns the redactor of all that a start tells the run, whose values may not leave the machine. */
export function redactorOfStart(start: GivenToRun | null): Redactor {
  const given: Record<string, string> = start === null ? {} : { SVC_TOKEN: start.token, ...start.secrets }
  return new Redactor(Object.entries(given).map(([name, value]) => ({ name, value })))
}

interface GivenToRun {
  token: string
  secrets: Readonly<Record<string, string>>
}

/** Redacts whole values by a start; before one, only tokens of ours. */
export const redactOfStart = (start: GivenToRun | null): Redact => wholeValues(redactorOfStart(start))

/** Redacts whole values, beside the stream. */
export function wholeValues(redactor: Redactor): Redact {
  return {
    text: (text) => maskOwnTokens(redactor.redactText(text)),
    bytes(bytes) {
      const stream = streamRedactor(redactor)
      return Buffer.concat([stream.push(bytes), stream.flush()])
    },
  }
}

/** Redaction of a stream of bytes: the values of the run's secrets, and tokens of ours by their form. */
export interface StreamRedactor {
  push(chunk: Uint8Array): Uint8Array
  /** Returns what is held back and can be shown when nothing more came for a while. */
  release(): Uint8Array
  readonly isHolding: boolean
  /** Returns what is still held back, at the end. */
  flush(): Uint8Array
}
/** Redacts a stream by the secrets of `of`, whose own stream is not touched. */
export function streamRedactor(of: Redactor): StreamRedactor {
  const redactor = of.another()
  const tokens = new OwnTokenMask()
  return {
    push: (chunk) => tokens.push(redactor.push(chunk)),
    release: () => Buffer.concat([tokens.push(redactor.release()), tokens.release()]),
    get isHolding() {
      return redactor.isHolding || tokens.isHolding
    },
    flush: () => Buffer.concat([tokens.push(redactor.flush()), tokens.flush()]),
  }
}

/** Redacts every string of any value that is sent on: a file that a harness wrote is in the change-set. */
export function redactWhole<Value>(value: Value, redact: Redact): Value {
  return redactValue(value, redact.text, 0) as Value
}

function redactValue(value: unknown, redactText: (text: string) => string, depth: number): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null) return value
  // A value that deep cannot be written as JSON, and nobody reads it.
  if (depth >= maxDepth) return '[nested too deep]'
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redactText, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redactText(key), redactValue(item, redactText, depth + 1)]),
  )
}
