import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RedactText } from '../adapter.ts'
import { cappedInput, cappedText, textPieces } from '../parts/event-pieces.ts'
import type { NamedCall } from './calls.ts'
import { wordsPart, type ToolPart } from './wire.ts'

/** The parts of messages as events of a run. */

interface OfCall {
  toolCallId: string
  parentToolCallId?: string
}

export function callEvent(of: OfCall, { name, input }: NamedCall, redactText: RedactText): RunEventBody {
  return { kind: 'tool_call', data: { ...of, name, input: cappedInput(input, redactText) } }
}

export function resultEvent(of: OfCall, { state }: ToolPart, redactText: RedactText): RunEventBody {
  const isError = state.status === 'error'
  const { text, ...cut } = cappedText((isError ? state.error : state.output) ?? '', redactText)
  return { kind: 'tool_result', data: { ...of, isError, output: text, ...cut } }
}

/** Returns what the agent says and thinks, once a part is whole; null: it is not, or opencode wrote it itself. */
export function wordsOf(part: { type: string }): string | null {
  const parsed = wordsPart.safeParse(part)
  return parsed.success && parsed.data.time?.end != null && parsed.data.synthetic !== true ? parsed.data.text : null
}

export function wordEvents(
  kind: 'text' | 'thinking',
  { text, parent }: { text: string; parent: { parentToolCallId?: string } },
  redactText: RedactText,
): RunEventBody[] {
  return textPieces(text, redactText).map((piece) => ({ kind, data: { text: piece, ...parent } }))
}
