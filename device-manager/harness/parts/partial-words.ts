import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RedactStream, RedactText } from '../adapter.ts'
import { wordEvents } from './event-pieces.ts'
import { Speech, type SpeechKind } from './speech.ts'

/** Beyond this a message is told in pieces no more: the rest comes with the whole. */
const maxPartialChars = 1024 * 1024
/** Messages of which pieces came and the whole has not. */
const maxOpen = 16

interface PartialMessage {
  id: string
  part: number
  kind: SpeechKind
  /** What was told of it. */
  text: string
  isCut: boolean
}

/**
 * The words of a harness that tells them in pieces, as its model makes them, and then as a whole. Each is told once: of the whole
 * only what the pieces had not, which is nothing where it ends before them. A whole that begins otherwise than its pieces is told all
 * the same, all of it: they were of a request that came to nothing and was made again, or the program has changed its words, and
 * what follows the first letter that differs would be no sentence.
 */
export class PartialWords {
  readonly #redactText: RedactText
  readonly #speech: Speech
  #open: PartialMessage[] = []

  constructor(redactText: RedactText, makeStream: () => RedactStream) {
    this.#redactText = redactText
    this.#speech = new Speech(redactText, makeStream)
  }

  /** Takes the next piece of a message, which may have several parts of a kind. */
  piece(kind: SpeechKind, { id, part = 0, text }: Piece): RunEventBody[] {
    const known = this.#find(kind, { id, part })
    const message = known ?? { id, part, kind, text: '', isCut: false }
    const isNext = message === this.#open.at(-1)
    const before = isNext ? [] : this.flush()
    if (!isNext) this.#open = [...this.#without(message), message].slice(-maxOpen)
    message.isCut ||= message.text.length + text.length > maxPartialChars
    if (message.isCut) return before
    message.text += text
    return [...before, ...this.#speech.say(kind, text)]
  }

  /** Takes all that came of a message so far, from a program that repeats it with each piece. */
  soFar(kind: SpeechKind, { id, part = 0, text }: Piece): RunEventBody[] {
    const told = this.#find(kind, { id, part })?.text ?? ''
    return text.startsWith(told) && text !== told ? this.piece(kind, { id, part, text: text.slice(told.length) }) : []
  }

  /** Takes a message, or a part of one, that is whole. `id`: null where no piece of it can have come. */
  whole(kind: SpeechKind, { id, text, ...of }: { id: string | null; text: string; parent?: Parent }): RunEventBody[] {
    const message = this.#piecesOf(kind, { id, text })
    if (message === undefined) {
      // Others speak at the same time, and what is held back of the agent's own words waits for their next piece.
      const before = of.parent?.parentToolCallId === undefined ? this.flush() : []
      return [...before, ...wordEvents(kind, { text, ...of }, this.#redactText)]
    }
    const before = message === this.#open.at(-1) ? [] : this.flush()
    this.#open = this.#without(message)
    const rest = text.slice(message.text.length)
    return [...before, ...(rest === '' ? [] : this.#speech.say(kind, rest)), ...this.flush()]
  }

  /** The message begins, maybe anew: what came under its id before is none of it. */
  begin(id: string): void {
    this.#open = this.#open.filter((open) => open.id !== id)
  }

  #without(message: PartialMessage): PartialMessage[] {
    return this.#open.filter((open) => open !== message)
  }

  #find(kind: SpeechKind, { id, part }: { id: string; part: number }): PartialMessage | undefined {
    return this.#open.find((open) => open.id === id && open.part === part && open.kind === kind)
  }

  /** The part of the message of which the pieces are: those that are just the same come first. */
  #piecesOf(kind: SpeechKind, { id, text }: { id: string | null; text: string }): PartialMessage | undefined {
    const parts = this.#open.filter((open) => open.id === id && open.kind === kind)
    return (
      parts.find((open) => open.text === text) ??
      parts.find((open) => text.startsWith(open.text)) ??
      parts.find((open) => text !== '' && open.text.startsWith(text))
    )
  }

  /** Nothing more came for a while: returns what is held back and hardly a secret. */
  release(): RunEventBody[] {
    return this.#speech.release()
  }

  /** Returns what is held back; called before anything else is told. */
  flush(): RunEventBody[] {
    return this.#speech.flush()
  }
}

interface Piece {
  id: string
  part?: number
  text: string
}

interface Parent {
  parentToolCallId?: string
}
