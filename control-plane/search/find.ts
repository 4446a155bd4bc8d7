import type { WikiPageId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Db } from '../db/open.ts'
import { listByWords, wordParts } from '../db/word-index.ts'
import { expressionOf, hasCompounds, readQuery, type SearchQuery } from './query.ts'
import { rankOf } from './rank.ts'
import { snippetOf, type Snippet } from './snippet.ts'
import { listChunks, listSearchPages, type SearchPageRow } from './store.ts'

/** The most pages that a search finds. */
export const maxFound = 200
/** UTF-16 units of text that are read for the snippets of one page of results; more than one page of usual texts has. */
const maxRead = 1_000_000

export interface Ranked {
  subject: WikiPageId
  /** The size of its body, in UTF-16 units. */
  size: number
  /** The chunk to show when none has the words. */
  ord?: number | undefined
}

/**
 * Lists the pages with all of these words, best first. The index knows which pages have a word and in which part of them; where
 * more pages have it than are shown, those with it in narrower parts come first, then the newest. What is left is ranked by
 * numbers that both databases store alike.
 */
export async function findRanked(
  db: Db,
  { workspaceId, query }: { workspaceId: WorkspaceUuid; query: SearchQuery },
): Promise<Ranked[]> {
  for (let attempt = 1; ; attempt++) {
    const found = await candidates(db, workspaceId, query)
    const rows = await listSearchPages(db, { workspaceId, ids: [...found.keys()] })
    // A page that was indexed again in between has another number now.
    if (rows.length < found.size && attempt < 3) continue
    return rows
      .map((row) => ({ row, rank: rankOf(query, { ...row, isExact: found.get(row.id) === true }) }))
      .toSorted((a, b) => b.rank - a.rank || b.row.id - a.row.id)
      .map(({ row: { subject, size } }) => ({ subject, size }))
  }
}

/** Numbers of pages, each with whether what is one thing in the query is so in the page. */
async function candidates(
  db: Db,
  workspaceId: WorkspaceUuid,
  query: SearchQuery,
): Promise<Map<SearchPageRow['id'], boolean>> {
  const found = new Map<number, boolean>()
  for (const isExact of hasCompounds(query) ? [true, false] : [false]) {
    const words = expressionOf(query, isExact)
    const list = (part: (typeof wordParts)[number]) =>
      listByWords(db, { workspaceId, words, part, limit: maxFound + 1 })
    const add = (ids: readonly number[]) => {
      for (const id of ids) if (found.size < maxFound && !found.has(id)) found.set(id, isExact)
    }
    const all = await list('body')
    if (all.length > maxFound - found.size)
      for (const part of wordParts.slice(0, -1)) if (found.size < maxFound) add(await list(part))
    add(all)
  }
  return found
}

/** Finds where each of these pages has the words. A page without text is left out. */
export async function listSnippets(
  db: Db,
  { workspaceId, text, pages }: { workspaceId: WorkspaceUuid; text: string; pages: readonly Ranked[] },
): Promise<Map<string, Snippet>> {
  let left = maxRead
  const [subjects, firstOnly]: [WikiPageId[], WikiPageId[]] = [[], []]
  for (const { subject, size } of pages) {
    left -= size
    ;(left >= 0 ? subjects : firstOnly).push(subject)
  }
  const chunks = await listChunks(db, { workspaceId, subjects })
  const firsts = await listChunks(db, { workspaceId, subjects: firstOnly, isFirst: true })
  const bySubject = Map.groupBy([...chunks, ...firsts], ({ subject }) => subject)
  const query = readQuery(text)
  const ords = new Map(pages.map(({ subject, ord }) => [subject, ord ?? 0]))
  const snippets = new Map<string, Snippet>()
  for (const [subject, ofPage] of bySubject) {
    const ord = ords.get(subject)
    const snippet = snippetOf(
      query,
      ofPage.toSorted((a, b) => Number(b.ord === ord) - Number(a.ord === ord)),
    )
    if (snippet !== null) snippets.set(subject, snippet)
  }
  return snippets
}
