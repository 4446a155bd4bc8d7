import { widthOf } from './width.ts'

/** So near to the edge a word that is not whole yet is held back: it may have to go to the next line. */
const nearEdge = 24

/** Breaks text between words while it comes in pieces. What is far from the edge is given at once. */
export class WordWrap {
  readonly #width: number
  /** Columns that are taken on the line. */
  #column = 0
  /** Spaces that are not given yet: before a break there are none. */
  #gap = ''
  /** The beginning of a word that is not given yet. */
  #word = ''
  /** A part of the word at the end is given: it cannot go to the next line any more. */
  #isWithinWord = false

  constructor(width: number) {
    this.#width = width
  }

  push(text: string): string {
    let shown = ''
    for (const [part] of text.matchAll(/\n|[^\S\n]+|\S+/g)) {
      if (part === '\n') shown += this.#endOfLine()
      else if (part.trim() === '') shown += this.#space(part)
      else shown += this.#piece(part)
    }
    return shown
  }

  /** Gives what is held back. The next text begins a line. */
  end(): string {
    const shown = this.#wholeWord()
    this.#column = 0
    this.#gap = ''
    this.#isWithinWord = false
    return shown
  }

  #endOfLine(): string {
    return `${this.end()}\n`
  }

  #space(part: string): string {
    const shown = this.#wholeWord()
    this.#isWithinWord = false
    this.#gap += part
    return shown
  }

  #piece(part: string): string {
    if (this.#isWithinWord) return this.#give(part)
    this.#word += part
    const room = this.#width - this.#column - widthOf(this.#gap)
    const taken = widthOf(this.#word, this.#width)
    if (taken + nearEdge <= room || taken > this.#width) return this.#wholeWord()
    return ''
  }

  /** Gives the word, on the next line where this one has no room for it. */
  #wholeWord(): string {
    if (this.#word === '') return ''
    const word = this.#word
    this.#word = ''
    this.#isWithinWord = true
    const taken = widthOf(word)
    const fits = this.#column + widthOf(this.#gap) + taken <= this.#width
    if (fits || this.#column === 0) return this.#give(word)
    this.#gap = ''
    this.#column = 0
    return `\n${this.#give(word)}`
  }

  #give(text: string): string {
    const shown = this.#gap + text
    const taken = this.#column + widthOf(shown)
    // What is longer than a line the terminal breaks itself. A full line is none that begins.
    this.#column = taken <= this.#width ? taken : ((taken - 1) % Math.max(1, this.#width)) + 1
    this.#gap = ''
    return shown
  }
}
