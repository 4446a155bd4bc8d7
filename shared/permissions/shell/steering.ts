import { lex } from './lexer.ts'

// Commands of a shell that change what it runs afterwards or run what stands in a name, so that a rule which names them says nothing
// about what comes of it.

/** Commands that set variables, options or meanings of names; `read` and others take the values from elsewhere. */
const setting = new Set(
  `export declare typeset local readonly integer float setenv unset read mapfile readarray getopts alias unalias hash enable
  shopt setopt unsetopt emulate autoload zmodload trap bind bindkey`.split(/\s+/),
)
/** Commands that take a name or a number, in which a subscript is computed: `test -v 'a[$(rm x)]'` runs `rm x`. */
const computing = new Set([...setting, 'test', '[', '[[', 'printf', 'print', 'let', 'wait', 'exit', 'return', 'shift'])
/** Operators that compute whatever a variable holds, which may have a subscript in it. */
const computingAlways = /^(?:-eq|-ne|-lt|-le|-gt|-ge|-v|-R)$/
const assignment = /^[A-Za-z_]\w*(?:\[.*\])?\+?=/s
/** Words that stand before a command of the shell and change nothing of its meaning. */
const before = new Set(['builtin', 'command', 'noglob', 'nocorrect', 'time', '!', '-'])

/**
 * Says whether nobody can tell from the simple commands of a line what it runs: one computes a name that it is given, or one sets
 * what another one after it goes by (`export PATH=.; ls`).
 */
export function steersWhatRuns(parts: readonly string[]): boolean {
  return parts.some((part, at) => {
    const words = wordsOf(part)
    return computes(words) || (at < parts.length - 1 && sets(words))
  })
}

/** Returns the words as the shell sees them, without their quotes. */
function wordsOf(part: string): string[] {
  const words = (lex(part).commands[0] ?? []).map(({ text }) => text)
  const first = words.findIndex((word) => !before.has(word))
  return first < 0 ? [] : words.slice(first)
}

function sets(words: readonly string[]): boolean {
  const [program = '', ...rest] = words
  if (setting.has(program)) return true
  if (program === 'printf' || program === 'print') return rest.some((word) => /^-\w*v/.test(word))
  if (program === 'wait') return rest.some((word) => word.startsWith('-p'))
  // Assignments before a program hold for it alone, but a function or a builtin may keep them.
  return assignment.test(program)
}

function computes(words: readonly string[]): boolean {
  const [program = '', ...rest] = words
  if (!computing.has(program)) return false
  if (rest.some((word) => /\[.*[$`]/s.test(word))) return true
  if (program === 'let' || program === 'integer') return true
  if (program === '[[') return rest.some((word) => computingAlways.test(word))
  return (program === 'declare' || program === 'typeset') && rest.some((word) => /^[-+]\w*i/.test(word))
}
