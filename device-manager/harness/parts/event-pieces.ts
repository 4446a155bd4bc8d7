import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { NamedCall, RedactStream, RedactText } from '../adapter.ts'
import { cutBytes, cutText, outputOf } from './utf8.ts'

/** One event holds at most this much output, so that rows and frames stay small whatever a harness writes at once. */
export const maxPieceBytes = 64 * 1024

export const asItIs: RedactText = (text) => text
const nothing = new Uint8Array()
export const streamAsItIs = (): RedactStream => ({
  push: (bytes) => bytes,
  release: () => nothing,
  flush: () => nothing,
})

/** Bytes that no parser understood, as `raw` events of bounded size. */
export function rawEvents(
  bytes: Uint8Array,
  stream: 'stdout' | 'stderr' | 'pty',
  redactText: RedactText,
): RunEventBody[] {
  const whole = bytes.length > maxPieceBytes ? redactedBytes(bytes, redactText) : bytes
  return bytePieces(whole).map((piece) => ({ kind: 'raw', data: { ...outputOf(piece), stream } }))
}

/** Leaves bytes that are no text to the run host, which looks into each piece. */
function redactedBytes(bytes: Uint8Array, redactText: RedactText): Uint8Array {
  const output = outputOf(bytes)
  return 'text' in output ? Buffer.from(redactText(output.text), 'utf8') : bytes
}

/** Cut where no character is cut in two; together the pieces are the bytes. */
export function bytePieces(bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let rest = bytes; rest.length > 0;) {
    const piece = cutBytes(rest, maxPieceBytes)
    pieces.push(piece)
    rest = rest.subarray(piece.length)
  }
  return pieces
}

/** The text in pieces; together they are the text, without secrets where it was cut. An empty text has no piece. */
function textPieces(text: string, redactText: RedactText): string[] {
  if (text === '') return []
  if (text.length * 3 <= maxPieceBytes) return [text]
  return bytePieces(Buffer.from(redactText(text), 'utf8')).map((piece) => Buffer.from(piece).toString('utf8'))
}

/** A text that must stay one piece, cut to the limit. */
export function cappedText(text: string, redactText: RedactText): { text: string; truncatedBytes?: number } {
  if (text.length * 3 <= maxPieceBytes) return { text }
  const cut = cutText(redactText(text), maxPieceBytes)
  return cut.truncatedBytes === 0 ? { text } : cut
}

/** Which call an event is about, and the call that started the subagent it comes from. */
interface OfCall {
  toolCallId: string
  parentToolCallId?: string
}

/** What the agent says or thinks. */
export function wordEvents(
  kind: 'text' | 'thinking',
  { text, parent }: { text: string; parent?: Pick<OfCall, 'parentToolCallId'> },
  redactText: RedactText,
): RunEventBody[] {
  return textPieces(text, redactText).map((piece) => ({ kind, data: { text: piece, ...parent } }))
}

export function callEvent(of: OfCall, { name, input }: NamedCall, redactText: RedactText): RunEventBody {
  return { kind: 'tool_call', data: { ...of, name, input: cappedInput(input, redactText) } }
}

/** How a call ended. */
export function resultEvent(
  { output, ...of }: OfCall & { isError: boolean; output: string },
  redactText: RedactText,
): RunEventBody {
  const { text, ...cut } = cappedText(output, redactText)
  return { kind: 'tool_result', data: { ...of, output: text, ...cut } }
}

/** Input beyond this is cut in the event; the whole of it is judged. */
const maxInputBytes = 1024 * 1024

/** A tool's input for its event. */
function cappedInput(input: unknown, redactText: RedactText): unknown {
  const json = JSON.stringify(input) ?? 'null'
  if (json.length * 3 <= maxInputBytes || Buffer.byteLength(json) <= maxInputBytes) return input ?? null
  const { text, truncatedBytes } = cutText(redactText(json), maxPieceBytes)
  return { truncatedJson: text, truncatedBytes }
}
