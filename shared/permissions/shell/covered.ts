import { quotedIn, type Quoted } from './parts.ts'

/** `Authorization: Bearer `, `X-Api-Key: `. */
const header = /^[\w-]{1,100}:[ \t]{0,8}(?:(?:bearer|basic|token)[ \t]{1,8})?$/i

/**
 * Says whether a value that follows a blank may be covered where a person reads the command: the value of a header
 * (`'X-Token: value'`), or one in JSON. Anything else may be the program that is run, also between quotes: `sh -c 'x=token: value'`
 * runs what comes last. `valueAt` and `to`: where it begins, and ends.
 */
export function mayCover(command: string): (valueAt: number, to: number) => boolean {
  const quoted = quotedIn(command)
  const known = new Map<Quoted, boolean>()
  const isJson = (word: Quoted) => {
    const before = known.get(word)
    if (before !== undefined) return before
    const is = readsAsJson(word.text)
    known.set(word, is)
    return is
  }
  return (valueAt, to) => {
    const word = lastBefore(quoted, valueAt)
    if (word === null || word.to < to) return false
    const before = command.slice(word.from + 1, valueAt)
    // The header would be a command on a line of its own.
    return header.test(before) || (/[^\s"'\\][ \t"'\\]*$/.test(lastLineOf(before.slice(-mostBlank))) && isJson(word))
  }
}

/** The characters before a value beyond which nobody looks for what stands there. */
const mostBlank = 200

function lastBefore(quoted: readonly Quoted[], at: number): Quoted | null {
  let [low, high] = [0, quoted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (quoted[middle]!.from < at) low = middle + 1
    else high = middle
  }
  return quoted[low - 1] ?? null
}

const lastLineOf = (text: string) => text.slice(text.lastIndexOf('\n') + 1)

function readsAsJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}
