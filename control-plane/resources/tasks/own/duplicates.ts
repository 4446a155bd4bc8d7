// Decides whether two tasks look like the same work. Titles are compared by their words, without case, accents, punctuation, small
// words and endings; words with digits must be the same, so that `Step 1` is not `Step 2`. Descriptions only help to
// decide where the titles alone do not.

export interface Described {
  title: string
  description: string | null
}

const small = new Set(
  'a an the of to in on at for from by with and or is are be it its this that these those as into when please'.split(
    ' ',
  ),
)

/** Characters of a text that are compared, counted once its letters are taken apart: one character may become eighteen. */
const mostRead = 5_000

/** Lower-case words without accents and punctuation. What is written without spaces between words stays one word. */
function wordsOf(text: string): string[] {
  return (
    text
      .slice(0, mostRead)
      .normalize('NFKD')
      .slice(0, mostRead)
      .replaceAll(/\p{M}/gu, '')
      .toLowerCase()
      .replaceAll(/['’`]/g, '')
      .match(/[\p{L}\p{N}]+/gu) ?? []
  )
}

/** The word without the commonest English endings, so that `pages` is `page`, and `tests` and `testing` are `test`. */
function stemOf(word: string): string {
  if (word.length < 4 || /\d/.test(word)) return word
  const singular = word.replace(/(?<=s|x|z|ch|sh)es$|(?<![sui])s$/, '')
  const bare = singular.replace(/(?<=[aeiouy].*)(?<!e)(ing|ed)$/, '')
  const stem = bare.length < 3 ? singular : bare.replace(/([^aeiouls])\1$/, '$1')
  return stem.length < 4 ? stem : stem.replace(/e$/, '')
}

/**
 * The words of a title in alphabetic order, small words left out (unless there are no others); kept with the task, so that
 * a new one can be compared with many. Empty when the title has no words at all.
 */
export function sortedTitleWords(title: string): string {
  const words = wordsOf(title)
  const telling = words.filter((word) => !small.has(word))
  return (telling.length === 0 ? words : telling).map(stemOf).sort().join(' ')
}

/** The title as it is read: words in their order. Titles without words (`!!!`) are compared as they are. */
const plainTitle = (title: string) => wordsOf(title).join(' ') || title.trim()

/** Words of a title that are compared, and those of them that may be slips: each is compared with every open task. */
const mostWords = 100
const mostSlips = 12

/**
 * Returns whether a title is alike enough for the description to be worth reading, judged by the stored words. Cheap, for every
 * open task: most share so few words with this one that nothing else of them need be looked at.
 */
export function alikeBy(words: string): (otherWords: string) => boolean {
  const own = words.split(' ', mostWords)
  const known = new Set(own)
  const slips = Math.min(mostSlips, own.filter(mayBeSlip).length)
  return (otherWords) => {
    if (words === otherWords) return true
    const others = otherWords.split(' ', mostWords)
    // Half of all words are shared when these are a third of both together.
    const isHalf = (shared: number) => shared * 3 >= own.length + others.length
    if (!isHalf(Math.min(own.length, others.length))) return false
    const mostShared = others.filter((other) => known.has(other)).length + slips
    return isHalf(mostShared) && overlapOf(own, others) >= 0.5
  }
}

/** Returns whether another task looks like the same work as this one, whose words are read once. */
export function comparedWith(one: Described): (other: Described) => boolean {
  const title = plainTitle(one.title)
  const words = sortedTitleWords(one.title).split(' ')
  let pairs: ReadonlySet<string> | null | undefined
  return (other) => {
    if (title === plainTitle(other.title)) return true
    const otherWords = sortedTitleWords(other.title).split(' ')
    if (!haveSameNumbers(words, otherWords)) return false
    const overlap = overlapOf(words.slice(0, mostWords), otherWords.slice(0, mostWords))
    if (overlap < 0.5) return false
    pairs = pairs === undefined ? pairsOf(one.description) : pairs
    const described = likenessOf(pairs, pairsOf(other.description))
    // Titles with the same words in another order or form mean the same work, unless the descriptions speak of different things.
    if (overlap === 1 && words.length >= 2) return described === null || described >= 0.4
    // Titles that say it differently, with nearly the same long description.
    return described !== null && described >= 0.8
  }
}

/** Words with digits must all be there on both sides. */
function haveSameNumbers(words: readonly string[], others: readonly string[]): boolean {
  const numbered = (list: readonly string[]) => list.filter((word) => /\d/.test(word)).join(' ')
  return numbered(words) === numbered(others)
}

/** Share of the words that both have, of all that either has; words that differ by a slip of the pen count as one. */
function overlapOf(words: readonly string[], others: readonly string[]): number {
  const left = new Map<string, number>()
  for (const other of others) left.set(other, (left.get(other) ?? 0) + 1)
  const unmatched: string[] = []
  for (const word of words) {
    const count = left.get(word) ?? 0
    if (count > 0) left.set(word, count - 1)
    else unmatched.push(word)
  }
  const unmatchedOthers = [...left.keys()].filter((other) => left.get(other)! > 0)
  const shared = words.length - unmatched.length + countSlips(unmatched, unmatchedOthers)
  return shared / (words.length + others.length - shared)
}

function countSlips(words: readonly string[], others: readonly string[]): number {
  const left = others.filter(mayBeSlip).slice(0, mostSlips)
  let count = 0
  for (const word of words.filter(mayBeSlip).slice(0, mostSlips)) {
    const at = left.findIndex((other) => isSlip(word, other))
    if (at < 0) continue
    left.splice(at, 1)
    count++
  }
  return count
}

const mayBeSlip = (word: string): boolean => word.length >= 7

/** Long words with one letter added, left out, or two exchanged; never the first, which often changes the meaning. */
function isSlip(word: string, other: string): boolean {
  const [long, short] = word.length >= other.length ? [word, other] : [other, word]
  if (!mayBeSlip(short) || long.length - short.length > 1 || long[0] !== short[0]) return false
  if (/\d/.test(long + short)) return false
  let at = 0
  while (at < short.length && long[at] === short[at]) at++
  if (long.length > short.length) return long.slice(at + 1) === short.slice(at)
  const swapped = long[at] === short[at + 1] && long[at + 1] === short[at]
  return swapped && long.slice(at + 2) === short.slice(at + 2)
}

const fewWords = 6

/** The likeness of two descriptions by their pairs of words, from 0 to 1; null when one is too short to tell. */
function likenessOf(pairs: ReadonlySet<string> | null, otherPairs: ReadonlySet<string> | null): number | null {
  if (pairs === null || otherPairs === null) return null
  let shared = 0
  for (const pair of pairs) if (otherPairs.has(pair)) shared++
  return shared / (pairs.size + otherPairs.size - shared)
}

/** The words of a description, each with the one that follows; null when there are too few. */
function pairsOf(description: string | null): ReadonlySet<string> | null {
  const words = wordsOf(description ?? '')
  return words.length < fewWords ? null : new Set(words.slice(1).map((word, at) => `${words[at]} ${word}`))
}
