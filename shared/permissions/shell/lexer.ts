import { ansiText } from './ansi-text.ts'
import { CommandBuilder, unknown, type Target } from './command-builder.ts'
import { HereDocuments } from './here-documents.ts'
import type { Frame, Lexed } from './lexed.ts'

/**
 * Takes a shell command line apart, generously: for a list that forbids, what may be a command is one. It never throws, and looks at each
 * character once; what is quoted is handed back to be taken apart in turn. `here-document`: the text of one, in which only substitutions
 * count.
 */
export function lex(text: string, kind: 'line' | 'here-document' = 'line'): Lexed {
  return new Lexer(text, kind).run()
}

const maxFrames = 64
const redirections = /(?:<<<|<<-?|<>|<&|>>[|&]?|>&\|?|>\|?|<)/y
const variable = /[=~^+]*(?:[\w\u0080-\uffff]+|[@*#?$!-])/y
const blanks = /(?:[ \t]|\\\n)*/y
const lineEnd = /[^\n]*/y

class Lexer {
  readonly #text: string
  #at = 0
  readonly #found: Lexed
  readonly #frames: Frame[]
  readonly #command: CommandBuilder
  readonly #hereDocuments = new HereDocuments()

  constructor(text: string, kind: 'line' | 'here-document') {
    this.#text = text
    const [commands, substituted, quoted, given, expanded] = [[], [], [], [], []]
    this.#found = {
      commands,
      substituted,
      quoted,
      given,
      expanded,
      unclosed: null,
      isDoubtful: false,
      isTooDeep: false,
    }
    this.#command = new CommandBuilder(this.#found, {
      delimiter: (target) => this.#delimiter(target),
      case: () => this.#noteCase(),
    })
    this.#frames = [{ kind: 'commands', outer: null, parens: 0, arithmeticAt: 0, hasCase: false }]
    if (kind === 'here-document') this.#frames.push({ kind: 'quotes', start: 0, isClosedByEnd: true })
  }

  run(): Lexed {
    while (this.#at < this.#text.length) {
      const frame = this.#frames.at(-1)!
      if (this.#frames.length > maxFrames) {
        this.#found.isTooDeep = true
        break
      }
      const char = this.#text[this.#at++]!
      if (frame.kind === 'quotes') this.#stepInQuotes(char, frame)
      else if (frame.kind === 'braces') this.#stepInBraces(char, frame)
      else this.#step(char, frame)
    }
    if (this.#hereDocuments.isPending) this.#doubt()
    const open = this.#frames.find((frame) => frame.kind === 'quotes' && !frame.isClosedByEnd)
    if (open?.kind === 'quotes') this.#found.unclosed = this.#text.slice(open.start)
    for (let frame = this.#frames.pop(); frame; frame = this.#frames.pop()) this.#leave(frame)
    return this.#found
  }

  #doubt(): void {
    this.#found.isDoubtful = true
  }

  #leave(frame: Frame): void {
    if (frame.kind === 'braces') this.#closeBraces(frame, this.#text.length)
    else if (frame.kind === 'commands') this.#closeCommands(frame)
    const isHereDocument = frame.kind === 'quotes' && frame.isClosedByEnd
    if (isHereDocument) this.#command.swapWord(null)
    else if (this.#frames.length > 0) this.#doubt()
  }

  #step(char: string, frame: Frame & { kind: 'commands' }): void {
    switch (char) {
      case ' ':
      case '\t':
        return this.#command.endWord()
      case '\n':
        return this.#newLine()
      case '\r':
        // A carriage return ends the command for all shells only before the end of a line.
        if (this.#text[this.#at] !== '\n') this.#doubt()
        return this.#command.endCommand()
      case ';':
      case '|':
        return this.#command.endCommand()
      case '&':
        return this.#text[this.#at] === '>' ? this.#redirectsBoth() : this.#command.endCommand()
      case '(':
        return this.#opens(frame)
      case ')':
        return this.#closes(frame)
      case '#':
        return this.#hash(frame)
      case '<':
      case '>':
        return this.#redirection(char)
      case '*':
      case '?':
        return this.#command.add(char, unknown)
      default:
        return this.#stepInWord(char, false)
    }
  }

  #stepInWord(char: string, isQuoted: boolean): void {
    if (char === "'" && !isQuoted) return this.#singleQuoted()
    if (char === '"') return this.#openQuotes()
    if (char === '`') return this.#backticks(isQuoted)
    if (char === '\\') return this.#escaped()
    if (char === '$') return this.#dollar(isQuoted)
    this.#command.add(char)
  }

  #stepInQuotes(char: string, frame: Frame & { kind: 'quotes' }): void {
    if (char === '"' && !frame.isClosedByEnd) {
      this.#frames.pop()
      this.#found.quoted.push(this.#text.slice(frame.start, this.#at - 1))
    } else if (char === '`') this.#backticks(true)
    else if (char === '$') this.#dollar(true)
    else if (char === '\\' && /[$`"\\\n]/.test(this.#text[this.#at] ?? '')) this.#escaped()
    else this.#command.addQuoted(char)
    if (char === '\n' && this.#hereDocuments.isPending) this.#doubt()
  }

  #stepInBraces(char: string, frame: Frame & { kind: 'braces' }): void {
    if (char === '}') {
      this.#frames.pop()
      return this.#closeBraces(frame, this.#at - 1)
    }
    // Shells differ in whether such a quote is one.
    if (char === "'" && frame.isQuoted) this.#doubt()
    if (char === '\n' && this.#hereDocuments.isPending) this.#doubt()
    this.#stepInWord(char, frame.isQuoted)
  }

  #closeBraces(frame: Frame & { kind: 'braces' }, end: number): void {
    const content = this.#text.slice(frame.start, end).replaceAll('\\\n', '')
    this.#found.quoted.push(content.replace(/^!?\w*:?[-+=?]?/, ''))
    this.#command.swapWord(frame.word)
    if (/^IFS\b/.test(content) && !frame.isQuoted) return this.#command.endWord()
    this.#command.add(`\${${content}}`, unknown)
  }

  #noteCase(): void {
    const frame = this.#frames.at(-1)
    if (frame?.kind === 'commands') frame.hasCase = true
  }

  #newLine(): void {
    this.#command.endCommand()
    if (!this.#hereDocuments.isPending) return
    const read = this.#hereDocuments.read(this.#text, this.#at, this.#frames.length)
    if (read.isDoubtful) this.#doubt()
    this.#at = read.end
    this.#found.given.push(...read.texts)
    this.#found.expanded.push(...read.expanded)
  }

  #escaped(): void {
    const next = this.#text[this.#at++]
    if (next === undefined) return
    if (next !== '\n') return this.#command.addQuoted(next)
    // A backslash before a line end joins lines, also in the middle of what means something together.
    const before = this.#text.slice(Math.max(0, this.#at - 4), this.#at - 2)
    if (/[$<>]$|(?:^|[^&])&$/.test(before)) this.#doubt()
  }

  #singleQuoted(): void {
    const content = this.#until("'", false)
    this.#found.quoted.push(content)
    this.#command.addQuoted(content)
  }

  #openQuotes(): void {
    this.#command.add('')
    this.#frames.push({ kind: 'quotes', start: this.#at, isClosedByEnd: false })
  }

  #backticks(isQuoted: boolean): void {
    const content = this.#until('`', true)
    this.#found.substituted.push(content.replaceAll(isQuoted ? /\\([$`\\"])/g : /\\([$`\\])/g, '$1'))
    this.#command.add('', unknown)
  }

  /** Returns the text up to the closing character, or to the end. */
  #until(close: string, hasEscapes: boolean): string {
    const start = this.#at
    for (; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at]
      if (char === '\\' && hasEscapes) this.#at++
      else if (char === close) break
    }
    const content = this.#text.slice(start, this.#at++)
    if (this.#at > this.#text.length) this.#found.unclosed ??= content
    if (this.#hereDocuments.isPending && content.includes('\n')) this.#doubt()
    return content
  }

  #dollar(isQuoted: boolean): void {
    const rest = this.#text[this.#at]
    if (rest === "'" && !isQuoted) {
      this.#at++
      const { text, endsAtZero, isCertain } = ansiText(this.#until("'", true))
      const goesOn = /[^\s;|&()<>]/.test(this.#text[this.#at] ?? ' ')
      if (!isCertain || (endsAtZero && goesOn)) this.#doubt()
      this.#found.quoted.push(text)
      return this.#command.addQuoted(text)
    }
    // The text is translated, and is text all the same.
    if (rest === '"' && !isQuoted) return
    if (rest === '(') {
      this.#at++
      return this.#openCommands()
    }
    if (rest === '{') {
      const word = this.#command.swapWord(null)
      this.#frames.push({ kind: 'braces', start: ++this.#at, isQuoted, word })
      return
    }
    // Arithmetic of old.
    if (rest === '[') this.#doubt()
    const name = this.#match(variable)
    if (name === 'IFS' && !isQuoted) return this.#command.endWord()
    this.#command.add(`$${name}`, name === '' ? '$' : unknown)
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }

  #openCommands(): void {
    const outer = this.#command.begin()
    const arithmeticAt = this.#text[this.#at] === '(' ? 1 : 0
    this.#frames.push({ kind: 'commands', outer, parens: 1, arithmeticAt, hasCase: false })
  }

  #closeCommands({ outer, hasCase }: Frame & { kind: 'commands' }): void {
    this.#command.endCommand()
    if (outer === null) return
    // The bracket may have been that of a pattern.
    if (hasCase) this.#doubt()
    this.#command.putBack(outer)
    this.#command.add('', unknown)
  }

  #opens(frame: Frame & { kind: 'commands' }): void {
    // A pattern of file names, but for a list that is assigned and a function.
    const isPattern =
      this.#command.word !== null && !this.#command.word.text.endsWith('=') && this.#text[this.#at] !== ')'
    if (isPattern && !this.#command.has('[[')) this.#doubt()
    this.#command.endCommand()
    frame.parens++
    if (this.#text[this.#at] === '(' && frame.arithmeticAt === 0) frame.arithmeticAt = frame.parens
  }

  #closes(frame: Frame & { kind: 'commands' }): void {
    this.#command.endCommand()
    frame.parens = Math.max(0, frame.parens - 1)
    if (frame.parens < frame.arithmeticAt) frame.arithmeticAt = 0
    if (frame.parens > 0 || frame.outer === null) return
    this.#frames.pop()
    if (this.#hereDocuments.endsOf(this.#frames.length + 1)) this.#doubt()
    this.#closeCommands(frame)
  }

  #hash(frame: Frame & { kind: 'commands' }): void {
    const before = this.#text[this.#at - 2] ?? '\n'
    if (this.#command.word !== null || !/[\s;|&()<>]/.test(before)) return this.#command.add('#')
    const comment = this.#match(lineEnd)
    // A shell in which a person types may have none.
    this.#found.quoted.push(`_${comment}`)
    // Shells read on in different ways where it might be no comment, or the end of a substitution.
    if (/[)\r]/.test(before) || frame.arithmeticAt > 0) this.#doubt()
    if (frame.outer !== null && /['"`\\()]/.test(comment)) this.#doubt()
  }

  #redirectsBoth(): void {
    this.#command.endWord()
    this.#at++
    if (/[>&|]/.test(this.#text[this.#at] ?? '')) this.#at++
    this.#command.target = { kind: 'file' }
    this.#command.split()
  }

  #redirection(char: string): void {
    this.#at--
    const { word } = this.#command
    // The number of a file before it is no word.
    if (word !== null && /^(?:\d+|\{\w+\})$/.test(word.text)) this.#command.swapWord(null)
    this.#command.endWord()
    if (this.#text[this.#at + 1] === '(') {
      this.#at += 2
      return this.#openCommands()
    }
    const operator = this.#match(redirections)
    if (this.#command.target?.kind === 'delimiter') this.#doubt()
    this.#command.target = { kind: 'file' }
    if (operator === '<<<') this.#command.target = { kind: 'here-string' }
    else if (operator.startsWith('<<')) this.#hereDocument(operator === '<<-')
    else if (operator === `${char}&`) this.#toNumber()
  }

  /** `>&-` is whole: it leads nowhere, and what follows is a word of its own. */
  #toNumber(): void {
    this.#match(blanks)
    if (this.#text[this.#at] !== '-') return
    this.#at++
    this.#command.target = null
  }

  #hereDocument(stripsTabs: boolean): void {
    const frame = this.#frames.at(-1)
    if (frame?.kind === 'commands' && frame.arithmeticAt > 0) this.#doubt()
    this.#match(blanks)
    this.#command.target = { kind: 'delimiter', start: this.#at, stripsTabs }
  }

  /** `at` is after the word, or one character further on. */
  #delimiter({ start, stripsTabs }: Target & { kind: 'delimiter' }): void {
    const raw = this.#text.slice(start, this.#at).replace(/[\s;|&()<>]$/, '')
    if (!this.#hereDocuments.begin(raw, { stripsTabs, depth: this.#frames.length })) this.#doubt()
  }
}
