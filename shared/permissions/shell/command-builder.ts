/** A word of a command as the shell would see it, without its quotes. */
export interface ShellWord {
  text: string
  /** The text with `unknown` for what only the shell can know: variables, substitutions, patterns of file names. */
  shape: string
  /** `plain`: its braces may make several words of it; `mixed`: nobody can say, since some of them are quoted. */
  braces: 'none' | 'plain' | 'mixed'
}
/** The character that stands for any text in a word's shape. */
export const unknown = '\0'

/** The next word is where a redirection leads, and no word of the command. */
export type Target =
  | { kind: 'file' }
  | { kind: 'here-string' }
  | { kind: 'delimiter'; start: number; stripsTabs: boolean }

export interface OpenWord {
  text: string
  shape: string
  hasBrace: boolean
  hasQuotedBrace: boolean
  hasBracket: boolean
}
export interface OpenCommand {
  words: ShellWord[]
  word: OpenWord | null
  target: Target | null
  /** `a &>b c` is one command of bash, and two of other shells: the second one begins here. */
  splitAt: number
}

/** Words after which a command begins, wherever they stand in zsh. */
const parting = new Set(['{', '}', ']]'])

/** Puts a command together, character by character. */
export class CommandBuilder {
  readonly #found: { commands: ShellWord[][]; given: string[]; isDoubtful: boolean }
  readonly #onDelimiter: (target: Target & { kind: 'delimiter' }) => void
  readonly #onCase: () => void
  #open: OpenCommand = { words: [], word: null, target: null, splitAt: 0 }

  constructor(
    found: { commands: ShellWord[][]; given: string[]; isDoubtful: boolean },
    on: { delimiter(target: Target & { kind: 'delimiter' }): void; case(): void },
  ) {
    this.#found = found
    this.#onDelimiter = (target) => on.delimiter(target)
    this.#onCase = () => on.case()
  }

  get word(): Readonly<OpenWord> | null {
    return this.#open.word
  }
  get target(): Target | null {
    return this.#open.target
  }
  set target(target: Target | null) {
    this.#open.target = target
  }
  has(word: string): boolean {
    return this.#open.words.some(({ text }) => text === word)
  }

  add(text: string, shape = text): void {
    this.#open.word ??= { text: '', shape: '', hasBrace: false, hasQuotedBrace: false, hasBracket: false }
    this.#open.word.text += text
    this.#open.word.shape += shape
    if (text === '{') this.#open.word.hasBrace = true
    if (text === '[') this.#open.word.hasBracket = true
  }

  addQuoted(text: string): void {
    this.add('')
    const word = this.#open.word!
    word.text += text
    word.shape += text
    if (/[{},]/.test(text)) word.hasQuotedBrace = true
  }

  /** Puts another word in its place, and returns the one so far. */
  swapWord(word: OpenWord | null): OpenWord | null {
    const before = this.#open.word
    this.#open.word = word
    return before
  }

  /** A command within this one begins; answers what is to be put back after it. */
  begin(): OpenCommand {
    const outer = this.#open
    this.#open = { words: [], word: null, target: null, splitAt: 0 }
    return outer
  }
  putBack(outer: OpenCommand): void {
    this.#open = outer
  }

  endWord(): void {
    const { word: open, target } = this.#open
    this.#open.word = null
    if (open === null) return
    this.#open.target = null
    // A subscript may hold blanks.
    if (open.hasBracket && /^\w+\[[^\]]*$/.test(open.text)) this.#found.isDoubtful = true
    const word = wordOf(open)
    if (target?.kind === 'here-string') this.#found.given.push(word.text)
    else if (target?.kind === 'delimiter') this.#onDelimiter(target)
    // The file comes after the `!` in zsh.
    else if (target !== null && word.text === '!') this.#found.isDoubtful = true
    if (target !== null) return
    if (word.text === 'case') this.#onCase()
    this.#open.words.push(word)
    if (parting.has(word.text) && !open.hasQuotedBrace && this.#open.words.length > 1) this.endCommand()
  }

  endCommand(): void {
    this.endWord()
    const { words, splitAt } = this.#open
    if (words.length > 0) this.#found.commands.push(words)
    if (splitAt > 0) this.#found.commands.push(words.slice(splitAt))
    this.begin()
  }

  /** Marks a place where some shells begin a command. */
  split(): void {
    if (this.#open.splitAt > 0) this.#found.isDoubtful = true
    this.#open.splitAt = this.#open.words.length
  }
}

function wordOf({ text, shape, hasBrace, hasQuotedBrace, hasBracket }: OpenWord): ShellWord {
  const braces = hasBrace ? (hasQuotedBrace ? 'mixed' : 'plain') : 'none'
  const from = hasBracket ? shape.indexOf('[') : -1
  const to = shape.lastIndexOf(']')
  // A pattern of file names.
  const isPattern = from >= 0 && to > from + 1
  return { text, shape: isPattern ? `${shape.slice(0, from)}${unknown}${shape.slice(to + 1)}` : shape, braces }
}
