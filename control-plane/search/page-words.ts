import { tokenGroups } from './tokens.ts'

/** The words of a text for the index and for the ranking: flat, as a thread hands it over. Words stand between blanks. */
export interface BodyWords {
  heading: string
  /** The words that the body has often. */
  often: string
  /** The words that the body has. */
  body: string
  /** The words of the headings that the ranking looks at. */
  headings: string
  /** The counts of words in the body, as in ` run:12 id:3 `, of those that stand there more than once, most frequent first. */
  counts: string
  /** The number of words in the body. */
  length: number
}

/** A word counts as frequent in a page from this count on. */
const often = 3
/** The bytes of different words, in UTF-8: PostgreSQL refuses 1 MiB of all together. Only folded ligatures come near it. */
const maxBody = 900_000
const maxPart = 50_000
/** The length of what the ranking reads of a page, in UTF-16 units. */
const maxRead = 8_000

export function bodyWords({ headings, body }: { headings: readonly string[]; body: string }): BodyWords {
  const inHeadings = countWords(headings.join('\n'))
  const inBody = countWords(body)
  const repeated = [...inBody.counts].filter(([, count]) => count > 1).toSorted(([, a], [, b]) => b - a)
  return {
    heading: listed(inHeadings.counts.keys(), maxPart),
    often: listed(
      repeated.filter(([, count]) => count >= often).map(([word]) => word),
      maxPart,
    ),
    body: listed(inBody.counts.keys(), maxBody),
    headings: listed(inHeadings.counts.keys(), maxRead),
    counts: listed(
      repeated.map(([word, count]) => `${word}:${count}`),
      maxRead,
    ),
    length: inBody.length,
  }
}

/** The words of a title, each once. */
export const indexedTitleWords = (title: string): string => listed(countWords(title).counts.keys(), maxRead)

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

/** Lists as many of the words as fit. */
function listed(words: Iterable<string>, maxBytes: number): string {
  const list: string[] = []
  let left = maxBytes
  for (const word of words) {
    left -= Buffer.byteLength(word) + 1
    if (left < 0) break
    list.push(word)
  }
  return ` ${list.map((word) => `${word} `).join('')}`
}
