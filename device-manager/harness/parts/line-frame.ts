import type { RunEventBody } from '../../../shared/runs/events.ts'
import { lineReader, type Piece } from '../../../shared/lib/lines.ts'
import type { DialogueOptions, DialogueOutput, HarnessDialogue, RedactStream } from '../adapter.ts'
import { asItIs, maxPieceBytes, rawEvents, streamAsItIs } from './event-pieces.ts'
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
  { redactText = asItIs, redactStream = streamAsItIs }: Pick<DialogueOptions, 'redactText' | 'redactStream'>,
  longest = maxLineBytes,
): Pick<HarnessDialogue, 'push' | 'pushStderr' | 'end'> {
  const stdout = lineReader(longest)
  const stderr = lineReader(maxPieceBytes)
  const [outParts, errParts] = [redactStream(), redactStream()]
  const readOut = (piece: Piece): DialogueOutput => {
    const value = piece.kind === 'line' ? jsonObject(piece.bytes) : null
    const output = value === null ? null : run.line(value)
    const bytes = piece.kind === 'part' ? wholeSecrets(piece.bytes, outParts) : piece.bytes
    return output ?? { events: isBlank(bytes) ? [] : rawEvents(bytes, 'stdout', redactText) }
  }
  const readErr = (bytes: Uint8Array): RunEventBody[] => {
    const text = redactText(Buffer.from(bytes).toString('utf8'))
    run.facts.stderrTail = (run.facts.stderrTail + text).slice(-stderrTailChars)
    return rawEvents(bytes, 'stderr', redactText)
  }
  return {
    push: (chunk) => joined(stdout.push(chunk).map(readOut)),
    pushStderr: (chunk) => ({
      events: stderr
        .push(chunk)
        .flatMap(({ kind, bytes }) => readErr(kind === 'part' ? wholeSecrets(bytes, errParts) : bytes)),
    }),
    end() {
      const out = Buffer.concat([outParts.push(stdout.end() ?? nothing), outParts.flush()])
      const err = Buffer.concat([errParts.push(stderr.end() ?? nothing), errParts.flush()])
      return { events: [...rawEvents(out, 'stdout', redactText), ...(err.length === 0 ? [] : readErr(err))] }
    },
  }
}

const nothing = new Uint8Array()

/** A part of a line that is too long, as far as it is safe by itself; with its last part comes all that was held back. */
function wholeSecrets(part: Uint8Array, stream: RedactStream): Uint8Array {
  const safe = stream.push(part)
  return part.at(-1) === 0x0a ? Buffer.concat([safe, stream.flush()]) : safe
}
