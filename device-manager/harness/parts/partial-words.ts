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
 * only what the pieces had not. Where it does not begin as the pieces did, they were of a request that came to nothing and was made
 * again, so all of it is told.
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
  piece(kind: SpeechKind, { id, part = 0, text }: { id: string; part?: number; text: string }): RunEventBody[] {
    const last = this.#open.at(-1)
    const isNext = last?.id === id && last.part === part && last.kind === kind
    const message = isNext ? last : { id, part, kind, text: '', isCut: false }
    const before = isNext ? [] : this.flush()
    if (!isNext) this.#open = [...this.#open, message].slice(-maxOpen)
    message.isCut ||= message.text.length + text.length > maxPartialChars
    if (message.isCut) return before
    message.text += text
    return [...before, ...this.#speech.say(kind, text)]
  }

  /** Takes a message, or a part of one, that is whole. `id`: null where no piece of it can have come. */
  whole(kind: SpeechKind, { id, text, ...of }: { id: string | null; text: string; parent?: Parent }): RunEventBody[] {
    const at = this.#open.findIndex((open) => open.id === id && open.kind === kind && text.startsWith(open.text))
    const told = at === -1 ? null : this.#open.splice(at, 1)[0]!.text
    if (told === null) return [...this.flush(), ...wordEvents(kind, { text, ...of }, this.#redactText)]
    const rest = text.slice(told.length)
    return [...(rest === '' ? [] : this.#speech.say(kind, rest)), ...this.flush()]
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

interface Parent {
  parentToolCallId?: string
}
