import { z } from 'zod'
import { cursorOf, pageOf } from '../../../../shared/api/paging.ts'
import type { wikiRoutes } from '../../../../shared/api/wiki.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { listSnippets, maxFound } from '../../../search/find.ts'
import { search } from '../../../search/search.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { presentPageSummary } from '../own/present.ts'
import { listPagesByIds, type WikiPageRow } from '../store.ts'

/** The number of rows that were shown before. Rows are in the order of their rank, which is that of no column. */
const cursor = z.tuple([z.number().int().positive().max(maxFound)])

/** Lists the pages that a text finds, best first, each with where it was found. */
export async function found(
  { db, caller: { workspaceId }, query }: HandlerInput<(typeof wikiRoutes)['list']>,
  text: string,
  { meaning }: Pick<ResourceDependencies, 'meaning'>,
) {
  const { limit, archived = false, neverPublished } = query
  const skipped = cursorOf(query, cursor)?.[0] ?? 0
  // Archived pages are left out of searches.
  const ranked = archived ? [] : await search(db, { workspaceId, text, meaning })
  const ids = ranked.map(({ subject }) => subject)
  const pages = new Map((await listPagesByIds(db, { workspaceId, ids })).map((page) => [page.id, page]))
  const rows = ranked
    .map((page, index) => ({ ...page, place: index + 1 }))
    .slice(skipped)
    .filter(({ subject }) => isAskedFor(pages.get(subject), neverPublished))
    .slice(0, limit + 1)
  const matches = await listSnippets(db, { workspaceId, text, pages: rows.slice(0, limit) })
  return pageOf({
    rows,
    limit,
    keyOf: ({ place }) => [place],
    present: ({ subject }) => ({ ...presentPageSummary(pages.get(subject)!), match: matches.get(subject) ?? null }),
  })
}

/** A page that went since it was found is passed over. */
function isAskedFor(page: WikiPageRow | undefined, neverPublished: boolean | undefined): boolean {
  if (page === undefined) return false
  return neverPublished === undefined || neverPublished === (page.currentRevisionId === null)
}
