/** The most words and characters that are made of one word. */
const limits = { words: 256, chars: 65_536, depth: 32 } as const

/**
 * The words that a shell makes of one with braces: `{{rm,-rf},x}` is three. Ranges (`{a..z}`) are not spelt out: `range` stands
 * for each. Returns null when it is too much to spell out.
 */
export function expandBraces(word: string, range: string): string[] | null {
  const ends = matchingBraces(word)
  let left: number = limits.chars
  let isTooMuch = false

  /** Returns each way to write what stands from `from` up to `to`. */
  const expand = (from: number, to: number, depth: number): string[] => {
    let made = ['']
    let plainFrom = from
    const append = (texts: readonly string[]) => {
      const count = made.length * texts.length
      left -= made.reduce((sum, { length }) => sum + length, 0) * texts.length
      left -= texts.reduce((sum, { length }) => sum + length, 0) * made.length
      if (count > limits.words || left < 0 || depth > limits.depth) isTooMuch = true
      if (!isTooMuch) made = made.flatMap((before) => texts.map((text) => before + text))
    }
    for (let at = from; at < to && !isTooMuch; at++) {
      const group = ends.get(at)
      if (group === undefined) continue
      const { end, commas } = group
      const isRange = commas.length === 0 && word.slice(at, end).includes('..')
      // Braces around a single text are part of it; there may be a list within.
      if (commas.length === 0 && !isRange) continue
      append([word.slice(plainFrom, at)])
      const starts = [at, ...commas]
      const items = () => starts.flatMap((start, index) => expand(start + 1, commas[index] ?? end, depth + 1))
      if (commas.length >= limits.words) isTooMuch = true
      else append(isRange ? [range] : items())
      at = end
      plainFrom = end + 1
    }
    if (!isTooMuch) append([word.slice(plainFrom, to)])
    return made
  }

  const words = expand(0, word.length, 0)
  // A shell drops a word of which nothing is left.
  return isTooMuch ? null : words.filter((text) => text !== '')
}

interface Group {
  end: number
  /** The commas that part its items. */
  commas: number[]
}

function matchingBraces(word: string): Map<number, Group> {
  const found = new Map<number, Group>()
  const open: { at: number; commas: number[] }[] = []
  for (let at = 0; at < word.length; at++) {
    const char = word[at]
    if (char === '{') open.push({ at, commas: [] })
    else if (char === ',') open.at(-1)?.commas.push(at)
    else if (char === '}') {
      const group = open.pop()
      if (group) found.set(group.at, { end: at, commas: group.commas })
    }
  }
  return found
}
