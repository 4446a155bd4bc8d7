import { idFrom, type WikiPageId } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import type { WikiLinkRow } from '../../control-plane/resources/wiki/own/link-store.ts'
import { insertPageRevision, type WikiRevisionRow } from '../../control-plane/resources/wiki/revision-store.ts'
import { insertPage, type WikiPageRow } from '../../control-plane/resources/wiki/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

// Rows of the wiki for store tests.

export function pageRow(workspaceId: string, changes: Partial<WikiPageRow> = {}): WikiPageRow {
  return {
    id: realWorld.id('wik_'),
    workspaceId: idFrom(workspaceId),
    slug: realWorld.uuid(),
    title: 'A page',
    kind: 'markdown',
    sourceRef: null,
    currentRevisionId: realWorld.id('wrev_'),
    tokenCount: 3,
    revisionCount: 1,
    archivedAt: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
}

export function wikiRevisionRow(
  pageId: WikiPageId,
  number: number,
  changes: Partial<WikiRevisionRow> = {},
): WikiRevisionRow {
  return {
    id: realWorld.id('wrev_'),
    pageId,
    number,
    title: 'A page',
    baseRevisionId: null,
    sourceRef: null,
    authorType: 'user',
    authorRef: idFrom('usr_writer'),
    taskId: null,
    runId: null,
    sizeBytes: 11,
    failedChecks: [],
    createdAt: at,
    ...changes,
  }
}

export async function seedPage(db: Db, workspaceId: string, changes: Partial<WikiPageRow> = {}): Promise<WikiPageRow> {
  const page = pageRow(workspaceId, changes)
  await insertPage(db, page)
  if (page.currentRevisionId !== null)
    await insertPageRevision(db, wikiRevisionRow(page.id, 1, { id: page.currentRevisionId }), 'Some words.')
  return page
}

export function linkRow(
  { id: pageId, workspaceId }: WikiPageRow,
  ord: number,
  changes: Partial<WikiLinkRow> = {},
): WikiLinkRow {
  const row = { pageId, workspaceId, ord, url: `https://example.com/${ord}`, text: 'it' }
  return { ...row, targetSlug: null, targetPageId: null, ...changes }
}
