import type { DialogueOutput, ToolAsk } from '../adapter.ts'

/** The parts that dialogues in lines of JSON share. */

/** No harness nests what it says like this. */
const maxDepth = 1_000

/**
 * Returns the value of a JSON text. Throws where there is none, and where it is nested so deep that it could be read and not be
 * written again: `JSON.stringify` and others would overflow the stack.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (text.length > 2 * maxDepth && isNestedTooDeep(value)) throw new RangeError('The JSON is nested too deep.')
  return value
}

function isNestedTooDeep(value: unknown): boolean {
  let level = [value].filter(isContainer)
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= maxDepth) return true
    const next: object[] = []
    for (const each of level)
      for (const inner of Array.isArray(each) ? each : Object.values(each)) if (isContainer(inner)) next.push(inner)
    level = next
  }
  return false
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null

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

export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`

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
