import { idFrom } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { listLinks } from '../../control-plane/resources/wiki/own/link-store.ts'
import { readPage } from '../../control-plane/resources/wiki/read-page.ts'
import { findRevisionBody, listPageRevisions } from '../../control-plane/resources/wiki/revision-store.ts'
import { makePage } from '../../control-plane/resources/wiki/steps/own/page.ts'
import { addRevision, type RevisionDraft } from '../../control-plane/resources/wiki/steps/own/publish.ts'
import { findPage } from '../../control-plane/resources/wiki/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { seedWorkspace } from './seed.ts'

// Texts that come from elsewhere than a writer: they are kept also when they fail a check.

const draft = (changes: Partial<RevisionDraft> = {}): RevisionDraft => ({
  title: 'From a file',
  body: 'See [it](elsewhere).',
  reading: readPage({ kind: 'markdown', body: 'See [it](elsewhere).' }),
  author: { type: 'user', id: idFrom('usr_1') },
  sourceRef: 'docs/a.md',
  ...changes,
})

onBoth('a text that failed a check is kept, and what readers see stays', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const about = { workspaceId, slug: 'a', title: 'a.md', kind: 'markdown', sourceRef: 'docs/a.md' } as const
  const made = await makePage(root, about, realWorld)
  await expect(makePage(root, about, realWorld)).rejects.toMatchObject({ code: 'wiki_page_slug_conflict' })

  const failed = await addRevision(root, made, draft({ failedChecks: ['wiki_citation_style'] }), realWorld)
  const never = { title: 'From a file', currentRevisionId: null, tokenCount: null }
  expect(failed.page).toEqual({ ...made, ...never, revisionCount: 1, version: 2 })
  expect(await findPage(root, workspaceId, made.id)).toEqual(failed.page)
  expect(await listLinks(root, { pageId: made.id, after: null, limit: 10 })).toEqual([])

  const first = await addRevision(root, failed.page, draft(), realWorld)
  expect(first.page).toMatchObject({ currentRevisionId: first.revision.id, tokenCount: 5, revisionCount: 2 })
  expect(await listLinks(root, { pageId: made.id, after: null, limit: 10 })).toMatchObject([
    { url: 'elsewhere', targetSlug: 'elsewhere', targetPageId: null },
  ])

  const worse = draft({ title: 'Worse', body: 'Cut.', failedChecks: ['wiki_body_shrunk'] })
  const kept = await addRevision(root, first.page, worse, realWorld)
  expect(kept.page).toEqual({ ...first.page, revisionCount: 3, version: first.page.version + 1 })
  expect(await findRevisionBody(root, kept.revision.id)).toBe('Cut.')
  expect(await listLinks(root, { pageId: made.id, after: null, limit: 10 })).toHaveLength(1)
  const revisions = await listPageRevisions(root, { pageId: made.id, below: null, limit: 10 })
  expect(revisions.map(({ failedChecks, baseRevisionId }) => [failedChecks, baseRevisionId])).toEqual([
    [['wiki_body_shrunk'], first.revision.id],
    [[], null],
    [['wiki_citation_style'], null],
  ])
  await expect(addRevision(root, first.page, draft(), realWorld)).rejects.toMatchObject({ code: 'transient_conflict' })
})
