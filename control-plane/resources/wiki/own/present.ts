import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { WikiPage, WikiPageSummary, WikiSource } from '../../../../shared/api/wiki-fields.ts'
import type { Db } from '../../../db/open.ts'
import type { WikiLinkRow } from './link-store.ts'
import { listRelatedPages } from './relation-store.ts'
import { findRevisionBody } from '../revision-store.ts'
import { listPagesByIds, listPagesBySlugs, type WikiPageRow } from '../store.ts'

export function presentPageSummary(page: WikiPageRow): WikiPageSummary {
  const { id, slug, title, kind, sourceRef, currentRevisionId, tokenCount } = page
  return {
    object: 'wiki_page',
    id,
    slug,
    title,
    kind,
    archivedAt: toTimestamp(page.archivedAt),
    sourceRef,
    currentRevisionId,
    isPublished: currentRevisionId !== null,
    tokenCount,
    createdAt: toTimestamp(page.createdAt),
    updatedAt: toTimestamp(page.updatedAt),
  }
}

export async function presentPage(db: Db, page: WikiPageRow): Promise<WikiPage> {
  const { id, currentRevisionId } = page
  return {
    ...presentPageSummary(page),
    body: currentRevisionId === null ? null : await findRevisionBody(db, currentRevisionId),
    supersedes: await listRelatedPages(db, id, 'supersedes'),
    supersededBy: await listRelatedPages(db, id, 'supersededBy'),
  }
}

/** Links with the pages to which they lead now. Where no page has a slug any more, that is the page which had it when the link was published. */
export async function presentSources(
  db: Db,
  workspaceId: WorkspaceUuid,
  links: readonly WikiLinkRow[],
): Promise<Map<number, WikiSource>> {
  const slugs = links.flatMap(({ targetSlug }) => targetSlug ?? [])
  const ids = links.flatMap(({ targetPageId }) => targetPageId ?? [])
  const bySlug = new Map((await listPagesBySlugs(db, { workspaceId, slugs })).map((page) => [page.slug, page]))
  const byId = new Map((await listPagesByIds(db, { workspaceId, ids })).map((page) => [page.id, page]))
  const pageOf = ({ targetSlug, targetPageId }: WikiLinkRow): WikiPageRow | null =>
    bySlug.get(targetSlug ?? '') ?? (targetPageId === null ? null : byId.get(targetPageId)) ?? null
  return new Map(
    links.map((link) => {
      const { ord, url, text } = link
      const page = pageOf(link)
      const shown = page && {
        id: page.id,
        slug: page.slug,
        title: page.title,
        archivedAt: toTimestamp(page.archivedAt),
      }
      return [ord, { object: 'wiki_source', ord, url, text, page: shown }]
    }),
  )
}
