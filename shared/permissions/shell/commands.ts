import { unknown, type ShellWord } from './command-builder.ts'
import { folded } from '../patterns/folded.ts'
import { glob } from '../patterns/glob.ts'
import { expandBraces } from './braces.ts'
import { lex } from './lexer.ts'
import { functionsIn, nameBefore, runsItsWords, shells, splitByEnv } from './runners.ts'

/** A command that a line may lead to: its program by its plain name, and all of it as text. */
export interface ShellCommand {
  program: Pick<ShellWord, 'text' | 'shape'>
  /** The text that follows the program, with a blank before it; empty for nothing. */
  rest: string
}

export interface ShellCommands {
  commands: ShellCommand[]
  /** True: not all of it was looked at, so whatever is forbidden must be taken to be in it. */
  isDoubtful: boolean
}

/** Linux starts no program with a longer argument. */
export const maxCommandChars = 131_072
const limits = {
  texts: 20_000,
  scannedChars: 8 * maxCommandChars,
  resultChars: 32 * maxCommandChars,
  wrapped: 64,
  depth: 12,
} as const

const reserved = new Set('if then elif else while until do for select in ! { }'.split(' '))
/** zsh and bash keep in these what a name stands for. */
const meaning = /^(?:\w*aliases|functions|commands|BASH_ALIASES|BASH_CMDS)\[/
const assignment = /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/

/**
 * Finds all that may be run by a shell command line: behind wrappers (`timeout 5 rm`), quotes (`r''m`), redirections, in substitutions and
 * in texts that some program may take for a command. It finds too much rather than too little, in bounded time. What programs other than
 * shells make of their arguments is beyond it.
 */
export function shellCommands(line: string): ShellCommands {
  const search = new Search()
  search.text(line)
  return search.found
}

interface Line {
  text: string
  kind?: 'here-document'
  depth: number
  /** The text only may be a command: what nobody knows in it is not taken for one. */
  isGuess: boolean
  /** The text is read by a shell: where nobody can say what it makes of it, it may be anything. */
  isScript: boolean
}

class Search {
  readonly found: ShellCommands = { commands: [], isDoubtful: false }
  readonly #left: Line[] = []
  readonly #seen = new Set<string>()
  #scanned = 0
  #written = 0
  /** Functions that the line defines, in small letters: each may run what it is given. */
  #functions: ReadonlySet<string> = new Set()

  text(line: string): void {
    this.#functions = new Set(functionsIn(line).map(small))
    this.#later({ text: line, depth: 0, isGuess: false, isScript: true })
    for (let next = this.#left.pop(); next !== undefined; next = this.#left.pop()) this.#look(next)
  }

  #later(line: Line): void {
    const { text, kind, depth, isGuess, isScript } = line
    if (this.found.isDoubtful || text.trim() === '') return
    const key = `${isGuess ? '?' : '!'}${isScript ? '!' : '?'}${kind ?? ''}:${text}`
    if (this.#seen.has(key)) return
    this.#seen.add(key)
    this.#scanned += text.length
    const isTooMuch = depth > limits.depth || this.#seen.size > limits.texts || this.#scanned > limits.scannedChars
    if (isTooMuch) this.found.isDoubtful = true
    else this.#left.push(line)
  }

  #look({ text, kind, depth, isGuess, isScript }: Line): void {
    if (this.found.isDoubtful) return
    const lexed = lex(text, kind)
    const { commands, substituted, quoted, given, expanded, unclosed } = lexed
    if (lexed.isTooDeep || (isScript && (lexed.isDoubtful || unclosed !== null))) this.found.isDoubtful = true
    const inner = { depth: depth + 1, isGuess, isScript }
    for (const one of substituted) this.#later({ ...inner, text: one })
    for (const one of expanded) this.#later({ ...inner, text: one, kind: 'here-document' })
    for (const one of quoted) this.#later({ text: one, depth: depth + 1, isGuess: true, isScript: false })
    if (unclosed !== null) this.#later({ ...inner, text: unclosed })
    let hasShell = false
    for (const words of commands) {
      if (this.found.isDoubtful) return
      const runs = this.#command(this.#withBraces(words, isScript), inner)
      if (runs === 'scripts') hasShell = true
      const ofWords = { depth: depth + 1, isGuess: runs === 'nothing', isScript: isScript && runs === 'scripts' }
      for (const { text: word } of words) this.#innerOf(word, ofWords)
    }
    const ofInput = { depth: depth + 1, isGuess: isGuess || !hasShell, isScript: isScript && hasShell }
    for (const one of given) this.#later({ ...ofInput, text: one })
  }

  /** A word that holds what parts commands may be one to whom it is given; to a shell, whatever is more than a name. */
  #innerOf(word: string, line: Omit<Line, 'text'>): void {
    const value = word.replace(nameBefore, '')
    const parts = line.isScript ? /[\s;|&<>($`\\'"{*?[]/ : /[\s;|&<>(]/
    for (const text of new Set([word, value])) if (parts.test(text)) this.#later({ text, ...line })
    if (/^-[A-Za-z].*\s/s.test(word)) this.#later({ text: word.slice(2), ...line })
    if (/^[:+]*!/.test(value)) this.#later({ text: value.slice(value.indexOf('!') + 1), ...line })
  }

  /** Answers what its program runs of what it is given. */
  #command(words: readonly ShellWord[], inner: Omit<Line, 'text'>): 'nothing' | 'commands' | 'scripts' {
    let first = 0
    for (; first < words.length && isBefore(words, first); first++) {
      const { text } = words[first]!
      if (meaning.test(text)) this.#later({ ...inner, text: text.replace(assignment, '') })
    }
    if (first === words.length) return 'nothing'
    const name = small(plainName(words[first]!.text))
    const runsWords = this.#functions.has(name) || runsItsWords(name, textsOf(words.slice(first + 1)))
    const last = runsWords ? Math.min(words.length, first + 1 + limits.wrapped) : first + 1
    if (runsWords && last < words.length) this.found.isDoubtful = true
    const hasEnv = runsWords && words.some(({ text }) => /^g?env$/.test(small(plainName(text))))
    let rest = words
      .slice(first)
      .map((word) => ` ${word.text}`)
      .join('')
    for (const word of words.slice(first, last)) {
      rest = rest.slice(1 + word.text.length)
      this.#emit(word, rest, inner.isGuess)
      // The arguments of `eval` together are a line.
      if (runsWords && plainName(word.text) === 'eval') this.#later({ ...inner, text: rest })
      if (hasEnv && word.text.includes('\\')) this.#later({ ...inner, text: splitByEnv(word.text) })
      if (name === 'alias') this.#later({ ...inner, text: word.text.slice(word.text.indexOf('=') + 1) })
    }
    if (!runsWords) return 'nothing'
    return words.slice(first, last).some(({ text }, at) => isShell(text, at === 0)) ? 'scripts' : 'commands'
  }

  /** A word with braces may be several. */
  #withBraces(words: readonly ShellWord[], isScript: boolean): readonly ShellWord[] {
    if (words.every(({ braces }) => braces === 'none')) return words
    return words.flatMap((word) => {
      if (word.braces === 'none') return [word]
      const spelt = word.braces === 'plain' ? expandBraces(word.shape, unknown) : null
      if (spelt === null && isScript) this.found.isDoubtful = true
      if (spelt === null || (spelt.length === 1 && spelt[0] === word.shape)) return [word]
      return spelt.map((text): ShellWord => ({ text, shape: text, braces: 'none' }))
    })
  }

  #emit({ text, shape }: Pick<ShellWord, 'text' | 'shape'>, rest: string, isGuess: boolean): void {
    const name = plainName(text)
    this.#written += rest.length
    if (this.#written > limits.resultChars) this.found.isDoubtful = true
    else this.found.commands.push({ program: { text: name, shape: isGuess ? name : plainShape(shape) }, rest })
  }
}

const textsOf = (words: readonly ShellWord[]): string[] => words.map(({ text }) => text)

/** `find .` is a folder. */
const isShell = (word: string, isProgram: boolean): boolean =>
  shells.has(small(plainName(word))) && (word !== '.' || isProgram)
/** The word that `case` looks at is no program. */
const isBefore = (words: readonly ShellWord[], at: number): boolean => {
  const { text } = words[at]!
  return reserved.has(text) || text === 'case' || words[at - 1]?.text === 'case' || assignment.test(text)
}
/** Returns the name of the program; `=rm` in zsh is where `rm` lies. */
const plainName = (text: string): string => text.slice(text.lastIndexOf('/') + 1).replace(/^=(?=.)/, '')
/** Programs are looked up by names in which some file systems ignore case. */
const small = (text: string): string => folded(text).toLowerCase()
/** Returns the shape of the program's name. Something unknown before the first slash may hold a blank and so end the name. */
const plainShape = (shape: string): string => {
  const name = plainName(shape)
  const known = plainName(shape.split(unknown, 1)[0] ?? '')
  return name === shape || known === '' || !shape.includes(unknown) ? name : `${known}${unknown}`
}

/** Says whether a pattern for commands (`git push:*`) may match the command, whatever its unknown parts are. */
export function mayMatch(pattern: string, command: ShellCommand, matchesText: (text: string) => boolean): boolean {
  const { program, rest } = command
  if (matchesText(`${program.text}${rest}`) || matchesText(`${small(program.text)}${rest}`)) return true
  if (!program.shape.includes(unknown)) return false
  const wanted = /^[^\s*:]*/.exec(pattern)![0]
  const isOpen = pattern.slice(wanted.length).startsWith('*')
  const canBe = canBeSpelt(program.shape, wanted) || canBeSpelt(small(program.shape), wanted)
  // A substitution in the place of a whole program may bring its arguments along.
  return isOpen || (canBe && (program.text === '' || matchesText(`${wanted}${rest}`)))
}

function canBeSpelt(shape: string, wanted: string): boolean {
  const known = shape.split(unknown, 1)[0]!
  return glob(shape.replaceAll(unknown, '*'), wanted) || (known !== '' && wanted.startsWith(known))
}
