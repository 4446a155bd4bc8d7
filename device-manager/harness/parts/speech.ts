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
  #open: { kind: SpeechKind; stream: RedactStream; decoder: StringDecoder; half: string } | null = null
  #answer = ''

  constructor(redactText: RedactText, makeStream: () => RedactStream) {
    this.#redactText = redactText
    this.#makeStream = makeStream
  }

  /** The last of what it has said since its last call. */
  get answer(): string {
    return this.#answer.slice(-maxAnswerChars)
  }

  forgetAnswer(): void {
    this.#answer = ''
  }

  say(kind: SpeechKind, piece: string): RunEventBody[] {
    const before = this.#open?.kind === kind ? [] : this.flush()
    if (kind === 'text') this.#answer += piece
    // Cut now and then: each cut copies what is left, and a piece may be one letter.
    if (this.#answer.length > 2 * maxAnswerChars) this.#answer = this.answer
    this.#open ??= { kind, stream: this.#makeStream(), decoder: new StringDecoder('utf8'), half: '' }
    const { stream, decoder, half } = this.#open
    const text = half + piece
    const whole = endsInHalf(text) ? text.slice(0, -1) : text
    this.#open.half = text.slice(whole.length)
    return [...before, ...this.#events(kind, decoder.write(Buffer.from(stream.push(Buffer.from(whole)))))]
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
    const { kind, stream, decoder, half } = this.#open
    this.#open = null
    const rest = Buffer.concat([stream.push(Buffer.from(half)), stream.flush()])
    return this.#events(kind, decoder.end(rest))
  }

  #events(kind: SpeechKind, text: string): RunEventBody[] {
    return wordEvents(kind, { text }, this.#redactText)
  }
}

/** A character of two UTF-16 halves may come in two pieces; half of one has no bytes of its own. */
function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd8_00 && last <= 0xdb_ff
}
