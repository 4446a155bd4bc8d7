import type { SearchedWord, WordExpression } from '../db/word-index.ts'
import { isPaired, tokenGroups, type TokenGroup } from './tokens.ts'

/** The things that somebody searches for. */
export interface SearchQuery {
  items: readonly SearchItem[]
}

/** A word, or several that were written as one thing. */
export interface SearchItem {
  words: readonly SearchedWord[]
  /** The words put together; each in the text as well where it was written so. Empty for a single word. */
  compounds: readonly SearchedWord[]
  /** The words all as one, as in `getRunId`; null when there are too many. */
  whole: SearchedWord | null
}

/** A query of 100 characters has that many at most, but for signs that are folded to several words. */
const maxWords = 50

/**
 * Reads a query. The last word is what somebody is about to write, so it may be the beginning of one. null: there is no word
 * in it, so nothing can be found.
 */
export function readQuery(given: string): SearchQuery | null {
  // Places in the text stay those of its words.
  const text = given.normalize('NFKC')
  const groups = [...tokenGroups(text)]
  const starts = wordStarts(text)
  const items: SearchItem[] = []
  let left = maxWords
  for (const [index, group] of groups.entries()) {
    if (left <= 0) break
    const item = itemOf({ ...group, tokens: group.tokens.slice(0, left) }, starts, index === groups.length - 1)
    if (group.tokens.length > left) items.push({ ...item, compounds: [], whole: null })
    else items.push(item)
    left -= group.tokens.length
  }
  return items.length === 0 ? null : { items }
}

const segmenter = new Intl.Segmenter('zh', { granularity: 'word' })

/** Returns where words begin that have no spaces between them. Of what stands there as one only the words must be found. */
const wordStarts = (text: string): ReadonlySet<number> =>
  new Set([...segmenter.segment(text)].map(({ index }) => index).concat(text.length))

function itemOf(group: TokenGroup, starts: ReadonlySet<number>, isLast: boolean): SearchItem {
  const words: SearchedWord[] = []
  /** Pairs of the last character of a word and the first of the next. */
  const joints: SearchedWord[] = []
  for (const [index, { text, start, end }] of group.tokens.entries()) {
    if (!isPaired(text)) {
      words.push({ text, isPrefix: mayGoOn(text, isLast && index === group.tokens.length - 1) })
      continue
    }
    const [character = '', ...others] = text
    const middle = start + character.length
    const isJoint = others.length > 0 && starts.has(middle)
    if (isJoint) joints.push({ text, isPrefix: false })
    else if (middle < end) words.push({ text, isPrefix: false })
    // A word of one character: it begins whatever pair it is in.
    if (starts.has(start) && starts.has(middle)) words.push({ text: character, isPrefix: true })
  }
  const last = isLast && joints.length === 0
  const compounds = group.compounds.map((text, index, { length }) => ({ text, isPrefix: last && index === length - 1 }))
  const whole = group.whole ?? (group.tokens.length === 2 ? group.compounds[0] : undefined)
  return {
    words: unique(words),
    compounds: [...compounds, ...unique(joints)],
    whole: whole === undefined ? null : { text: whole, isPrefix: isLast },
  }
}

/** Returns whether a longer word will do. Korean hangs particles on its words. */
function mayGoOn(text: string, isLast: boolean): boolean {
  return (isLast || isHangul.test(text)) && text.length > 1
}
const isHangul = /^\p{Script=Hangul}+$/u

const unique = (words: readonly SearchedWord[]): SearchedWord[] => [
  ...new Map(words.map((word) => [`${word.text}${word.isPrefix ? '*' : ''}`, word])).values(),
]

/** Returns what the index is asked. `isExact`: what was written as one thing must stand so in the page. */
export function expressionOf({ items }: SearchQuery, isExact: boolean): WordExpression {
  return items.map(({ words, compounds, whole }) => {
    if (compounds.length === 0) return [words]
    const asOne = [[...words, ...compounds], ...(whole === null ? [] : [[whole]])]
    return isExact ? asOne : [...asOne, words]
  })
}

export const hasCompounds = ({ items }: SearchQuery): boolean => items.some(({ compounds }) => compounds.length > 0)
