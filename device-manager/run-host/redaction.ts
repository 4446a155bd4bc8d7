import type { RunEventBody } from '../../shared/runs/events.ts'

const maxDepth = 100

/**
 * Every string of an event, and every key, without secrets. A structured harness's events are redacted after they were
 * parsed and not as bytes before: a secret that holds a quote would break the line it is found in, and a tool's input
 * must go back to the harness as it was when the gate allows the call.
 */
export function redactBody(body: RunEventBody, redactText: (text: string) => string): RunEventBody {
  return { kind: body.kind, data: redactValue(body.data, redactText, 0) } as RunEventBody
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
