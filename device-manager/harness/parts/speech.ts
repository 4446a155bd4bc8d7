import { StringDecoder } from 'node:string_decoder'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RedactStream, RedactText } from '../adapter.ts'
import { wordEvents } from './event-pieces.ts'

const maxAnswerChars = 256 * 1024

export type SpeechKind = 'text' | 'thinking'

/**
 * What the agent says and thinks. A program tells it in pieces of a few letters, so what may be the beginning of a secret is held
 * back until the next piece, until something else comes, or for a second.
 */
export class Speech {
  readonly #redactText: RedactText
  readonly #makeStream: () => RedactStream
  #open: { kind: SpeechKind; stream: RedactStream; decoder: StringDecoder } | null = null
  /** The last of what it has said since its last call. */
  answer = ''

  constructor(redactText: RedactText, makeStream: () => RedactStream) {
    this.#redactText = redactText
    this.#makeStream = makeStream
  }

  say(kind: SpeechKind, text: string): RunEventBody[] {
    const before = this.#open?.kind === kind ? [] : this.flush()
    if (kind === 'text') this.answer = (this.answer + text).slice(-maxAnswerChars)
    this.#open ??= { kind, stream: this.#makeStream(), decoder: new StringDecoder('utf8') }
    const { stream, decoder } = this.#open
    return [...before, ...this.#events(kind, decoder.write(Buffer.from(stream.push(Buffer.from(text)))))]
  }

  /** Nothing more came for a while: returns what of it is hardly a secret. */
  release(): RunEventBody[] {
    if (this.#open === null) return []
    const { kind, stream, decoder } = this.#open
    return this.#events(kind, decoder.write(Buffer.from(stream.release())))
  }

  /** Returns what is held back. */
  flush(): RunEventBody[] {
    if (this.#open === null) return []
    const { kind, stream, decoder } = this.#open
    this.#open = null
    return this.#events(kind, decoder.end(Buffer.from(stream.flush())))
  }

  #events(kind: SpeechKind, text: string): RunEventBody[] {
    return wordEvents(kind, { text }, this.#redactText)
  }
}
