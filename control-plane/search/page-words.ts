import type { WordsByPart } from '../db/word-index.ts'
import { tokenGroups } from './tokens.ts'

/** What the index and the ranking know of a page. */
export interface PageWords {
  byPart: WordsByPart
  /** The words of the title, as in ` roll back `. */
  title: string
  headings: string
  /** How often words stand in the body, as in ` run:12 id:3 `: those that do more than once, most frequent first. */
  counts: string
  /** The number of words in the body. */
  length: number
}

/** From this on a word counts as frequent in a page. */
const often = 3
/** Of all different words of a part, in UTF-8: PostgreSQL refuses 1 MiB. Only folded ligatures come near it. */
const maxIndexed = 700_000
/** Of what the ranking reads of a page, in UTF-16 units. */
const maxRead = 8_000

export function pageWords(page: { title: string; headings: readonly string[]; body: string }): PageWords {
  const title = countWords(page.title)
  const headings = countWords(page.headings.join('\n'))
  const body = countWords(page.body)
  const frequent = [...body.counts].filter(([, count]) => count >= often).map(([word]) => word)
  const parts = [title.counts.keys(), headings.counts.keys(), frequent, body.counts.keys()]
  const known = new Set<string>()
  let left = maxIndexed
  const [inTitle = [], inHeadings = [], inOften = [], inBody = []] = parts.map((words) =>
    [...words].filter((word) => {
      left -= known.has(word) ? 0 : Buffer.byteLength(word)
      return left >= 0 && !known.has(word) && known.add(word)
    }),
  )
  return {
    byPart: { title: inTitle, heading: inHeadings, often: inOften, body: inBody },
    title: listed([...title.counts.keys()]),
    headings: listed([...headings.counts.keys()]),
    counts: listed(
      [...body.counts]
        .filter(([, count]) => count > 1)
        .toSorted(([, a], [, b]) => b - a)
        .map(([word, count]) => `${word}:${count}`),
    ),
    length: body.length,
  }
}

function countWords(text: string): { counts: Map<string, number>; length: number } {
  const counts = new Map<string, number>()
  const count = (word: string) => counts.set(word, (counts.get(word) ?? 0) + 1)
  let length = 0
  for (const { tokens, compounds, whole } of tokenGroups(text)) {
    length += tokens.length
    for (const token of tokens) count(token.text)
    compounds.forEach(count)
    if (whole !== null) count(whole)
  }
  return { counts, length }
}

/** As many as fit, each between blanks. */
function listed(words: readonly string[]): string {
  let list = ' '
  for (const word of words) {
    if (list.length + word.length >= maxRead) break
    list += `${word} `
  }
  return list
}
