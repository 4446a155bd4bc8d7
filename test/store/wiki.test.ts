import { idFrom, type WikiPageId } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import { listLinks, replaceLinks } from '../../control-plane/resources/wiki/own/link-store.ts'
import {
  insertRelation,
  isSuperseding,
  listRelatedPages,
  lockRelations,
  removeRelation,
  removeRelationsOf,
} from '../../control-plane/resources/wiki/own/relation-store.ts'
import {
  findPageRevision,
  findRevisionBody,
  insertPageRevision,
  listPageRevisions,
  removePageRevisions,
} from '../../control-plane/resources/wiki/revision-store.ts'
import {
  countPages,
  findPage,
  findPageBySlug,
  insertPage,
  listPages,
  listPagesByIds,
  listPagesBySlugs,
  removePageRow,
  replacePage,
} from '../../control-plane/resources/wiki/store.ts'
import {
  findSource,
  insertSource,
  listPagesOfFiles,
  listSources,
  removeSource,
  updateSource,
} from '../../control-plane/resources/wiki/own/source-store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedWorkspace } from './seed.ts'
import { linkRow, pageRow, seedPage, wikiRevisionRow } from './wiki-rows.ts'

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)

onBoth(
  'a page is found by id and slug in its workspace, changed once, and its slug is its own there',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const elsewhere = await seedWorkspace(root)
    const page = await seedPage(root, workspaceId, { slug: 'über-uns' })
    expect(await findPage(root, workspaceId, page.id)).toEqual(page)
    expect(await findPage(root, elsewhere, page.id)).toBeNull()
    expect(await findPageBySlug(root, workspaceId, 'über-uns')).toEqual(page)
    expect(await findPageBySlug(root, elsewhere, 'über-uns')).toBeNull()
    expect(await findPageBySlug(root, workspaceId, 'Über-uns')).toBeNull()
    await seedPage(root, elsewhere, { slug: 'über-uns' })
    await expect(insertPage(root, pageRow(workspaceId, { slug: 'über-uns' }))).rejects.toThrow(/unique/i)
    await replacePage(root, page, { ...page, archivedAt: at + 1 })
    await expect(replacePage(root, page, { ...page, title: 'Other' })).rejects.toMatchObject({
      code: 'transient_conflict',
    })
    expect(await listPagesByIds(root, { workspaceId, ids: [] })).toEqual([])
    // More than a statement takes values.
    const many = Array.from({ length: 70_000 }, (_, n) => idFrom<WikiPageId>(`wik_${n}`))
    expect(idsOf(await listPagesByIds(root, { workspaceId, ids: [...many, page.id] }))).toEqual([page.id])
    expect(idsOf(await listPagesByIds(root, { workspaceId, ids: [page.id, idFrom('wik_none')] }))).toEqual([page.id])
    expect(await listPagesByIds(root, { workspaceId: elsewhere, ids: [page.id] })).toEqual([])
    expect(await listPagesBySlugs(root, { workspaceId, slugs: [] })).toEqual([])
    expect(idsOf(await listPagesBySlugs(root, { workspaceId, slugs: ['über-uns', 'none'] }))).toEqual([page.id])
    await removePageRevisions(root, page.id)
    await removePageRow(root, page.id)
    expect(await findPage(root, workspaceId, page.id)).toBeNull()
  },
)

onBoth('pages are listed newest first, by state', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const first = await seedPage(root, workspaceId, { title: 'ÄRGER mit 50%_Rabatt', slug: 'first' })
  const second = await seedPage(root, workspaceId, { title: 'Second', slug: 'äpfel', createdAt: at + 1 })
  const draft = await seedPage(root, workspaceId, { title: 'Draft', currentRevisionId: null, createdAt: at + 2 })
  const old = await seedPage(root, workspaceId, { title: 'Old ärger', archivedAt: at, createdAt: at + 3 })
  await seedPage(root, await seedWorkspace(root), { title: 'Ärger' })
  const listed = async (more: object) =>
    idsOf(await listPages(root, { workspaceId, isArchived: false, limit: 10, ...more }))
  expect(await listed({})).toEqual([draft.id, second.id, first.id])
  expect(await listed({ isArchived: true })).toEqual([old.id])
  expect(await listed({ isArchived: null })).toEqual([old.id, draft.id, second.id, first.id])
  expect(await listed({ isPublished: true })).toEqual([second.id, first.id])
  expect(await listed({ isPublished: false })).toEqual([draft.id])
  expect(await listed({ before: { createdAt: at + 1, id: second.id } })).toEqual([first.id])
  expect(await listed({ limit: 1 })).toEqual([draft.id, second.id])
  expect(await countPages(root, { workspaceId })).toBe(3)
  expect(await countPages(root, { workspaceId, isPublished: true })).toBe(2)
})

onBoth('revisions are listed without their bodies, newest first', async ({ root }) => {
  const page = await seedPage(root, await seedWorkspace(root))
  const second = wikiRevisionRow(page.id, 2, { failedChecks: ['wiki_citation_style'], sourceRef: 'a/b.md' })
  await insertPageRevision(root, second, 'ü'.repeat(131_072))
  expect(await findPageRevision(root, page.id, second.id)).toEqual(second)
  expect(await findPageRevision(root, idFrom('wik_other'), second.id)).toBeNull()
  expect(await findRevisionBody(root, second.id)).toBe('ü'.repeat(131_072))
  const third = wikiRevisionRow(page.id, 3)
  await insertPageRevision(root, third, '')
  const listed = async (below: number | null, limit: number) =>
    (await listPageRevisions(root, { pageId: page.id, below, limit })).map(({ number }) => number)
  expect(await listed(null, 1)).toEqual([3, 2])
  expect(await listed(3, 10)).toEqual([2, 1])
  await expect(insertPageRevision(root, wikiRevisionRow(page.id, 3), 'x')).rejects.toThrow(/unique/i)
  await removePageRevisions(root, page.id)
  expect(await listed(null, 10)).toEqual([])
})

onBoth('links are those of the current text, and say which live pages link to a page', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const target = await seedPage(root, workspaceId, { slug: 'target' })
  const bySlug = await seedPage(root, workspaceId, { createdAt: at + 1 })
  const byId = await seedPage(root, workspaceId, { createdAt: at + 2 })
  const archived = await seedPage(root, workspaceId, { archivedAt: at })
  const elsewhere = await seedPage(root, await seedWorkspace(root))
  const toSlug = { targetSlug: 'target' }
  await replaceLinks(root, bySlug.id, [linkRow(bySlug, 0, toSlug), linkRow(bySlug, 1, toSlug)])
  await replaceLinks(root, byId.id, [linkRow(byId, 0), linkRow(byId, 1, { targetPageId: target.id })])
  for (const page of [archived, elsewhere, target]) await replaceLinks(root, page.id, [linkRow(page, 0, toSlug)])
  const linking = async () =>
    idsOf(await listPages(root, { workspaceId, isArchived: false, linkingTo: target, limit: 10 }))
  expect(await linking()).toEqual([byId.id, bySlug.id])
  await replaceLinks(root, bySlug.id, [])
  expect(await linking()).toEqual([byId.id])

  const many = Array.from({ length: 1_000 }, (_, ord) => linkRow(bySlug, ord))
  await replaceLinks(root, bySlug.id, many)
  const listed = async (after: number | null, limit: number) =>
    (await listLinks(root, { pageId: bySlug.id, after, limit })).map(({ ord }) => ord)
  expect(await listed(null, 2)).toEqual([0, 1, 2])
  expect(await listed(997, 10)).toEqual([998, 999])
})

onBoth('what a page supersedes, directly and through others, also in circles', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [a, b, c] = [
    await seedPage(root, workspaceId, { title: 'A' }),
    await seedPage(root, workspaceId, { title: 'B' }),
    await seedPage(root, workspaceId, { title: 'C' }),
  ]
  const related = (from: { id: WikiPageId }, to: { id: WikiPageId }) => ({
    fromPageId: from.id,
    toPageId: to.id,
    createdAt: at,
  })
  await inTransaction(root, (tx) => lockRelations(tx, workspaceId))
  expect(await insertRelation(root, related(a, b))).toBe(true)
  expect(await insertRelation(root, related(a, b))).toBe(false)
  expect(await insertRelation(root, related(b, c))).toBe(true)
  expect(await isSuperseding(root, a.id, c.id)).toBe(true)
  expect(await isSuperseding(root, c.id, a.id)).toBe(false)
  expect(await listRelatedPages(root, b.id, 'supersedes')).toEqual([{ id: c.id, slug: c.slug, title: 'C' }])
  expect(await listRelatedPages(root, b.id, 'supersededBy')).toEqual([{ id: a.id, slug: a.slug, title: 'A' }])
  await insertRelation(root, related(c, a))
  expect(await isSuperseding(root, a.id, a.id)).toBe(true)
  expect(await isSuperseding(root, a.id, idFrom('wik_none'))).toBe(false)
  await replacePage(root, c, { ...c, archivedAt: at })
  expect(await listRelatedPages(root, b.id, 'supersedes')).toEqual([])
  expect(await removeRelation(root, related(a, b))).toBe(true)
  expect(await removeRelation(root, related(a, b))).toBe(false)
  await removeRelationsOf(root, c.id)
  expect(await isSuperseding(root, b.id, c.id)).toBe(false)
  expect(await isSuperseding(root, c.id, a.id)).toBe(false)
})

onBoth('the files of a root are known by their paths, with what their pages are', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [page, old] = [await seedPage(root, workspaceId), await seedPage(root, workspaceId, { archivedAt: at })]
  const source = (pageId: WikiPageId, path: string) => ({ pageId, workspaceId, root: 'docs', path, sha256: 'a' })
  await insertSource(root, source(page.id, 'a.md'))
  await insertSource(root, source(old.id, 'b.md'))
  expect(await findSource(root, page.id)).toMatchObject({ path: 'a.md' })
  expect(await findSource(root, idFrom('wik_none'))).toBeNull()
  const { workspaceId: ofSource, root: ofFiles } = source(page.id, 'a.md')
  const files = { workspaceId: ofSource, root: ofFiles, paths: ['a.md', 'none.md'] }
  expect(await listPagesOfFiles(root, files)).toMatchObject([{ path: 'a.md', pageId: page.id }])
  expect(await listPagesOfFiles(root, { ...files, root: 'elsewhere' })).toEqual([])
  await updateSource(root, page.id, 'b')
  const listed = await listSources(root, { workspaceId, root: 'docs' })
  expect(listed.toSorted((one, other) => one.path.localeCompare(other.path))).toEqual([
    { pageId: page.id, path: 'a.md', sha256: 'b', archivedAt: null },
    { pageId: old.id, path: 'b.md', sha256: 'a', archivedAt: at },
  ])
  expect(await listSources(root, { workspaceId, root: 'doc' })).toEqual([])
  expect(await listSources(root, { workspaceId: await seedWorkspace(root), root: 'docs' })).toEqual([])
  await removeSource(root, page.id)
  expect(await listSources(root, { workspaceId, root: 'docs' })).toHaveLength(1)
})
