import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { embeddingSettings, startFakeEmbeddings, type FakeEmbeddings } from '../../kit/fake-embeddings.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { patch } from '../facts/kit/recipe.ts'
import { makePage } from '../facts/kit/wiki.ts'

// What is found of the wiki, as its readers see it.

let server: TestServer
let member: Person
beforeAll(async () => {
  server = await TestServer.start()
  member = await server.addPerson('member')
})
afterAll(() => server.stop())

const page = (body: Record<string, unknown>) => makePage({ server }, body, member.token)
const find = async (q: string, more = '') =>
  (await server.ok(`/wiki/pages?q=${encodeURIComponent(q)}${more}`)).data as {
    id: string
    match: { heading: string; text: string; offset: number; ranges: { start: number; end: number }[] } | null
  }[]
const idsOf = async (q: string) => (await find(q)).map(({ id }) => id)

test('a page is found as it is published, changed, restored, archived, and deleted', async () => {
  const word = `w${server.world.uuid().slice(0, 8)}`
  const [first, second] = [`${word}one alone`, `${word}two alone`]
  const { id, currentRevisionId } = await page({ body: first })
  expect(await idsOf(first)).toEqual([id])
  await server.ok(`/wiki/pages/${id}/revisions`, { body: { body: second } })
  expect([await idsOf(first), await idsOf(second)]).toEqual([[], [id]])
  await server.ok(`/wiki/pages/${id}/revisions/${currentRevisionId}/restore`, { body: {} })
  expect([await idsOf(first), await idsOf(second)]).toEqual([[id], []])
  await server.ok(`/wiki/pages/${id}`, patch({ archived: true }))
  expect(await idsOf(first)).toEqual([])
  await server.ok(`/wiki/pages/${id}`, patch({ archived: false }))
  expect(await idsOf(first)).toEqual([id])
  const { id: next } = await page({ body: 'Something else.' })
  await server.ok(`/wiki/pages/${next}/relations`, { body: { toPageId: id } })
  expect(await idsOf(first)).toEqual([])
  await server.ok(`/wiki/pages/${id}`, patch({ archived: false }))
  const other = await server.addPerson('owner', 'search-elsewhere')
  expect((await server.ok(`/wiki/pages?q=${word}`, { token: other.token })).data).toEqual([])
  await server.ok(`/wiki/pages/${id}`, { method: 'DELETE' })
  expect(await idsOf(first)).toEqual([])
  // What was refused is not found.
  await server.call('/wiki/pages', { body: { title: 'Refused', body: `${word} says [1].` } })
  expect(await idsOf(word)).toEqual([])
})

test('the best page comes first, each with where it was found, in pages', async () => {
  const word = `z${server.world.uuid().slice(0, 8)}`
  const inBody = await page({
    title: 'Notes',
    slug: `a-${word}`,
    body: `Some text.\n\n# Use\n\nThen call **${word}** twice.`,
  })
  const inTitle = await page({ title: `The ${word}`, body: 'Nothing else.' })
  const blank = await page({ title: `The other ${word} of all`, body: ' ' })
  const rows = await find(word)
  expect(rows.map(({ id }) => id)).toEqual([inTitle.id, blank.id, inBody.id])
  const [title, none, body] = rows.map(({ match }) => match)
  expect([title, none]).toEqual([{ heading: '', text: 'Nothing else.', offset: 0, ranges: [] }, null])
  expect(body!.ranges.map(({ start, end }) => body!.text.slice(start, end))).toEqual([word])
  expect(inBody.body.slice(body!.offset).startsWith(body!.text)).toBe(true)
  const first = await server.ok(`/wiki/pages?q=${word}&limit=2`)
  const rest = await server.ok(`/wiki/pages?q=${word}&limit=2&cursor=${first.nextCursor}`)
  expect([...first.data, ...rest.data]).toEqual(rows)
  expect([first.hasMore, rest.hasMore, rest.nextCursor]).toEqual([true, false, null])
  expect(outcomeOf(await server.call('/wiki/pages?q=a&cursor=junk'))).toBe('400 invalid_cursor')
  const list = await server.ok('/wiki/pages?limit=1')
  expect(outcomeOf(await server.call(`/wiki/pages?q=a&cursor=${list.nextCursor}`))).toBe('400 invalid_cursor')
})

test.each([
  '"',
  'NEAR(',
  'NEAR(a b, 1)',
  '*',
  '-x',
  'a:b',
  '()',
  'a AND',
  '\\',
  "'",
  '%',
  '{a}: b',
  'x'.repeat(100),
  '数'.repeat(100),
])('%j is no operator and no error', async (q) =>
  expect(outcomeOf(await server.call(`/wiki/pages?q=${encodeURIComponent(q)}`))).toBe('200'),
)

test('without a model nothing is embedded', async () => {
  const { chunks, pages, ...counts } = await server.ok('/wiki/embedding-status')
  expect(counts).toEqual({
    object: 'wiki_embedding_status',
    isConfigured: false,
    embeddedPages: 0,
    embeddedChunks: 0,
  })
  expect(Math.min(chunks, pages)).toBeGreaterThan(0)
})

describe('with a model', () => {
  let model: FakeEmbeddings
  let asking: TestServer
  beforeAll(async () => {
    model = await startFakeEmbeddings()
    asking = await TestServer.start({ settings: embeddingSettings(model) })
  })
  afterAll(async () => {
    await asking.stop()
    await model.stop()
  })

  test('a page is found without a word in common; by its words while the model is away', async () => {
    model.meanings.set('automobile', 'car')
    const { id } = await makePage({ server: asking }, { title: 'Car', body: 'Where to leave it.' })
    await makePage({ server: asking }, { title: 'Ships', body: 'Where they sail.' })
    expect(await asking.ok('/wiki/embedding-status')).toMatchObject({ isConfigured: true, pages: 2 })
    await asking.plane.sweeper.runAll()
    // Another replica may be at one of them.
    const status = () => asking.ok('/wiki/embedding-status')
    await expect.poll(status).toEqual({
      object: 'wiki_embedding_status',
      isConfigured: true,
      pages: 2,
      embeddedPages: 2,
      chunks: 2,
      embeddedChunks: 2,
    })
    const { data } = await asking.ok('/wiki/pages?q=automobile')
    expect(data[0]).toMatchObject({ id, match: { text: 'Where to leave it.', ranges: [] } })
    model.trouble = { status: 503, text: '' }
    expect((await asking.ok('/wiki/pages?q=vehicle')).data).toEqual([])
    expect((await asking.ok('/wiki/pages?q=sail')).data).toHaveLength(1)
  })
})
