import type { WorkspaceUuid } from '../../../../../shared/lib/ids.ts'
import { fail } from '../../../../../shared/api/errors.ts'
import type { PageKind } from '../../../../../shared/api/wiki-fields.ts'
import type { World } from '../../../../../shared/lib/world.ts'
import type { Db } from '../../../../db/open.ts'
import type { Searchable } from '../../../../search/searchable.ts'
import { indexSubject, removeSubject } from '../../../../search/store.ts'
import { replaceLinks } from '../../own/link-store.ts'
import { removeRelationsOf } from '../../own/relation-store.ts'
import { removeSource } from '../../own/source-store.ts'
import { removePageRevisions } from '../../revision-store.ts'
import { findPageBySlug, insertPage, removePageRow, replacePage, type WikiPageRow } from '../../store.ts'

// The life of a page.
//
//   (none) --make--> live <--archive, unarchive--> archived
//   live, archived --remove--> (none), its slug free

/** Makes a live page without a revision. Fails with `wiki_page_slug_conflict`. */
export async function makePage(
  db: Db,
  {
    workspaceId,
    slug,
    title,
    kind,
    sourceRef,
  }: { workspaceId: WorkspaceUuid; slug: string; title: string; kind: PageKind; sourceRef: string | null },
  world: World,
): Promise<WikiPageRow> {
  await checkSlug(db, workspaceId, slug)
  const now = world.now()
  const page: WikiPageRow = {
    id: world.id('wik_'),
    workspaceId,
    slug,
    title,
    kind,
    sourceRef,
    currentRevisionId: null,
    tokenCount: null,
    revisionCount: 0,
    archivedAt: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  await insertPage(db, page)
  return page
}

/** Fails with `wiki_page_slug_conflict` when a page, live or archived, has the slug. */
export async function checkSlug(db: Db, workspaceId: WorkspaceUuid, slug: string): Promise<void> {
  const other = await findPageBySlug(db, workspaceId, slug)
  if (other === null) return
  const message = `The ${other.archivedAt === null ? 'live' : 'archived'} page ${other.id} has the slug ${slug}.`
  fail('wiki_page_slug_conflict', { param: 'slug', message, details: { pageId: other.id } })
}

/** The text that readers see of a page that is to be live again; it was read before the transaction. */
export interface Revived {
  /** null: none was published. */
  revisionId: string | null
  searchable: Searchable
}

interface PageChanges {
  slug?: string | undefined
  /** A page that is live again is found by this text. */
  archived?: true | { liveAs: Searchable } | undefined
}

/** The text by which a live page is found. Fails with `transient_conflict` when what readers see is another text by now. */
export function textOfRevived(page: WikiPageRow, revived: Revived | null): Searchable {
  return revived !== null && revived.revisionId === page.currentRevisionId
    ? revived.searchable
    : fail('transient_conflict')
}

/** Changes slug and archive state; what is left out stays. Does nothing when all is so already. */
export async function changePage(
  db: Db,
  page: WikiPageRow,
  { slug = page.slug, archived }: PageChanges,
  world: World,
): Promise<WikiPageRow> {
  const isArchived = archived === undefined ? page.archivedAt !== null : archived === true
  const isSame = isArchived === (page.archivedAt !== null)
  if (slug === page.slug && isSame) return page
  const now = world.now()
  const after = { ...page, slug, archivedAt: isArchived ? (page.archivedAt ?? now) : null, updatedAt: now }
  await replacePage(db, page, after)
  if (!isSame) await changeIndex(db, page, archived)
  return { ...after, version: page.version + 1 }
}

async function changeIndex(db: Db, page: WikiPageRow, archived: PageChanges['archived']): Promise<void> {
  const { workspaceId, id: subject, title } = page
  if (typeof archived !== 'object') await removeSubject(db, { workspaceId, subject })
  else await indexSubject(db, { workspaceId, subject, title }, archived.liveAs)
}

/** Links of other pages stay and lead to nothing, until another page has the slug. */
export async function removePage(db: Db, { id, workspaceId }: WikiPageRow): Promise<void> {
  await removeSubject(db, { workspaceId, subject: id })
  await removeSource(db, id)
  await replaceLinks(db, id, [])
  await removeRelationsOf(db, id)
  await removePageRevisions(db, id)
  await removePageRow(db, id)
}
