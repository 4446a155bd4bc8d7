import { parseNested } from '../../../shared/lib/storable.ts'
import type { DialogueOutput, ToolAsk } from '../adapter.ts'

// The parts that dialogues in lines of JSON share.

/** No harness nests what it says like this. */
const maxDepth = 1_000

/** Returns the value of a JSON text. Throws where there is none, and where it is nested too deep to be written again. */
export const parseJson = (text: string): unknown => parseNested(text, maxDepth)

/** The object on a line; null when the line is anything else. */
export function jsonObject(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const value = parseJson(Buffer.from(bytes).toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

export function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x0a || byte === 0x0d || byte === 0x20)
}

/**
 * A JSON value as one line for whoever reads it: the `readline` of Node and Bun also ends a line at U+2028 and U+2029, which
 * `JSON.stringify` leaves as they are.
 */
export const jsonLine = (value: unknown): string =>
  `${JSON.stringify(value).replaceAll(/[\u2028\u2029]/g, (char) => (char === '\u2028' ? '\\u2028' : '\\u2029'))}\n`

/** Joins what several lines led to, in their order. */
export function joined(outputs: readonly DialogueOutput[]): DialogueOutput {
  const asks: ToolAsk[] = outputs.flatMap((output) => output.asks ?? [])
  const write = outputs.map((output) => output.write ?? '').join('')
  return {
    events: outputs.flatMap((output) => output.events),
    ...(write !== '' && { write }),
    ...(outputs.some((output) => output.finished) && { finished: true }),
    ...(outputs.some((output) => output.endNow) && { endNow: true }),
    ...(outputs.some((output) => output.closeInput) && { closeInput: true }),
    ...(asks.length > 0 && { asks }),
  }
}
