import type { RunEventBody } from '../../../shared/runs/events.ts'
import { PartialWords } from '../parts/partial-words.ts'

/** Of the words of all pieces, so many are kept to be compared. */
const maxSaidChars = 1024 * 1024
const id = 'answer'

/**
 * What Cursor says in print mode. With `--stream-partial-output` it tells its words in pieces, and repeats those of a segment before each
 * tool call, and once more at its end: those of the last segment or, as some tell, of all. Each word is told once; what a repetition has
 * beyond the pieces is told, too, and one that is no repetition is told whole, as are the words of a version without pieces.
 */
export class CursorWords {
  readonly #words: PartialWords
  /** A segment ends with a tool call. */
  #segment = 0
  #hasPieces = false
  #said = ''
  #lastWhole: string | null = null

  constructor(...how: ConstructorParameters<typeof PartialWords>) {
    this.#words = new PartialWords(...how)
  }

  piece(text: string): RunEventBody[] {
    this.#hasPieces = true
    if (this.#said.length <= maxSaidChars) this.#said += text
    return this.#words.piece('text', { id, part: this.#segment, text })
  }

  whole(text: string): RunEventBody[] {
    const isRepeated = this.#hasPieces && (text === this.#lastWhole || text === this.#said)
    this.#lastWhole = text
    return isRepeated ? this.#words.flush() : this.#words.whole('text', { id, text })
  }

  /** A tool is called. */
  endSegment(): RunEventBody[] {
    this.#segment++
    return this.#words.flush()
  }

  release(): RunEventBody[] {
    return this.#words.release()
  }

  flush(): RunEventBody[] {
    return this.#words.flush()
  }
}
