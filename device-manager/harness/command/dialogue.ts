import { stripVTControlCharacters } from 'node:util'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { HarnessOutcome, HarnessDialogue, ProcessExit, DialogueOutput } from '../adapter.ts'
import { asItIs, bytePieces, rawEvents } from '../parts/event-pieces.ts'
import { incompleteTail, outputOf } from '../parts/utf8.ts'

export const maxResultBytes = 64 * 1024

/**
 * The transcript of a command is its terminal output as it came; what it ends with is its result. Held between calls:
 * the last bytes of a character that is not whole yet, and the tail of the output for the result.
 */
export function commandDialogue(): HarnessDialogue {
  const nothing: DialogueOutput = { events: [] }
  const tail = tailBuffer(maxResultBytes)
  let pending: Uint8Array = new Uint8Array()

  return {
    open: () => nothing,
    push(chunk) {
      tail.push(chunk)
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
      const { bytes, droppedBytes } = tail.take()
      return {
        events: [
          ...textEvents(rest),
          {
            kind: 'result',
            data: {
              text: plainText(bytes),
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

/** The end of the output as a person would read it in a file: no escape sequences, plain line ends. */
function plainText(bytes: Uint8Array): string {
  return stripVTControlCharacters(Buffer.from(bytes).toString('utf8')).replaceAll(/\r+\n/g, '\n')
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

/** Keeps the last `maxBytes` bytes pushed, from the start of a character on. */
function tailBuffer(maxBytes: number) {
  let parts: Uint8Array[] = []
  let heldBytes = 0
  let totalBytes = 0
  return {
    push(chunk: Uint8Array) {
      totalBytes += chunk.length
      const part = Uint8Array.from(chunk.subarray(Math.max(0, chunk.length - maxBytes)))
      parts.push(part)
      heldBytes += part.length
      while (parts.length > 1 && heldBytes - parts[0]!.length >= maxBytes) heldBytes -= parts.shift()!.length
      // Many small writes: joined now and then, so that the list stays short.
      if (parts.length > 1024) parts = [Buffer.concat(parts)]
    },
    take(): { bytes: Uint8Array; droppedBytes: number } {
      const all = Buffer.concat(parts)
      let start = Math.max(0, all.length - maxBytes)
      if (totalBytes > maxBytes) while (start < all.length && (all[start]! & 0b1100_0000) === 0b1000_0000) start++
      return { bytes: all.subarray(start), droppedBytes: totalBytes - (all.length - start) }
    },
  }
}
