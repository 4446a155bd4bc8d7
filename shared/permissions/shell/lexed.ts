import type { OpenCommand, OpenWord, ShellWord } from './command-builder.ts'

/** A command line, taken apart. */
export interface Lexed {
  /** The ones in substitutions are among them. */
  commands: ShellWord[][]
  /** Command lines between backticks. */
  substituted: string[]
  /** Quoted texts and comments: some program or shell may take them for command lines. */
  quoted: string[]
  /** Here-documents and here-strings: the input of a program, which may be a shell. */
  given: string[]
  /** Here-documents in which the shell looks for substitutions. */
  expanded: string[]
  /** The text that follows a quote that is not closed. */
  unclosed: string | null
  /** True: shells read something of it in different ways, so where its words and commands end is not certain. */
  isDoubtful: boolean
  /** True: not all of it was looked at. */
  isTooDeep: boolean
}

/** The construct that a closing character ends. Substitutions hold commands, all else belongs to the current word. */
export type Frame =
  | { kind: 'commands'; outer: OpenCommand | null; parens: number; arithmeticAt: number; hasCase: boolean }
  | { kind: 'quotes'; start: number; isClosedByEnd: boolean }
  | { kind: 'braces'; start: number; isQuoted: boolean; word: OpenWord | null }
