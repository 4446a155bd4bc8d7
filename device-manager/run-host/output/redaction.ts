import { maskOwnTokens } from '../../../shared/lib/own-tokens.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { OwnTokenMask } from './token-mask.ts'

const maxDepth = 100

/**
 * Every string of an event, and every key, without secrets. A structured harness's events are redacted after they were
 * parsed and not as bytes before: a secret that holds a quote would break the line it is found in, and a tool's input
 * must go back to the harness as it was when the call is allowed.
 */
export function redactBody(body: RunEventBody, redact: Redact): RunEventBody {
  if ((body.kind === 'raw' || body.kind === 'text') && body.data.base64 !== undefined) {
    const bytes = redact.bytes(Buffer.from(body.data.base64, 'base64'))
    return { kind: body.kind, data: { ...body.data, base64: Buffer.from(bytes).toString('base64') } } as RunEventBody
  }
  if (body.kind === 'permission' && body.data.ask !== undefined) {
    // Made without secrets (permission/call-judge.ts), and within limits: its digest must not be taken for one.
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

/** All that a start tells the run, whose values may not leave the machine. */
export function redactorOfStart(start: GivenToRun | null): Redactor {
  const given: Record<string, string> = start === null ? {} : { SVC_TOKEN: start.token, ...start.secrets }
  return new Redactor(Object.entries(given).map(([name, value]) => ({ name, value })))
}

export interface GivenToRun {
  token: string
  secrets: Readonly<Record<string, string>>
}

/** Redaction of whole values by a start; before one, of tokens of ours alone. */
export const redactOfStart = (start: GivenToRun | null): Redact => wholeValues(redactorOfStart(start))

/** Redaction of whole values, beside the stream. */
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
/** `of`: its secrets, not its stream. */
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

/** The same for any value that is sent on: what a harness wrote into a file is in the change-set. */
export function redactWhole<Value>(value: Value, redact: Redact): Value {
  return redactValue(value, redact.text, 0) as Value
}

function redactValue(value: unknown, redactText: (text: string) => string, depth: number): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null) return value
  // JSON cannot be written that deep, and nobody reads it.
  if (depth >= maxDepth) return '[nested too deep]'
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redactText, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redactText(key), redactValue(item, redactText, depth + 1)]),
  )
}
