import type { WikiPageId, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { nullableTime, text } from '../../../db/columns.ts'
import { wikiPageId, workspaceUuid } from '../../../db/id-columns.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'
import { z } from 'zod'

const sources = table('wiki_sources', {
  pageId: wikiPageId,
  workspaceId: workspaceUuid,
  /** The name under which the directory is ingested. */
  root: text,
  /** The path of the file, relative to the directory. */
  path: text,
  /** The hash of the text that its page got last, whether it was published or not. */
  sha256: text,
})
export type WikiSourceRow = RowOf<typeof sources>

const listed = z.object({ pageId: wikiPageId, path: text, sha256: text, archivedAt: nullableTime })
export type ListedSource = z.output<typeof listed>

/** The files of a root, and whether their pages are archived; in no order. */
export async function listSources(
  db: Db,
  { workspaceId, root }: { workspaceId: WorkspaceUuid; root: string },
): Promise<ListedSource[]> {
  const rows: unknown[] = await db('wiki_sources')
    .join('wiki_pages', 'wiki_pages.id', 'wiki_sources.page_id')
    .where({ 'wiki_sources.workspace_id': workspaceId, root })
    .select({ pageId: 'page_id', path: 'path', sha256: 'sha256', archivedAt: 'archived_at' })
  return rows.map((row) => listed.parse(row))
}

/** The file that a page comes from; null: from none. */
export async function findSource(db: Db, pageId: WikiPageId): Promise<WikiSourceRow | null> {
  return sources.find(db, { pageId })
}

/** The pages of these files, as far as they were ingested. */
export async function listPagesOfFiles(
  db: Db,
  { workspaceId, root, paths }: { workspaceId: WorkspaceUuid; root: string; paths: readonly string[] },
): Promise<Pick<WikiSourceRow, 'path' | 'pageId'>[]> {
  return paths.length === 0
    ? []
    : sources.list(
        sources
          .from(db)
          .where({ workspace_id: workspaceId, root })
          .whereIn('path', [...paths]),
      )
}

export async function insertSource(db: Db, source: WikiSourceRow): Promise<void> {
  await sources.insert(db, source)
}

export async function updateSource(db: Db, pageId: WikiPageId, sha256: string): Promise<void> {
  await db('wiki_sources').where({ page_id: pageId }).update({ sha256 })
}

/** The page comes from no file any more, if it did. */
export async function removeSource(db: Db, pageId: WikiPageId): Promise<void> {
  await db('wiki_sources').where({ page_id: pageId }).delete()
}
