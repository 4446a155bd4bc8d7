import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isTriedHere } from '../../kit/replicas.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { patch } from '../facts/kit/recipe.ts'
import { textOf } from '../facts/wiki-ingest.ts'

// Directories of files that become pages.

let server: TestServer
let stranger: Person
beforeAll(async () => {
  server = await TestServer.start()
  stranger = await server.addPerson('owner', 'ingest-elsewhere')
})
afterAll(() => server.stop())

const newRoot = () => `docs-${server.world.uuid()}`
const bare = ({ path, sha256 }: ReturnType<typeof textOf>) => ({ path, sha256 })
const plan = (root: string, files: unknown[], token = server.owner.token) =>
  server.ok('/wiki/ingest/plan', { body: { root, files }, token })
const ingest = (body: object, token = server.owner.token) => server.ok('/wiki/ingest', { body, token })
const refused = async (body: object) => outcomeOf(await server.call('/wiki/ingest', { body }))
const find = async (q: string) => (await server.ok(`/wiki/pages?q=${encodeURIComponent(q)}`)).data
const nothing = { created: 0, updated: 0, archived: 0, unchanged: 0, missing: [], failed: [] }

test('links from file to file are backlinks, also to files that come later, and a byte order mark hides no heading', async () => {
  const [root, word] = [newRoot(), `l${server.world.uuid().slice(0, 8)}`]
  const links = ['guide.md', './guide.md#part', 'sub/deep%20one.md', '../up.markdown?x=1', `/${word}/table.csv`]
  const elsewhere = [
    'https://x.example/guide.md',
    '//x.example/guide.md',
    '../../out.md',
    'a.md',
    'guide.txt',
    'mailto:a@b.md',
  ]
  const body = [...links, ...elsewhere].map((url) => `[to](${url})`).join('\n\n')
  const from = textOf(`${word}/a.md`, `\uFEFF# The ${word} start\n\n${body}`)
  const to = [`${word}/guide.md`, `${word}/sub/deep one.md`, 'up.markdown', `${word}/table.csv`].map((path) =>
    textOf(path, path.endsWith('csv') ? 'a,b\n1,2\n' : `Text of ${path}.`),
  )
  await ingest({ root, pages: [from] })
  await ingest({ root, files: [from, ...to].map(bare), pages: to, complete: true })
  const page = await server.ok(`/wiki/pages/${word}-a`)
  expect(page.title).toBe(`The ${word} start`)
  const pagesOf = async () =>
    (await server.ok(`/wiki/pages/${page.id}/sources?limit=100`)).data.map(
      (each: { page: { sourceRef?: string; slug: string } | null }) => each.page?.slug ?? null,
    )
  const slugs = [`${word}-guide`, `${word}-guide`, `${word}-sub-deep-one`, 'up', `${word}-table`]
  expect(await pagesOf()).toEqual([...slugs, ...elsewhere.map(() => null)])
  for (const slug of slugs)
    expect((await server.ok(`/wiki/pages/${slug}/backlinks`)).data.map(({ id }: { id: string }) => id)).toEqual([
      page.id,
    ])
  // The same path in another root is another file's, whose page has another slug.
  const other = newRoot()
  await ingest({ root: other, pages: to })
  await ingest({ root: other, pages: [textOf(`${word}/b.md`, '[to](guide.md)'), ...to] })
  const [found] = (await server.ok(`/wiki/pages/${word}-b/sources`)).data
  expect(found.page.slug).toBe(`${word}-guide-2`)
})

test('files become pages, which change, go, and come back with them', async () => {
  const [root, word] = [newRoot(), `w${server.world.uuid().slice(0, 8)}`]
  const one = textOf(`${word}/one.md`, `---\n\n# The ${word} guide #\n\nSome words.`)
  const two = textOf(`${word}/two.csv`, 'port,for\n4400,the API\n')
  expect(await plan(root, [bare(one), bare(two)])).toEqual({ missing: [one.path, two.path], archived: [] })
  expect(await ingest({ root, files: [bare(one), bare(two)], pages: [one, two], complete: true })).toEqual({
    ...nothing,
    created: 2,
  })
  expect(await plan(root, [bare(one), bare(two)])).toEqual({ missing: [], archived: [] })
  const [page] = await find(word)
  expect(page).toMatchObject({
    title: `The ${word} guide`,
    slug: `${word}-one`,
    kind: 'markdown',
    sourceRef: `${root}/${one.path}`,
  })
  expect((await server.ok(`/wiki/pages/${word}-two`)).title).toBe('two')
  const revisions = (await server.ok(`/wiki/pages/${page.id}/revisions`)).data
  expect(revisions).toMatchObject([{ sourceRef: `${root}/${one.path}`, isPublished: true, author: { type: 'user' } }])

  const changed = textOf(one.path, 'Short.')
  expect(await plan(root, [bare(changed)])).toEqual({ missing: [one.path], archived: [two.path] })
  expect(await ingest({ root, files: [bare(changed)], pages: [changed], complete: false })).toEqual({
    ...nothing,
    updated: 1,
  })
  expect((await server.ok(`/wiki/pages/${word}-two`)).archivedAt).toBeNull()
  expect(await server.ok(`/wiki/pages/${page.id}`)).toMatchObject({ title: 'one', body: 'Short.' })
  expect(await ingest({ root, files: [bare(changed)], pages: [], complete: true })).toEqual({
    ...nothing,
    archived: 1,
    unchanged: 1,
  })
  const gone = await server.ok(`/wiki/pages/${word}-two`)
  expect(gone.archivedAt).not.toBeNull()
  expect(await find('4400')).toEqual([])

  expect(await plan(root, [bare(changed), bare(two)])).toEqual({ missing: [two.path], archived: [] })
  const back = await ingest({ root, files: [bare(changed), bare(two)], pages: [two], complete: true })
  expect(back).toEqual({ ...nothing, updated: 1, unchanged: 1 })
  expect(await server.ok(`/wiki/pages/${word}-two`)).toMatchObject({ id: gone.id, archivedAt: null })
  expect((await find('4400')).map(({ id }: { id: string }) => id)).toEqual([gone.id])
})

test('a page whose file comes back with a text that fails a check is found by what readers see', async () => {
  const [root, word] = [newRoot(), `w${server.world.uuid().slice(0, 8)}`]
  const file = textOf(`${word}.md`, `# The ${word} guide\n\nSeen words.`)
  await ingest({ root, pages: [file] })
  await ingest({ root, pages: [] })
  const back = textOf(file.path, `# The ${word} guide\n\nUnseen${word} words [1].`)
  expect((await ingest({ root, pages: [back] })).failed).toMatchObject([{ checks: ['wiki_citation_style'] }])
  expect(await server.ok(`/wiki/pages/${word}`)).toMatchObject({ archivedAt: null, body: file.body })
  expect(await find(`unseen${word}`)).toEqual([])
  expect(await find(`${word} seen`)).toMatchObject([{ slug: word, match: { text: expect.stringContaining('Seen') } }])

  const draft = textOf('draft.md', `So it is${word} [1].`)
  await ingest({ root, pages: [back, draft] })
  await ingest({ root, pages: [back] })
  const again = textOf(draft.path, `So it was${word} [2].`)
  await ingest({ root, pages: [back, again] })
  expect(await find(`was${word}`)).toEqual([])
})

test('without files, the pages are all there are', async () => {
  const root = newRoot()
  const [one, two] = [textOf('one.md', 'One.'), textOf('two.md', 'Two.')]
  expect(await ingest({ root, pages: [one, two] })).toEqual({ ...nothing, created: 2 })
  expect(await ingest({ root, pages: [bare(one)] })).toEqual({ ...nothing, archived: 1, unchanged: 1 })
  expect(await ingest({ root, pages: [], complete: false })).toEqual(nothing)
  expect(await ingest({ root, pages: [] })).toEqual({ ...nothing, archived: 1 })
})

test('roots are apart, and so are workspaces', async () => {
  const root = newRoot()
  const file = textOf('same.md', 'Same.')
  for (const name of [root, `${root}/same`]) await ingest({ root: name, pages: [file] })
  expect(await ingest({ root, pages: [] })).toEqual({ ...nothing, archived: 1 })
  expect(await plan(`${root}/same`, [bare(file)])).toEqual({ missing: [], archived: [] })
  expect(await plan(`${root}/same`, [bare(file)], stranger.token)).toEqual({ missing: ['same.md'], archived: [] })
  expect(await ingest({ root: `${root}/same`, pages: [] }, stranger.token)).toEqual(nothing)
})

test('a text that fails a check is kept, can be published, and is not asked for again', async () => {
  const [root, word] = [newRoot(), `w${server.world.uuid().slice(0, 8)}`]
  const bad = textOf(`${word}.md`, `# About ${word}\n\nSo it is [1].`)
  expect(await ingest({ root, pages: [bad] })).toEqual({
    ...nothing,
    created: 1,
    failed: [{ path: bad.path, checks: ['wiki_citation_style'] }],
  })
  expect(await plan(root, [bare(bad)])).toEqual({ missing: [], archived: [] })
  const [page] = await find(word)
  expect(page).toMatchObject({ currentRevisionId: null, match: null })
  const [revision] = (await server.ok(`/wiki/pages/${page.id}/revisions`)).data
  expect(revision).toMatchObject({ isPublished: false, failedChecks: ['wiki_citation_style'] })
  await server.ok(`/wiki/pages/${page.id}/revisions/${revision.id}/restore`, { body: {} })
  expect((await find(`so ${word}`)).map(({ id }: { id: string }) => id)).toEqual([page.id])
  const worse = textOf(bad.path, 'a [12 tokens truncated]')
  expect((await ingest({ root, pages: [worse] })).failed).toHaveLength(1)
  expect((await server.ok(`/wiki/pages/${page.id}`)).body).toBe(bad.body)
  const broken = textOf(`${word}.csv`, 'a,"b')
  expect((await ingest({ root, files: [bare(worse), bare(broken)], pages: [broken], complete: true })).failed).toEqual([
    { path: broken.path, checks: ['wiki_publish_failed'] },
  ])
})

test('a deleted page is made anew from its file; slugs that are taken get a number', async () => {
  const root = newRoot()
  const name = server.world.uuid()
  const file = textOf(`${name}.md`, 'Words.')
  await server.ok('/wiki/pages', { body: { title: 'Taken', slug: name, body: 'x' } })
  await ingest({ root, pages: [file] })
  const { id } = await server.ok(`/wiki/pages/${name}-2`)
  expect(outcomeOf(await server.call(`/wiki/pages/${id}`, patch({ archived: true })))).toBe(
    '409 wiki_source_page_immutable',
  )
  await server.ok(`/wiki/pages/${id}`, { method: 'DELETE' })
  expect(await plan(root, [bare(file)])).toEqual({ missing: [file.path], archived: [] })
  expect(await ingest({ root, pages: [file] })).toEqual({ ...nothing, created: 1 })
})

describe('is refused', () => {
  const file = textOf('a.md', 'x')
  test.each(['', '/etc', '../up', 'a/../../b', 'a/', '.', 'a\\b', 'C:/x', 'a\u0001b', 'x'.repeat(501)])(
    'a root %j',
    async (root) => {
      expect(await refused({ root, pages: [] })).toBe('400 wiki_ingest_invalid_root')
      expect(outcomeOf(await server.call('/wiki/ingest/plan', { body: { root, files: [] } }))).toBe(
        '400 wiki_ingest_invalid_root',
      )
    },
  )

  test.each([
    ['a path that leads out', { pages: [textOf('../a.md', 'x')] }],
    ['an absolute path', { pages: [textOf('/a.md', 'x')] }],
    ['a file of another kind', { pages: [textOf('a.txt', 'x')] }],
    ['a path without a name', { pages: [textOf('', 'x')] }],
    ['a path twice', { pages: [file, file] }],
    ['another hash than that of the text', { pages: [{ ...file, body: 'y' }] }],
    ['a hash of capitals', { pages: [{ ...file, sha256: file.sha256.toUpperCase() }] }],
    ['a page that is not listed', { files: [], pages: [file] }],
    ['a page that is listed with another hash', { files: [bare(textOf('a.md', 'y'))], pages: [file] }],
    ['a text that is too long', { pages: [textOf('a.md', 'x'.repeat(262_145))] }],
    ['a NUL', { root: 'a\0b', pages: [] }],
    ['too many texts', { pages: Array.from({ length: 501 }, (_, n) => textOf(`${n}.md`, 'x')) }],
  ])('with %s', async (_, body) => expect(await refused({ root: 'docs', ...body })).toBe('400 validation_error'))

  // A body of twelve is taken and looked at: contract/documents-errors.test.ts has one of eight.
  if (isTriedHere)
    test('a request beyond 8 MiB, and one beyond 12', async () => {
      const most = 12 * 1024 * 1024
      const large = (size: number) => ({ root: 'docs', pages: [textOf('a.md', 'x'.repeat(size))] })
      const around = Buffer.byteLength(JSON.stringify(large(0)))
      expect(await refused(large(most - around))).toBe('400 wiki_ingest_request_too_large')
      expect(await refused(large(most - around + 1))).toBe('413 payload_too_large')
    })

  test('an agent', async () => {
    const { token } = await server.agentCaller()
    for (const path of ['/wiki/ingest', '/wiki/ingest/plan'])
      expect(outcomeOf(await server.call(path, { body: { root: 'docs', pages: [], files: [] }, token }))).toMatch(
        /^403 /,
      )
  })
})

test('two at once bring each file once', async () => {
  const root = newRoot()
  const files = Array.from({ length: 20 }, (_, n) => textOf(`${server.world.uuid()}-${n}.md`, `Number ${n}.`))
  const both = await Promise.all([1, 2].map(() => server.call('/wiki/ingest', { body: { root, pages: files } })))
  expect(both.map(({ status }) => status).filter((status) => status === 200).length).toBeGreaterThan(0)
  expect(await ingest({ root, pages: files })).toMatchObject({ created: 0, updated: 0, unchanged: 20 })
  const refs = (await server.database
    .root('wiki_pages')
    .where('source_ref', 'like', `${root}/%`)
    .pluck('source_ref')) as string[]
  expect(refs.toSorted()).toEqual(files.map(({ path }) => `${root}/${path}`).toSorted())
})
