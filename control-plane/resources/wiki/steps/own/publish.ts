import type { ActorRef, RunId, TaskId } from '../../../../../shared/lib/ids.ts'
import type { PublishCheck } from '../../../../../shared/api/wiki-fields.ts'
import { byteLength } from '../../../../../shared/lib/byte-length.ts'
import type { World } from '../../../../../shared/lib/world.ts'
import type { Db } from '../../../../db/open.ts'
import { readForSearch } from '../../../../search/searchable.ts'
import { indexSubject } from '../../../../search/store.ts'
import { replaceLinks, type WikiLinkRow } from '../../own/link-store.ts'
import type { PageLink, PageReading } from '../../read-page.ts'
import { linkedFiles, withFileTargets } from '../../own/source-links.ts'
import { findSource, listPagesOfFiles } from '../../own/source-store.ts'
import { insertPageRevision, type WikiRevisionRow } from '../../revision-store.ts'
import { tokenCountOf } from '../../own/rules.ts'
import { listPagesByIds, listPagesBySlugs, replacePage, type WikiPageRow } from '../../store.ts'

/** A text that becomes a revision. */
export interface RevisionDraft {
  title: string
  body: string
  /** The findings of `read-page.ts` in the body. */
  reading: Pick<PageReading, 'links' | 'searchable'>
  author: { type: 'user' | 'agent'; id: ActorRef }
  sourceRef?: string | null
  taskId?: TaskId | null
  runId?: RunId | null
  /** The checks that it does not pass: it is then kept, and what readers see stays. */
  failedChecks?: readonly PublishCheck[]
}

/**
 * Stores a text as the next revision of a page. Unless it failed a check, it is what readers see from then on, and its links are
 * the page's, and it is found by its words. Fails with `transient_conflict` when somebody else changed the page since it was read.
 */
export async function addRevision(
  db: Db,
  page: WikiPageRow,
  { title, body, reading, author, sourceRef = null, taskId = null, runId = null, failedChecks = [] }: RevisionDraft,
  world: World,
): Promise<{ page: WikiPageRow; revision: WikiRevisionRow }> {
  const now = world.now()
  const sizeBytes = byteLength(body)
  const revision: WikiRevisionRow = {
    id: world.id('wrev_'),
    pageId: page.id,
    number: page.revisionCount + 1,
    title,
    baseRevisionId: page.currentRevisionId,
    sourceRef,
    authorType: author.type,
    authorRef: author.id,
    taskId,
    runId,
    sizeBytes,
    failedChecks: [...failedChecks],
    createdAt: now,
  }
  const isPublished = failedChecks.length === 0
  const isTitled = isPublished || page.currentRevisionId === null
  const after: WikiPageRow = {
    ...page,
    revisionCount: revision.number,
    ...(isTitled && { title }),
    ...(isPublished && { currentRevisionId: revision.id, tokenCount: tokenCountOf(sizeBytes), updatedAt: now }),
  }
  await replacePage(db, page, after)
  await insertPageRevision(db, revision, body)
  if (isPublished) await replaceLinks(db, page.id, await resolved(db, page, await withTargets(db, page, reading.links)))
  // Before its first text is published a page is found by its title.
  if (isTitled && page.archivedAt === null) {
    const searchable = isPublished ? reading.searchable : readForSearch({ kind: page.kind, body: '' })
    await indexSubject(db, { workspaceId: page.workspaceId, subject: page.id, title }, searchable)
  }
  return { page: { ...after, version: page.version + 1 }, revision }
}

/** Makes links to other files of its root lead to their pages where the page comes from a file. */
async function withTargets(db: Db, page: WikiPageRow, links: readonly PageLink[]): Promise<readonly PageLink[]> {
  const source = page.sourceRef === null ? null : await findSource(db, page.id)
  if (source === null) return links
  const { workspaceId, root, path } = source
  const found = await listPagesOfFiles(db, { workspaceId, root, paths: linkedFiles(links, path) })
  return withFileTargets(links, { path, pages: new Map(found.map((file) => [file.path, file.pageId])) })
}

/** A link by slug remembers the page that has the slug now: it stays that page's when its slug changes. */
async function resolved(
  db: Db,
  { id: pageId, workspaceId }: WikiPageRow,
  links: readonly PageLink[],
): Promise<WikiLinkRow[]> {
  const slugs = links.flatMap(({ target }) => (target !== null && 'slug' in target ? target.slug : []))
  const ids = links.flatMap(({ target }) => (target !== null && 'pageId' in target ? target.pageId : []))
  const bySlug = new Map((await listPagesBySlugs(db, { workspaceId, slugs })).map((page) => [page.slug, page.id]))
  const known = new Set((await listPagesByIds(db, { workspaceId, ids })).map(({ id }) => id))
  return links.map(({ url, text, target }, ord) => {
    const row = { pageId, ord, workspaceId, url, text }
    if (target === null) return { ...row, targetSlug: null, targetPageId: null }
    if ('slug' in target) return { ...row, targetSlug: target.slug, targetPageId: bySlug.get(target.slug) ?? null }
    return { ...row, targetSlug: null, targetPageId: known.has(target.pageId) ? target.pageId : null }
  })
}
