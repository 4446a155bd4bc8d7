import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { HarnessOutcome, HarnessDialogue, ProcessExit, DialogueOutput } from '../adapter.ts'
import { asItIs, bytePieces, rawEvents } from '../parts/event-pieces.ts'
import { incompleteTail, outputOf } from '../parts/utf8.ts'
import { plainTextReader } from './plain-text.ts'

export const maxResultBytes = 64 * 1024

/**
 * The transcript of a command is its terminal output as it came; the end of that, as a person
 * would read it, is its result. Held between calls: the last bytes of a character that is not whole yet, and the end of the text.
 */
export function commandDialogue(): HarnessDialogue {
  const nothing: DialogueOutput = { events: [] }
  const read = plainTextReader(maxResultBytes)
  let pending: Uint8Array = new Uint8Array()

  return {
    open: () => nothing,
    push(chunk) {
      read.push(chunk)
      const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
      const whole = bytes.subarray(0, bytes.length - incompleteTail(bytes))
      // Copied, since the reader may use the chunk's memory again.
      pending = Uint8Array.from(bytes.subarray(whole.length))
      return { events: textEvents(whole) }
    },
    // A pty has one stream; a host that brings another loses nothing.
    pushStderr: (chunk) => ({ events: rawEvents(chunk, 'stderr', asItIs) }),
    answer: () => nothing,
    input: (text) => ({ events: [], write: `${text}\n` }),
    end(exit) {
      const rest = pending
      pending = new Uint8Array()
      const { text, droppedBytes } = read.take()
      return {
        events: [
          ...textEvents(rest),
          {
            kind: 'result',
            data: {
              text,
              isError: exit !== undefined && !isClean(exit),
              ...(droppedBytes > 0 && { truncatedBytes: droppedBytes }),
            },
          },
        ],
      }
    },
    outcome: commandOutcome,
  }
}

function textEvents(bytes: Uint8Array): RunEventBody[] {
  return bytePieces(bytes).map((piece) => ({ kind: 'text', data: outputOf(piece) }))
}

function isClean(exit: ProcessExit): boolean {
  return exit.stoppedFor === null && exit.exitCode === 0
}

function commandOutcome(exit: ProcessExit): HarnessOutcome {
  const ended = { sessionId: null, resumeRefused: false }
  if (exit.stoppedFor !== null) return { ...ended, exitReason: exit.stoppedFor, message: null }
  if (exit.exitCode === 0 && exit.signal === null) return { ...ended, exitReason: 'completed', message: null }
  return { ...ended, exitReason: 'error', message: failureMessage(exit) }
}

function failureMessage({ exitCode, signal }: ProcessExit): string {
  if (signal !== null) return `The command was killed by ${signal}.`
  if (exitCode === 127) {
    return 'The command exited with status 127: a program it names was not found. Check the PATH of the login shell and the spelling.'
  }
  if (exitCode === 126) {
    return 'The command exited with status 126: a program it names could not be executed. Check that it is executable.'
  }
  return exitCode === null ? 'The command ended without a status.' : `The command exited with status ${exitCode}.`
}
