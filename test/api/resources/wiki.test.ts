import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { patch } from '../facts/kit/recipe.ts'
import { makeIngested, makePage } from '../facts/kit/wiki.ts'

// Pages of the wiki: what they are, how they are found, and their life.

let server: TestServer
let member: Person
let stranger: Person
beforeAll(async () => {
  server = await TestServer.start()
  member = await server.addPerson('member')
  stranger = await server.addPerson('owner', 'elsewhere')
})
afterAll(() => server.stop())

const page = (body: Record<string, unknown> = {}, token = member.token) => makePage({ server }, body, token)
const create = (body: Record<string, unknown>, token = member.token) =>
  server.call('/wiki/pages', { body: { title: `Page ${server.world.uuid()}`, body: 'x', ...body }, token })
const idsIn = (list: { data: { id: string }[] }) => list.data.map(({ id }) => id)
const listed = async (query: string, token = member.token) => idsIn(await server.ok(`/wiki/pages?${query}`, { token }))

describe('a new page', () => {
  test('is published under the slug of its title, and read by id and by slug', async () => {
    const made = await page({ title: '  Über uns: wie wir  arbeiten!  ', body: '# Über uns\n' })
    expect(made).toEqual({
      object: 'wiki_page',
      id: expect.stringMatching(/^wik_\w{16}$/),
      slug: 'über-uns-wie-wir-arbeiten',
      title: 'Über uns: wie wir  arbeiten!',
      kind: 'markdown',
      archivedAt: null,
      sourceRef: null,
      currentRevisionId: expect.stringMatching(/^wrev_\w{16}$/),
      isPublished: true,
      tokenCount: 3,
      body: '# Über uns\n',
      supersedes: [],
      supersededBy: [],
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    for (const reference of [made.id, encodeURIComponent(made.slug)])
      expect(await server.ok(`/wiki/pages/${reference}`, { token: member.token })).toEqual(made)
    for (const reference of ['wik_0000000000000000', 'nothing', 'ÜBER-UNS', 'x'.repeat(200), '%25', '..%2Fpages'])
      expect(outcomeOf(await server.call(`/wiki/pages/${reference}`))).toBe('404 wiki_page_not_found')
    for (const reference of ['%00', 'a%00b', 'x'.repeat(201)])
      expect(outcomeOf(await server.call(`/wiki/pages/${reference}`))).toMatch(/^400 /)
    expect(outcomeOf(await server.call(`/wiki/pages/${made.id}`, { token: stranger.token }))).toBe(
      '404 wiki_page_not_found',
    )
  })

  test('keeps its text byte by byte', async () => {
    const body = '\r\n  a\t\u0007 ünïcode 😀 $1 \\ \' " {{x}}\n\n'
    expect((await page({ body })).body).toBe(body)
    expect(await page({ body: '' })).toMatchObject({ body: '', tokenCount: 0 })
  })

  test('has a slug of its own among live and archived pages of its workspace', async () => {
    const slug = server.world.uuid()
    const first = await page({ slug: slug.toUpperCase() })
    expect(first.slug).toBe(slug)
    const taken = await create({ slug })
    expect(outcomeOf(taken)).toBe('409 wiki_page_slug_conflict')
    expect(taken.body.error.details).toEqual({ pageId: first.id })
    await server.ok(`/wiki/pages/${first.id}`, patch({ archived: true }))
    expect(outcomeOf(await create({ title: slug }))).toBe('409 wiki_page_slug_conflict')
    expect(outcomeOf(await create({ slug }, stranger.token))).toBe('201')
    await server.ok(`/wiki/pages/${first.id}`, { method: 'DELETE' })
    expect(outcomeOf(await create({ slug }))).toBe('201')
  })

  test('gets its slug alone of several at once', async () => {
    const slug = server.world.uuid()
    const replies = await Promise.all(Array.from({ length: 6 }, () => create({ slug })))
    expect(replies.map(outcomeOf).toSorted()).toEqual(['201', ...Array(5).fill('409 wiki_page_slug_conflict')])
  })

  test.each([
    ['no title', { title: ' ' }],
    ['a title that is too long', { title: 'x'.repeat(301) }],
    ['a title of two lines', { title: 'a\nb' }],
    ['a title without a slug', { title: '!?' }],
    ['an empty slug', { slug: '' }],
    ['a slug with a space', { slug: 'a b' }],
    ['a slug with a slash', { slug: 'a/b' }],
    ['a slug that looks like an id', { slug: 'wik_0123456789abcdef' }],
    ['another kind', { kind: 'html' }],
    ['no text', { body: undefined }],
    ['a text that is too long in bytes', { body: 'ü'.repeat(131_073) }],
    ['a task that is not there', { taskId: 'NOPE-1' }, '404 resource_not_found'],
    ['a run that is not there', { runId: 'run_0000000000000000' }, '404 resource_not_found'],
  ])('is refused with %s', async (_, body, outcome = '400 validation_error') =>
    expect(outcomeOf(await create(body))).toBe(outcome),
  )

  test('takes a text of 262,144 bytes, and a slug where the title gives none', async () => {
    const body = 'ü'.repeat(131_072)
    expect(await page({ title: '???', slug: `q-${server.world.uuid()}`, body })).toMatchObject({
      tokenCount: 65_536,
      body,
    })
  })
})

describe('the list', () => {
  test('has live pages without their texts, newest first, in pages', async () => {
    const word = server.world.uuid()
    const made = []
    for (const n of [1, 2, 3]) made.unshift((await page({ title: `${word} ${n}` })).id)
    const first = await server.ok(`/wiki/pages?q=${word}&limit=2`)
    expect(idsIn(first)).toEqual(made.slice(0, 2))
    expect(first.data[0]).not.toHaveProperty('body')
    for (const name of ['cursor', 'after'])
      expect(await listed(`q=${word}&limit=2&${name}=${first.nextCursor}`)).toEqual(made.slice(2))
    expect(await listed(`q=${word}`, stranger.token)).toEqual([])
    const ids = [made[2], 'wik_0000000000000000', 'junk', made[0]]
    const slots = (await server.ok(`/wiki/pages?ids=${ids.join(',')}`)).data
    expect(slots.map((slot: { id: string } | null) => slot?.id ?? null)).toEqual([made[2], null, null, made[0]])
    const strange = await server.ok(`/wiki/pages?ids=${made[0]}`, { token: stranger.token })
    expect(strange.data).toEqual([null])
  })

  test('says what is wrong with a query', async () => {
    for (const query of ['q=', 'q=%20', `q=${'x'.repeat(101)}`, 'archived=maybe', 'limit=101', 'limit=0'])
      expect([query, outcomeOf(await server.call(`/wiki/pages?${query}`))]).toEqual([query, '400 validation_error'])
    expect(outcomeOf(await server.call('/wiki/pages?cursor=junk'))).toBe('400 invalid_cursor')
  })

  test('has archived pages, and those that were never published, where they are asked for', async () => {
    const word = server.world.uuid()
    const { id: live } = await page({ title: `${word} live` })
    const { id: old } = await page({ title: `${word} old` })
    await server.ok(`/wiki/pages/${old}`, patch({ archived: true }))
    const { id: draft } = await page({ title: `${word} draft` })
    await server.database
      .root('wiki_pages')
      .where({ id: draft })
      .update({ current_revision_id: null, token_count: null })
    expect(await listed(`q=${word}`)).toEqual([draft, live])
    expect(await listed(`q=${word}&archived=false`)).toEqual([draft, live])
    expect(await listed(`q=${word}&archived=true`)).toEqual([])
    expect(await listed('archived=true&limit=1')).toEqual([old])
    expect(await listed(`q=${word}&neverPublished=true`)).toEqual([draft])
    expect(await listed(`q=${word}&neverPublished=false`)).toEqual([live])
    expect(await server.ok(`/wiki/pages/${draft}`)).toMatchObject({
      body: null,
      currentRevisionId: null,
      isPublished: false,
    })
  })
})

describe('the life of a page', () => {
  test('archived, it keeps its slug and is still read; unarchived, it is listed again', async () => {
    const { id, slug, title } = await page()
    const archived = await server.ok(`/wiki/pages/${slug}`, patch({ archived: true }, member.token))
    expect(archived).toMatchObject({ id, slug, archivedAt: expect.any(String) })
    expect(await server.ok(`/wiki/pages/${id}`, patch({ archived: true }))).toEqual(archived)
    expect(await server.ok(`/wiki/pages/${slug}`)).toEqual(archived)
    expect(await listed(`q=${encodeURIComponent(title)}`)).toEqual([])
    expect(await server.ok(`/wiki/pages/${id}`, patch({ archived: false }))).toMatchObject({ archivedAt: null })
    expect(await listed(`q=${encodeURIComponent(title)}`)).toEqual([id])
  })

  test('renamed, it is there by its new slug alone', async () => {
    const [{ id, slug }, other] = [await page(), await page()]
    const next = `next-${server.world.uuid()}`
    expect(await server.ok(`/wiki/pages/${id}`, patch({ slug: next, archived: true }))).toMatchObject({
      slug: next,
      archivedAt: expect.any(String),
    })
    expect(outcomeOf(await server.call(`/wiki/pages/${slug}`))).toBe('404 wiki_page_not_found')
    expect((await server.ok(`/wiki/pages/${next}`)).id).toBe(id)
    const taken = await server.call(`/wiki/pages/${other.id}`, patch({ slug: next }))
    expect(outcomeOf(taken)).toBe('409 wiki_page_slug_conflict')
    expect(outcomeOf(await server.call(`/wiki/pages/${other.id}`, patch({ slug: 'a b' })))).toBe('400 validation_error')
    expect((await server.ok(`/wiki/pages/${other.id}`, patch({ slug: other.slug }))).updatedAt).toBe(other.updatedAt)
  })

  test('of an ingested page, slug and archive state are what its files say', async () => {
    const { id, slug } = await page()
    await makeIngested(server, id)
    for (const body of [{ archived: true }, { slug: server.world.uuid() }])
      expect(outcomeOf(await server.call(`/wiki/pages/${id}`, patch(body)))).toBe('409 wiki_source_page_immutable')
    expect(await server.ok(`/wiki/pages/${id}`, patch({ archived: false, slug }))).toMatchObject({
      id,
      sourceRef: 'docs/page.md',
    })
  })

  test('deleted, it is gone with all that refers to it', async () => {
    const [{ id, slug }, other] = [await page({ body: 'See [[elsewhere]].' }), await page()]
    await server.ok(`/wiki/pages/${id}/revisions`, { body: { body: 'See [[elsewhere]] again.' } })
    await server.ok(`/wiki/pages/${id}/relations`, { body: { toPageId: other.id } })
    expect((await server.call(`/wiki/pages/${slug}`, { method: 'DELETE', token: member.token })).status).toBe(204)
    for (const path of ['', '/revisions', '/backlinks', '/sources'])
      expect(outcomeOf(await server.call(`/wiki/pages/${id}${path}`))).toBe('404 wiki_page_not_found')
    const { root } = server.database
    for (const table of ['wiki_revisions', 'wiki_links'])
      expect([table, await root(table).where({ page_id: id })]).toEqual([table, []])
    expect(await root('wiki_relations').where({ from_page_id: id })).toEqual([])
  })

  test('is no business of agents', async () => {
    const { token } = await server.agentCaller()
    const { id, currentRevisionId } = await page({}, token)
    const refused = [
      server.call(`/wiki/pages/${id}`, patch({ archived: true }, token)),
      server.call(`/wiki/pages/${id}`, patch({ slug: 'other' }, token)),
      server.call(`/wiki/pages/${id}`, { method: 'DELETE', token }),
      server.call(`/wiki/pages/${id}/revisions/${currentRevisionId}/restore`, { method: 'POST', token }),
      server.call(`/wiki/pages/${id}/relations`, { body: { toPageId: id }, token }),
      server.call(`/wiki/pages/${id}/relations?toPageId=${id}`, { method: 'DELETE', token }),
    ]
    for (const reply of await Promise.all(refused)) expect(outcomeOf(reply)).toBe('403 http_exception')
  })
})

test('without a model, no page is embedded', async () => {
  const own = await server.addPerson('owner', `own-${server.world.uuid().slice(0, 8)}`)
  await page({}, own.token)
  const { id } = await page({}, own.token)
  await server.ok(`/wiki/pages/${id}`, patch({ archived: true }, own.token))
  expect(await server.ok('/wiki/embedding-status', { token: own.token })).toEqual({
    object: 'wiki_embedding_status',
    isConfigured: false,
    pages: 1,
    embeddedPages: 0,
    chunks: 1,
    embeddedChunks: 0,
  })
})
