import type { WikiPageId } from '../../../../shared/lib/ids.ts'
import { int, nullableText, text } from '../../../db/columns.ts'
import { wikiPageId, workspaceUuid } from '../../../db/id-columns.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'

/** The links in the current text of each page. */
const links = table('wiki_links', {
  pageId: wikiPageId,
  /** The place of the link in the body, from 0. */
  ord: int,
  workspaceId: workspaceUuid,
  url: text,
  text,
  /** The slug that it names; null when it names no page, or one by its id. */
  targetSlug: nullableText,
  /** The page that it named when the text was published. */
  targetPageId: wikiPageId.nullable(),
})
export type WikiLinkRow = RowOf<typeof links>

/** SQLite takes so many values in one statement that these fit. */
const rowsAtOnce = 500

/** The links of a page are these from now on. */
export async function replaceLinks(db: Db, pageId: WikiPageId, rows: readonly WikiLinkRow[]): Promise<void> {
  await db('wiki_links').where({ page_id: pageId }).delete()
  for (let at = 0; at < rows.length; at += rowsAtOnce) await links.insert(db, rows.slice(at, at + rowsAtOnce))
}

/** Lists the links of a page in their order, those after `after`; returns one row more than `limit`. */
export async function listLinks(
  db: Db,
  { pageId, after, limit }: { pageId: WikiPageId; after: number | null; limit: number },
): Promise<WikiLinkRow[]> {
  const query = links.from(db).where({ page_id: pageId }).orderBy('ord')
  if (after !== null) void query.where('ord', '>', after)
  return links.list(query.limit(limit + 1))
}
