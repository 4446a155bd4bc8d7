import { isSystemShell } from '../../../shared/permissions/shell/system-shell.ts'

/**
 * The script of `/bin/bash -c 'script'`, as codex writes the command of its shell tool; any other command as it is.
 * A command that is not for certain one shell, one flag and one script stays whole, so that nothing is judged as less
 * than it is.
 */
export function scriptOf(command: string): string {
  const words = wordsOf(command)
  if (words?.length !== 3) return command
  const [shell, flag, script] = words as [string, string, string]
  return isSystemShell(shell) && /^-l?c$/.test(flag) ? script : command
}

/** The words of a quoted line; null where the line holds more than words and quotes. */
function wordsOf(line: string): string[] | null {
  const words: string[] = []
  let word: string | null = null
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!
    if (char === ' ') {
      if (word !== null) words.push(word)
      word = null
    } else if (char === "'") {
      const end = line.indexOf("'", at + 1)
      if (end < 0) return null
      word = (word ?? '') + line.slice(at + 1, end)
      at = end
    } else if (char === '"') {
      const quoted = doubleQuoted(line, at + 1)
      if (quoted === null) return null
      word = (word ?? '') + quoted.text
      at = quoted.end
    } else if (/[\w@%+=:,./-]/.test(char)) {
      word = (word ?? '') + char
    } else return null
  }
  if (word !== null) words.push(word)
  return words
}

/** A double-quoted part in which nothing is expanded; `end` is the place of its closing quote. */
function doubleQuoted(line: string, from: number): { text: string; end: number } | null {
  let text = ''
  for (let at = from; at < line.length; at++) {
    const char = line[at]!
    if (char === '"') return { text, end: at }
    if (char === '\\' && /["\\$`]/.test(line[at + 1] ?? '')) text += line[++at]!
    else if (char === '$' || char === '`' || char === '\\') return null
    else text += char
  }
  return null
}
