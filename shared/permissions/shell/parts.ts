/** Redirections that read and write nothing of the person's. */
const harmlessRedirection = /^(?:[12&]?>>?[ \t]*\/dev\/null|2>&1|<[ \t]*\/dev\/null)(?=$|[ \t\n;|&])/
/** Blanks for us and letters for a shell, or for some of them: they belong to the name of a program or of a file. */
const oddBlank = /[^\S \t\n]/

/**
 * The simple commands of a shell command line, for a list that allows; null when it cannot be said for certain what the
 * shell would run: substitution, redirection, subshells, here-documents, an open quote, odd blanks.
 */
export function shellParts(command: string): string[] | null {
  const read = partsOf(command)
  return Array.isArray(read) && read.length > 0 ? read : null
}

/** Returns the place in the line from which it cannot be said what the shell would run; its end for a quote that is not closed; null: nowhere. */
export function unclearAt(command: string): number | null {
  const read = partsOf(command)
  return Array.isArray(read) ? null : read.unclearAt
}

/** The text between two quotes, which is part of one word. `from` and `to`: the places of the quotes. */
export interface Quoted {
  from: number
  to: number
  text: string
}

/** Returns the quoted texts up to the place from which it cannot be said what the shell would run. */
export function quotedIn(command: string): Quoted[] {
  const end = unclearAt(command) ?? command.length
  const found: Quoted[] = []
  let open: number | null = null
  for (let at = 0; at < end; at++) {
    const char = command[at]!
    const quote = open === null ? null : command[open]
    if (char === '\\' && quote !== "'") at++
    else if (open === null && (char === '"' || char === "'")) open = at
    else if (open !== null && char === quote) {
      found.push({ from: open, to: at, text: command.slice(open + 1, at) })
      open = null
    }
  }
  return found
}

function partsOf(command: string): string[] | { unclearAt: number } {
  // A zero byte is left out by some shells, and then a backslash before it is one before what follows.
  const zero = command.indexOf('\0')
  if (zero >= 0) return { unclearAt: zero }
  const parts: string[] = []
  let part = ''
  /** The last character of the part. To look at the part itself would put it together anew each time. */
  let last = ''
  const add = (text: string) => {
    part += text
    last = text.at(-1) ?? last
  }
  let quote: '"' | "'" | null = null
  for (let at = 0; at < command.length; at++) {
    const char = command[at]!
    if (quote === "'") {
      if (char === "'") quote = null
      add(char)
      continue
    }
    if (char === '\\') {
      // A backslash before a line end joins lines; elsewhere the next character is itself.
      add(char + (command[++at] ?? ''))
      continue
    }
    if (char === '`' || char === '$') return { unclearAt: at }
    if (quote === null && oddBlank.test(char)) return { unclearAt: at }
    if (quote === '"') {
      if (char === '"') quote = null
      add(char)
      continue
    }
    if (char === "'" || char === '"') {
      quote = char
      add(char)
      continue
    }
    // A comment: a quote in it opens nothing for the shell, and would hide what follows the line from here.
    const isFirst = last === '' || /\s/.test(last)
    if (char === '#' && isFirst) return { unclearAt: at }
    const redirection = isFirst && /[12&<>]/.test(char) ? harmlessRedirection.exec(command.slice(at)) : null
    if (redirection) {
      at += redirection[0].length - 1
      continue
    }
    if (/[<>(){}]/.test(char)) return { unclearAt: at }
    if (/[;|&\n]/.test(char)) {
      parts.push(part)
      part = ''
      last = ''
      continue
    }
    add(char)
  }
  if (quote !== null) return { unclearAt: command.length }
  return [...parts, part].map((text) => text.trim()).filter((text) => text !== '')
}

/**
 * Returns all that may be a command somewhere in the line, for a list that forbids: quotes are taken as separators as well, so that
 * `sh -c "rm -rf ."` holds `rm -rf .`. It finds too much rather than too little.
 */
export function shellFragments(command: string): string[] {
  const cut = command.split(/[;|&\n\r(){}`"'!]|\$\(/)
  const fragments = [command, ...cut].map((text) => text.trim()).filter((text) => text !== '')
  return [...new Set(fragments.flatMap((text) => [text, withoutWrappers(text)]))]
}

/** `FOO=1 sudo -n rm x` is `rm x`, and so is `/bin/rm x`. */
function withoutWrappers(text: string): string {
  const words = text.split(/\s+/)
  let first = 0
  while (
    first < words.length &&
    /^([A-Za-z_]\w*=.*|sudo|env|command|exec|nohup|time|nice|then|do|else|!|-[A-Za-z]+)$/.test(words[first]!)
  ) {
    first++
  }
  const program = words[first]
  if (program === undefined) return text
  return [program.slice(program.lastIndexOf('/') + 1), ...words.slice(first + 1)].join(' ')
}
