import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { patch } from '../facts/kit/recipe.ts'
import { makeIngested, makePage } from '../facts/kit/wiki.ts'

// How pages refer to one another: by links, and by superseding.

let server: TestServer
let stranger: Person
beforeAll(async () => {
  server = await TestServer.start()
  stranger = await server.addPerson('owner', 'elsewhere')
})
afterAll(() => server.stop())

const page = (body: Record<string, unknown> = {}, token?: string) => makePage({ server }, body, token)
const backlinksOf = async (id: string): Promise<string[]> =>
  (await server.ok(`/wiki/pages/${id}/backlinks`)).data.map((each: { id: string }) => each.id)
// oxlint-disable-next-line typescript/no-explicit-any
const sourcesOf = async (id: string): Promise<any[]> => (await server.ok(`/wiki/pages/${id}/sources`)).data

describe('links', () => {
  test.each([
    ['a slug', ({ slug }: { slug: string }) => `[it](${slug}#part)`],
    ['a path', ({ slug }: { slug: string }) => `[it](/wiki/${slug})`],
    ['double brackets', ({ slug }: { slug: string }) => `[[${slug}]]`],
    ['a title in double brackets', ({ title }: { title: string }) => `[[${title}|it]]`],
    ['an id', ({ id }: { id: string }) => `[it](pinework://wiki_page/${id})`],
    ['a reference', ({ slug }: { slug: string }) => `[it][x]\n\n[x]: ${slug}`],
  ])('by %s are backlinks and sources', async (_, link) => {
    const target = await page()
    const { id } = await page({ body: `See ${link(target)}\n\nand <https://example.com/a>.` })
    expect(await backlinksOf(target.slug)).toEqual([id])
    const [first, second] = await sourcesOf(id)
    expect(first).toMatchObject({
      object: 'wiki_source',
      ord: 0,
      page: { id: target.id, slug: target.slug, title: target.title, archivedAt: null },
    })
    expect(second).toEqual({
      object: 'wiki_source',
      ord: 1,
      url: 'https://example.com/a',
      text: 'https://example.com/a',
      page: null,
    })
  })

  test('are those of the current text of live pages', async () => {
    const target = await page()
    const { id } = await page({ body: `See [[${target.slug}]].` })
    await page({ body: `Not \`[[${target.slug}]]\`.\n\n    [a](${target.slug})` })
    await server.ok(`/wiki/pages/${target.id}/revisions`, { body: { body: `I am [myself](${target.slug}).` } })
    expect(await backlinksOf(target.id)).toEqual([id])
    await server.ok(`/wiki/pages/${id}`, patch({ archived: true }))
    expect(await backlinksOf(target.id)).toEqual([])
    await server.ok(`/wiki/pages/${id}`, patch({ archived: false }))
    expect(await backlinksOf(target.id)).toEqual([id])
    await server.ok(`/wiki/pages/${id}/revisions`, { body: { body: 'See nothing.', allowShrink: true } })
    expect([await backlinksOf(target.id), await sourcesOf(id)]).toEqual([[], []])
  })

  test('lead to a page that is made later, and stay with a page whose slug changes', async () => {
    const slug = server.world.uuid()
    const early = await page({ body: `See [[${slug}]].` })
    expect((await sourcesOf(early.id))[0]).toMatchObject({ url: `/wiki/${slug}`, page: null })
    const target = await page({ slug })
    expect(await backlinksOf(slug)).toEqual([early.id])
    const later = await page({ body: `See [[${slug}]].` })
    await server.ok(`/wiki/pages/${target.id}`, patch({ slug: `${slug}-2` }))
    expect(await backlinksOf(target.id)).toEqual([later.id])
    expect((await sourcesOf(later.id))[0].page).toMatchObject({ id: target.id, slug: `${slug}-2` })
    const next = await page({ slug })
    expect(await backlinksOf(next.id)).toEqual([later.id, early.id])
    expect((await sourcesOf(later.id))[0].page.id).toBe(next.id)
    await server.ok(`/wiki/pages/${next.id}`, { method: 'DELETE' })
    await server.ok(`/wiki/pages/${target.id}`, { method: 'DELETE' })
    expect((await sourcesOf(later.id))[0].page).toBeNull()
  })

  test('never lead into another workspace', async () => {
    const theirs = await page({ slug: server.world.uuid() }, stranger.token)
    const { id } = await page({ body: `[a](${theirs.slug}) [b](pinework://wiki_page/${theirs.id})` })
    expect((await sourcesOf(id)).map(({ page: shown }) => shown)).toEqual([null, null])
    const { data } = await server.ok(`/wiki/pages/${theirs.id}/backlinks`, { token: stranger.token })
    expect(data).toEqual([])
  })

  test('come in pages', async () => {
    const target = await page()
    const linking = []
    for (const n of [1, 2, 3]) linking.unshift((await page({ body: `[[${target.slug}]] ${n}` })).id)
    const first = await server.ok(`/wiki/pages/${target.id}/backlinks?limit=2`)
    const second = await server.ok(`/wiki/pages/${target.id}/backlinks?limit=2&cursor=${first.nextCursor}`)
    expect([...first.data, ...second.data].map((each: { id: string }) => each.id)).toEqual(linking)
    const { id } = await page({ body: 'https://a.example https://b.example https://c.example' })
    const { data, nextCursor } = await server.ok(`/wiki/pages/${id}/sources?limit=2`)
    expect(data.map(({ ord }: { ord: number }) => ord)).toEqual([0, 1])
    const rest = await server.ok(`/wiki/pages/${id}/sources?limit=2&after=${nextCursor}`)
    expect(rest.data.map(({ url }: { url: string }) => url)).toEqual(['https://c.example'])
  })
})

describe('superseding', () => {
  const supersede = (id: string, toPageId: string, token?: string) =>
    server.call(`/wiki/pages/${id}/relations`, { body: { toPageId }, ...(token === undefined ? {} : { token }) })
  const named = ({ id, slug, title }: { id: string; slug: string; title: string }) => ({ id, slug, title })

  test('archives the other page, which is shown where it is live', async () => {
    const [next, old] = [await page(), await page()]
    const reply = await supersede(next.slug, old.slug)
    expect([reply.status, reply.body]).toEqual([
      201,
      {
        object: 'wiki_relation',
        kind: 'supersedes',
        fromPageId: next.id,
        toPageId: old.id,
        createdAt: expect.any(String),
      },
    ])
    const shown = await server.ok(`/wiki/pages/${old.id}`)
    expect(shown).toMatchObject({ archivedAt: expect.any(String), supersededBy: [named(next)] })
    expect((await server.ok(`/wiki/pages/${next.id}`)).supersedes).toEqual([])
    await server.ok(`/wiki/pages/${old.id}`, patch({ archived: false }))
    expect((await server.ok(`/wiki/pages/${next.id}`)).supersedes).toEqual([named(old)])
  })

  test('leaves a page that files say what it is live', async () => {
    const [next, old] = [await page(), await page()]
    await makeIngested(server, old.id)
    await supersede(next.id, old.id)
    expect(await server.ok(`/wiki/pages/${old.id}`)).toMatchObject({ archivedAt: null, supersededBy: [named(next)] })
  })

  test('makes no circles, of any length', async () => {
    const pages = [await page(), await page(), await page(), await page()]
    for (const [at, { id }] of pages.entries())
      if (at > 0) expect((await supersede(pages[at - 1].id, id)).status).toBe(201)
    for (const { id } of pages.slice(1))
      expect(outcomeOf(await supersede(id, pages[0].id))).toBe('409 wiki_relation_exists')
    expect(outcomeOf(await supersede(pages[0].id, pages[1].slug))).toBe('409 wiki_relation_exists')
    expect((await supersede(pages[0].id, pages[3].id)).status).toBe(201)
    expect(outcomeOf(await supersede(pages[0].id, pages[0].slug))).toBe('400 wiki_relation_self')
    const theirs = await page({}, stranger.token)
    for (const other of [theirs.id, theirs.slug, 'wik_0000000000000000', 'nothing'])
      expect(outcomeOf(await supersede(pages[0].id, other))).toBe('400 wiki_relation_workspace_mismatch')
  })

  test('makes none at once, either', async () => {
    for (let round = 0; round < 3; round++) {
      const pages = [await page(), await page(), await page()]
      const replies = await Promise.all(pages.map(({ id }, at) => supersede(id, pages[(at + 1) % 3].id)))
      expect(replies.map(outcomeOf).toSorted()).toEqual(['201', '201', '409 wiki_relation_exists'])
    }
  })

  test('is taken back by query or body; the page stays archived', async () => {
    const [next, old] = [await page(), await page()]
    const path = `/wiki/pages/${next.id}/relations`
    const remove = async (query: string, body?: unknown) =>
      outcomeOf(await server.call(path + query, { method: 'DELETE', ...(body === undefined ? {} : { body }) }))
    await supersede(next.id, old.id)
    for (const [query, body] of [
      ['', undefined],
      ['', {}],
      [`?toPageId=${old.id}`, { toPageId: next.id }],
    ] as const)
      expect(await remove(query, body)).toBe('400 validation_error')
    expect(await remove(`?toPageId=${old.slug}`)).toBe('204')
    expect(await remove('', { toPageId: old.id })).toBe('404 wiki_page_not_found')
    expect(await remove('', { toPageId: 'nothing' })).toBe('404 wiki_page_not_found')
    expect(await server.ok(`/wiki/pages/${old.id}`)).toMatchObject({ archivedAt: expect.any(String), supersededBy: [] })
    await supersede(next.id, old.id)
    expect(await remove('', { toPageId: old.id })).toBe('204')
  })
})
