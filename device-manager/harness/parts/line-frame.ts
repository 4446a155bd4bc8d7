import type { RunEventBody } from '../../../shared/runs/events.ts'
import { lineReader, type Piece } from '../../../shared/lib/lines.ts'
import type { DialogueOutput, HarnessDialogue, RedactText } from '../adapter.ts'
import { maxPieceBytes, rawEvents } from './event-pieces.ts'
import { isBlank, joined, jsonObject } from './json-lines.ts'

/** A line can hold the output of a tool; one longer than this is kept raw and the next one read again. */
const maxLineBytes = 32 * 1024 * 1024
const stderrTailChars = 4_096

/** A run whose harness writes lines of JSON. */
export interface LineRun {
  /** The last of standard error, for messages. */
  readonly facts: { stderrTail: string }
  /** null: not a line that is understood. */
  line(value: Record<string, unknown>): DialogueOutput | null
}

/**
 * The reading half of a dialogue in lines of JSON. What is not understood is kept raw, and so is half a line at the end, as a
 * killed process leaves it: it is never read as if it were whole.
 */
export function lineFrame(
  run: LineRun,
  redactText: RedactText,
  longest = maxLineBytes,
): Pick<HarnessDialogue, 'push' | 'pushStderr' | 'end'> {
  const stdout = lineReader(longest)
  const stderr = lineReader(maxPieceBytes)
  const readOut = (piece: Piece): DialogueOutput => {
    const value = piece.kind === 'line' ? jsonObject(piece.bytes) : null
    const output = value === null ? null : run.line(value)
    return output ?? { events: isBlank(piece.bytes) ? [] : rawEvents(piece.bytes, 'stdout', redactText) }
  }
  const readErr = (bytes: Uint8Array): RunEventBody[] => {
    const text = redactText(Buffer.from(bytes).toString('utf8'))
    run.facts.stderrTail = (run.facts.stderrTail + text).slice(-stderrTailChars)
    return rawEvents(bytes, 'stderr', redactText)
  }
  return {
    push: (chunk) => joined(stdout.push(chunk).map(readOut)),
    pushStderr: (chunk) => ({ events: stderr.push(chunk).flatMap((piece) => readErr(piece.bytes)) }),
    end() {
      const out = stdout.end()
      const err = stderr.end()
      return {
        events: [...(out === null ? [] : rawEvents(out, 'stdout', redactText)), ...(err === null ? [] : readErr(err))],
      }
    },
  }
}
