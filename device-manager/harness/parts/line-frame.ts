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
  /** Reads a whole line of standard error, without secrets; null: it says nothing else than itself. */
  logLine?(text: string): readonly RunEventBody[] | null
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
  // What is cut into several events is looked at before: afterwards half a secret is not recognised, in bytes that are no text either.
  const raw = (bytes: Uint8Array, of: 'stdout' | 'stderr'): RunEventBody[] => {
    if (bytes.length <= maxPieceBytes) return rawEvents(bytes, of, redactText)
    const whole = redactStream()
    return rawEvents(Buffer.concat([whole.push(bytes), whole.flush()]), of, redactText)
  }
  const readOut = (piece: Piece): DialogueOutput => {
    const value = piece.kind === 'line' ? jsonObject(piece.bytes) : null
    const output = value === null ? null : run.line(value)
    const bytes = piece.kind === 'part' ? wholeSecrets(piece.bytes, outParts) : piece.bytes
    return output ?? { events: isBlank(bytes) ? [] : raw(bytes, 'stdout') }
  }
  const readErr = (bytes: Uint8Array, isLine = false): readonly RunEventBody[] => {
    const text = redactText(Buffer.from(bytes).toString('utf8'))
    run.facts.stderrTail = (run.facts.stderrTail + text).slice(-stderrTailChars)
    return (isLine ? run.logLine?.(text) : null) ?? raw(bytes, 'stderr')
  }
  return {
    push: (chunk) => joined(stdout.push(chunk).map(readOut)),
    pushStderr: (chunk) => ({
      events: stderr
        .push(chunk)
        .flatMap(({ kind, bytes }) =>
          readErr(kind === 'part' ? wholeSecrets(bytes, errParts) : bytes, kind === 'line'),
        ),
    }),
    end() {
      const out = Buffer.concat([outParts.push(stdout.end() ?? nothing), outParts.flush()])
      const err = Buffer.concat([errParts.push(stderr.end() ?? nothing), errParts.flush()])
      return { events: [...raw(out, 'stdout'), ...(err.length === 0 ? [] : readErr(err))] }
    },
  }
}

const nothing = new Uint8Array()

/** A part of a line that is too long, as far as it is safe by itself; with its last part comes all that was held back. */
function wholeSecrets(part: Uint8Array, stream: RedactStream): Uint8Array {
  const safe = stream.push(part)
  return part.at(-1) === 0x0a ? Buffer.concat([safe, stream.flush()]) : safe
}
