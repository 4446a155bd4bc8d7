import type { WikiPageId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { pageKinds } from '../../../shared/api/wiki-fields.ts'
import { int, nullableInt, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { wikiPageId, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'

const pages = table('wiki_pages', {
  id: wikiPageId,
  workspaceId: workspaceUuid,
  slug: text,
  /** The title of the current revision; of the newest one when none was published. */
  title: text,
  kind: z.enum(pageKinds),
  /** The path of the file from which it comes; null: people and agents write it. */
  sourceRef: nullableText,
  /** null: never published. */
  currentRevisionId: nullableText,
  tokenCount: nullableInt,
  /** The number of the newest revision. */
  revisionCount: int,
  archivedAt: nullableTime,
  version: int,
  createdAt: time,
  updatedAt: time,
})
export type WikiPageRow = RowOf<typeof pages>

export async function insertPage(db: Db, page: WikiPageRow): Promise<void> {
  await pages.insert(db, page)
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replacePage(db: Db, before: WikiPageRow, after: WikiPageRow): Promise<void> {
  await pages.replace(db, before, after)
}

export async function findPage(db: Db, workspaceId: WorkspaceUuid, id: WikiPageId): Promise<WikiPageRow | null> {
  return pages.find(db, { workspaceId, id })
}

/** The page with this slug, live or archived. */
export async function findPageBySlug(db: Db, workspaceId: WorkspaceUuid, slug: string): Promise<WikiPageRow | null> {
  return pages.find(db, { workspaceId, slug })
}

// A complete ingest may archive more pages than a statement takes values, so they are one value.
const byIds = pages.query('where workspace_id = ? and id in ?')

/** Lists pages in no order. */
export async function listPagesByIds(
  db: Db,
  { workspaceId, ids }: { workspaceId: WorkspaceUuid; ids: readonly WikiPageId[] },
): Promise<WikiPageRow[]> {
  return byIds.list(db, [workspaceId, ids])
}

/** Lists pages in no order. */
export async function listPagesBySlugs(
  db: Db,
  { workspaceId, slugs }: { workspaceId: WorkspaceUuid; slugs: readonly string[] },
): Promise<WikiPageRow[]> {
  if (slugs.length === 0) return []
  return pages.list(
    pages
      .from(db)
      .where({ workspace_id: workspaceId })
      .whereIn('slug', [...slugs]),
  )
}

export interface PageFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  /** Archived pages instead of live ones; null: both. */
  isArchived: boolean | null
  isPublished?: boolean
  /** The page to which the listed pages link in their text, itself left out. */
  linkingTo?: Pick<WikiPageRow, 'id' | 'slug'>
}

/** Lists pages newest first; returns one row more than `limit`. */
export async function listPages(db: Db, filter: PageFilter): Promise<WikiPageRow[]> {
  const { workspaceId, isArchived, isPublished, linkingTo } = filter
  const query = pages.from(db).where({ workspace_id: workspaceId })
  if (isArchived !== null) void (isArchived ? query.whereNotNull('archived_at') : query.whereNull('archived_at'))
  if (isPublished !== undefined)
    void (isPublished ? query.whereNotNull('current_revision_id') : query.whereNull('current_revision_id'))
  if (linkingTo !== undefined) {
    const { id, slug } = linkingTo
    const links = () => db('wiki_links').select('page_id')
    const bySlug = links().where({ workspace_id: workspaceId, target_slug: slug })
    // The links are one list: with an "or" of two PostgreSQL would walk the pages.
    void query.whereNot({ id }).whereIn('id', links().where({ target_page_id: id }).union(bySlug))
  }
  return pages.list(newestFirst(query, filter))
}

/** The number of live pages; with `isPublished` only of those that were published. */
export async function countPages(
  db: Db,
  {
    workspaceId,
    isPublished = false,
    withArchived = false,
  }: { workspaceId: WorkspaceUuid; isPublished?: boolean; withArchived?: boolean },
): Promise<number> {
  const query = db('wiki_pages').where({ workspace_id: workspaceId })
  if (!withArchived) void query.whereNull('archived_at')
  if (isPublished) void query.whereNotNull('current_revision_id')
  return countOf(query)
}

/** Removes the page, once all that refers to it is removed. */
export async function removePageRow(db: Db, id: WikiPageId): Promise<void> {
  await db('wiki_pages').where({ id }).delete()
}
