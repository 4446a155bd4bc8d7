import { idFrom, type WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { wikiPageId } from '../../../../shared/api/ids.ts'
import type { Db } from '../../../db/open.ts'
import { findPageRevision, type WikiRevisionRow } from '../revision-store.ts'
import { findPage, findPageBySlug, type WikiPageRow } from '../store.ts'

/** The page that a `wik_` id or a slug names, live or archived; null when there is none. Everybody of a workspace sees all of its pages. */
export async function lookUpPage(db: Db, workspaceId: WorkspaceUuid, reference: string): Promise<WikiPageRow | null> {
  return wikiPageId.safeParse(reference).success
    ? findPage(db, workspaceId, idFrom(reference))
    : findPageBySlug(db, workspaceId, reference)
}

/** Fails with `wiki_page_not_found`. */
export async function namedPage(db: Db, workspaceId: WorkspaceUuid, reference: string): Promise<WikiPageRow> {
  return (await lookUpPage(db, workspaceId, reference)) ?? fail('wiki_page_not_found', { param: 'id' })
}

/** Fails with `wiki_revision_not_found`. */
export async function namedRevision(
  db: Db,
  page: WikiPageRow,
  { id, param }: { id: string; param: 'revisionId' | 'baseRevisionId' },
): Promise<WikiRevisionRow> {
  return (await findPageRevision(db, page.id, id)) ?? fail('wiki_revision_not_found', { param })
}
