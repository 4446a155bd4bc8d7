import type { WikiPageId, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { text, time } from '../../../db/columns.ts'
import { wikiPageId } from '../../../db/id-columns.ts'
import { lockName } from '../../../db/dialect.ts'
import type { Db } from '../../../db/open.ts'
import { table, type RowOf } from '../../../db/table.ts'

/** `fromPageId` supersedes `toPageId`. */
const relations = table('wiki_relations', { fromPageId: wikiPageId, toPageId: wikiPageId, createdAt: time })
export type WikiRelationRow = RowOf<typeof relations>

/** Two relations that close a circle together are not made at once. */
export async function lockRelations(db: Db, workspaceId: WorkspaceUuid): Promise<void> {
  await lockName(db, `wiki_relations:${workspaceId}`)
}

/** Returns false when it is there already. */
export async function insertRelation(db: Db, relation: WikiRelationRow): Promise<boolean> {
  return relations.insertNew(db, relation, ['fromPageId', 'toPageId'])
}

/** Returns whether there was one. */
export async function removeRelation(
  db: Db,
  { fromPageId, toPageId }: Pick<WikiRelationRow, 'fromPageId' | 'toPageId'>,
): Promise<boolean> {
  return (await db('wiki_relations').where({ from_page_id: fromPageId, to_page_id: toPageId }).delete()) === 1
}

/** Removes those in which a page stands on either side. */
export async function removeRelationsOf(db: Db, pageId: WikiPageId): Promise<void> {
  await db('wiki_relations').where({ from_page_id: pageId }).orWhere({ to_page_id: pageId }).delete()
}

const named = z.object({ id: wikiPageId, slug: text, title: text })
export type NamedPage = z.infer<typeof named>
/** The number of pages that are shown of either side. */
const shownRelated = 100

/** The live pages that this one supersedes itself, or that supersede it; oldest relation first. */
export async function listRelatedPages(
  db: Db,
  pageId: WikiPageId,
  direction: 'supersedes' | 'supersededBy',
): Promise<NamedPage[]> {
  const [own, other] = direction === 'supersedes' ? ['from_page_id', 'to_page_id'] : ['to_page_id', 'from_page_id']
  const rows: unknown[] = await db('wiki_relations')
    .join('wiki_pages', 'wiki_pages.id', `wiki_relations.${other}`)
    .where({ [`wiki_relations.${own}`]: pageId })
    .whereNull('wiki_pages.archived_at')
    .orderBy(['wiki_relations.created_at', 'wiki_pages.id'])
    .limit(shownRelated)
    .select({ id: 'wiki_pages.id', slug: 'wiki_pages.slug', title: 'wiki_pages.title' })
  return rows.map((row) => named.parse(row))
}

/** True when `from` supersedes `to`, directly or through others. */
export async function isSuperseding(db: Db, from: WikiPageId, to: WikiPageId): Promise<boolean> {
  const found: unknown[] = await db
    .withRecursive('superseded', (chain) => {
      void chain
        .select('to_page_id')
        .from('wiki_relations')
        .where({ from_page_id: from })
        .union((more) => {
          void more
            .select('wiki_relations.to_page_id')
            .from('wiki_relations')
            .join('superseded', 'superseded.to_page_id', 'wiki_relations.from_page_id')
        })
    })
    .from('superseded')
    .where({ to_page_id: to })
    .select('to_page_id')
    .limit(1)
  return found.length > 0
}
