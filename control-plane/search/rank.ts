import type { SearchedWord } from '../db/word-index.ts'
import type { BodyWords } from './page-words.ts'
import type { SearchQuery } from './query.ts'

/** A page that the index found, and what its rank depends on. The same on both databases, so the rank is. */
export interface Found extends Pick<BodyWords, 'headings' | 'counts' | 'length'> {
  /** Words of the title. */
  title: string
  /** The page has as one thing what the query has as one. */
  isExact: boolean
}

/** The weights of a word in the title, in a heading, and at most in the body. */
const weights = { title: 6, heading: 2, body: 2 }
/** A word that only begins as it was asked counts less. */
const prefixFactor = 0.7
/**
 * The bonus for what is one thing in the query and in the page, which comes before the same words apart, wherever those stand: more than
 * all else adds up to.
 */
const asOneBonus = 1_000
/** The length of a page, in words, that neither raises nor lowers the rank. */
const usualLength = 400

/** The higher, the better. Only numbers of pages for the same query compare. */
export function rankOf({ items }: SearchQuery, page: Found): number {
  let rank = 0
  let inTitle = 0
  for (const { words, compounds, whole } of items) {
    const found = words.map((word) => scoreOf(word, page))
    inTitle += found.filter(({ title }) => title > 0).length
    rank += mean(found.map(({ title, rest }) => title + rest))
    if (!page.isExact || compounds.length === 0) continue
    const asOne = [...compounds, ...(whole === null ? [] : [whole])].map((word) => scoreOf(word, page))
    rank += Math.max(...asOne.map(({ title, rest }) => title + rest))
  }
  // A title of these words alone says more than one that has them among others.
  const titleLength = page.title.trim().split(' ').length
  const isAsOne = page.isExact && items.some(({ compounds }) => compounds.length > 0)
  return rank * (1 + (0.5 * Math.min(inTitle, titleLength)) / titleLength) + (isAsOne ? asOneBonus : 0)
}

function scoreOf(word: SearchedWord, page: Found): { title: number; rest: number } {
  // The index found the page, so a word that is counted nowhere stands there once.
  const count = Math.max(1, countOf(word, page.counts))
  const body = count / (count + 0.6 + (0.6 * page.length) / usualLength)
  return {
    title: weights.title * holds(word, page.title),
    rest: weights.heading * holds(word, page.headings) + weights.body * body,
  }
}

/** 1: the word stands there; less: only one that begins so. */
function holds({ text, isPrefix }: SearchedWord, words: string): number {
  if (words.includes(` ${text} `)) return 1
  return isPrefix && words.includes(` ${text}`) ? prefixFactor : 0
}

/** Words that only begin so count less. */
function countOf({ text, isPrefix }: SearchedWord, counts: string): number {
  let count = 0
  for (let at = counts.indexOf(` ${text}`); at >= 0; at = counts.indexOf(` ${text}`, at + 1)) {
    const end = counts.indexOf(':', at)
    const isWhole = end === at + 1 + text.length
    if (!isWhole && !isPrefix) continue
    count += Number.parseInt(counts.slice(end + 1, counts.indexOf(' ', end)), 10) * (isWhole ? 1 : prefixFactor)
  }
  return count
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
