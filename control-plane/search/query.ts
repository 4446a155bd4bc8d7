import type { SearchedWord, WordExpression } from '../db/word-index.ts'
import { isPaired, tokenGroups, type TokenGroup } from './tokens.ts'

/** What somebody searches for. */
export interface SearchQuery {
  items: readonly SearchItem[]
}

/** One word, or several that were written as one thing. */
export interface SearchItem {
  words: readonly SearchedWord[]
  /** The same put together; each in the text as well where it was written so. Empty for a single word. */
  compounds: readonly SearchedWord[]
  /** All of more than two as one, as in `getRunId`; null when there are too many. */
  whole: SearchedWord | null
}

/** A query of 100 characters has that many at most, but for signs that are folded to several words. */
const maxWords = 50

/**
 * Reads a query. The last word is what somebody is about to write, so it may be the beginning of one. null: there is no word
 * in it, so nothing can be found.
 */
export function readQuery(text: string): SearchQuery | null {
  const groups = [...tokenGroups(text)]
  const items: SearchItem[] = []
  let left = maxWords
  for (const [index, group] of groups.entries()) {
    if (left === 0) break
    items.push(itemOf(group, { isLast: index === groups.length - 1, atMost: left }))
    left -= Math.min(left, group.tokens.length)
  }
  return items.length === 0 ? null : { items }
}

function itemOf(
  { tokens, compounds, whole }: TokenGroup,
  { isLast, atMost }: { isLast: boolean; atMost: number },
): SearchItem {
  const words = unique(
    tokens
      .slice(0, atMost)
      .filter((_, index) => !isEndOfRun(tokens, index))
      .map(({ text }, index, all) => searched(text, isLast && index === all.length - 1)),
  )
  const isCut = tokens.length > atMost
  if (compounds.length === 0 || isCut) return { words, compounds: [], whole: null }
  return {
    words,
    compounds: compounds.map((text, index) => ({ text, isPrefix: isLast && index === compounds.length - 1 })),
    whole: whole === null ? null : { text: whole, isPrefix: isLast },
  }
}

/** The last character of a run of pairs is in the pair before it already. */
function isEndOfRun(tokens: TokenGroup['tokens'], index: number): boolean {
  const [token, before] = [tokens[index]!, tokens[index - 1]]
  return before !== undefined && [...token.text].length === 1 && isPaired(token.text) && before.end > token.start
}

function searched(text: string, isLast: boolean): SearchedWord {
  const length = [...text].length
  // One Chinese character begins pairs. Korean hangs particles on its words.
  const isPrefix = isPaired(text) ? length === 1 : isHangul.test(text) ? length > 1 : isLast && length > 1
  return { text, isPrefix }
}
const isHangul = /^\p{Script=Hangul}+$/u

const unique = (words: readonly SearchedWord[]): SearchedWord[] => [
  ...new Map(words.map((word) => [`${word.text}${word.isPrefix ? '*' : ''}`, word])).values(),
]

/** What the index is asked. `exact`: what was written as one thing must stand so in the page. */
export function expressionOf({ items }: SearchQuery, isExact: boolean): WordExpression {
  return items.map(({ words, compounds, whole }) => {
    if (compounds.length === 0) return [words]
    const asOne = whole === null ? [compounds] : [compounds, [whole]]
    return isExact ? asOne : [...asOne, words]
  })
}

export const hasCompounds = ({ items }: SearchQuery): boolean => items.some(({ compounds }) => compounds.length > 0)
