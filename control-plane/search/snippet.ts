import type { SearchQuery } from './query.ts'
import { fold } from './fold.ts'
import { tokenGroups } from './tokens.ts'

/** The place of a page that a query found, as its author wrote it. */
export interface Snippet {
  /** The headings above it. */
  heading: string
  text: string
  /** The place in the body of the page where the text begins, in UTF-16 units. */
  offset: number
  /** The places of words of the query in the text, in UTF-16 units. */
  ranges: { start: number; end: number }[]
}

const maxText = 240
/** The length of what is shown before the first word that was found, in UTF-16 units. */
const before = 60
const maxRanges = 20

interface Piece {
  heading: string
  /** The place in the body where it begins, in UTF-16 units. */
  start: number
  body: string
}

/** The best of these chunks of a page: the one with most words of the query, the first of several. null: there is none. */
export function snippetOf(query: SearchQuery | null, chunks: readonly Piece[]): Snippet | null {
  const terms = termsOf(query)
  let best: { chunk: Piece; found: FoundIn; count: number } | null = null
  for (const chunk of chunks) {
    if (best?.count === terms.length) break
    if (best !== null && !mayHold(chunk.body, terms)) continue
    const found = findIn(chunk.body, terms)
    const count = new Set(found.hits.map(({ term }) => term)).size
    if (best === null || count > best.count) best = { chunk, found, count }
  }
  return best === null ? null : cutOut(best.chunk, best.found)
}

interface Term {
  text: string
  isPrefix: boolean
}

const termsOf = (query: SearchQuery | null): Term[] =>
  (query?.items ?? []).flatMap(({ words, whole }) => [...words, ...(whole === null ? [] : [whole])])

/** Much quicker than reading the words of the text. */
function mayHold(text: string, terms: readonly Term[]): boolean {
  const folded = fold(text)
  return terms.some((term) => folded.includes(term.text))
}

interface FoundIn {
  ranges: Snippet['ranges']
  /** Each term where it stands, in the order of the text. */
  hits: { term: Term; start: number; end: number }[]
}

function findIn(text: string, terms: readonly Term[]): FoundIn {
  const ranges: Snippet['ranges'] = []
  const hits: FoundIn['hits'] = []
  const matching = (word: string) =>
    terms.filter((term) => (term.isPrefix ? word.startsWith(term.text) : word === term.text))
  const mark = (of: readonly Term[], { start, end }: { start: number; end: number }) => {
    if (of.length === 0) return
    for (const term of of) hits.push({ term, start, end })
    const last = ranges.at(-1)
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end)
    else ranges.push({ start, end })
  }
  for (const { tokens, compounds, whole } of tokenGroups(text)) {
    for (const token of tokens) mark(matching(token.text), token)
    const asOne = whole ?? (tokens.length === 2 ? compounds[0] : undefined)
    if (asOne !== undefined) mark(matching(asOne), { start: tokens[0]!.start, end: tokens.at(-1)!.end })
  }
  return { ranges, hits: hits.toSorted((a, b) => a.start - b.start) }
}

/** Returns where the excerpt's first word stands: the place with the most terms near to each other, the first of several. */
function bestStart(hits: FoundIn['hits']): number {
  let best = { start: 0, count: 0 }
  for (const [index, { start }] of hits.entries()) {
    const near = new Set<Term>()
    for (let at = index; at < hits.length && hits[at]!.start < start + maxText - before; at++)
      if (hits[at]!.end <= start + maxText - before) near.add(hits[at]!.term)
    if (near.size > best.count) best = { start, count: near.size }
  }
  return best.start
}

function cutOut({ heading, start: at, body: text }: Piece, { ranges, hits }: FoundIn): Snippet {
  const first = bestStart(hits)
  let from = Math.max(0, first - before)
  // The excerpt begins neither in the middle of a word nor in that of a character.
  if (from > 0) from = wordStart(text, from, first)
  let to = Math.min(text.length, from + maxText)
  if (/[\ud800-\udbff]/.test(text[to - 1] ?? '')) to--
  const shown = text.slice(from, to)
  const skipped = shown.length - shown.trimStart().length
  const start = from + skipped
  const end = start + shown.trim().length
  return {
    heading,
    text: text.slice(start, end),
    offset: at + start,
    ranges: ranges
      .filter((range) => range.start < end && range.end > start)
      .slice(0, maxRanges)
      .map((range) => ({ start: Math.max(range.start, start) - start, end: Math.min(range.end, end) - start })),
  }
}

function wordStart(text: string, from: number, first: number): number {
  const blank = text.slice(from, first).search(/\s/)
  if (blank >= 0) return from + blank
  return /[\udc00-\udfff]/.test(text[from] ?? '') ? from + 1 : from
}
