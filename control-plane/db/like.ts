/** A pattern for `like ... escape '\'` that finds the text anywhere, whatever characters it holds. */
export const likeContaining = (text: string): string => `%${text.replaceAll(/[\\%_]/g, (c) => `\\${c}`)}%`

/**
 * Returns the letters of a text beyond ASCII that have another case: the capitals, and in the same order the small letters. A
 * letter whose other case is more than one letter (`ß`) is left out.
 */
export function casesOf(text: string): { capitals: string; small: string } {
  const pairs = new Map<string, string>()
  for (const letter of text) {
    const small = letter.toUpperCase().toLowerCase()
    const capital = small.toUpperCase()
    if (letter > '\x7f' && isOne(small) && isOne(capital) && capital !== small) pairs.set(capital, small)
    // The small letter that ends a Greek word.
    if (small === 'σ') pairs.set('ς', small)
  }
  return { capitals: [...pairs.keys()].join(''), small: [...pairs.values()].join('') }
}

const isOne = (letters: string): boolean => String.fromCodePoint(letters.codePointAt(0) ?? 0) === letters

/** Makes the function `holds_text` that connections to SQLite get: 1 when the value holds the text, whatever the case of its letters. */
export function textFinder(): (value: string, text: string) => number {
  let wanted: { text: string; pattern: RegExp } | null = null
  return (value, text) => {
    if (wanted?.text !== text)
      wanted = { text, pattern: new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`), 'iu') }
    return wanted.pattern.test(value) ? 1 : 0
  }
}
