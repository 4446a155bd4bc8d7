import { idFrom } from '../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { readConfig } from '../../control-plane/config.ts'
import { ConfigError } from '../../control-plane/process/config-error.ts'
import type { Database, Db } from '../../control-plane/db/open.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { createEmbeddingClient } from '../../control-plane/search/embeddings/client.ts'
import { EmbeddingFiller } from '../../control-plane/search/embeddings/filler.ts'
import { Meaning } from '../../control-plane/search/embeddings/meaning.ts'
import { endpointOf } from '../../control-plane/search/embeddings/settings.ts'
import {
  claimToEmbed,
  countEmbedded,
  findDimensions,
  forgetOtherModels,
  listCodes,
  listPlaces,
  listVectors,
  postponeEmbedding,
  putVector,
} from '../../control-plane/search/embeddings/store.ts'
import { normalized, vectorOfBytes } from '../../control-plane/search/embeddings/vectors.ts'
import { listSnippets } from '../../control-plane/search/find.ts'
import { search } from '../../control-plane/search/search.ts'
import { readForSearch } from '../../control-plane/search/searchable.ts'
import { indexSubject, listChunks, removeSubject } from '../../control-plane/search/store.ts'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { onBoth, openSqlite } from '../kit/database.ts'
import { startFakeEmbeddings, type FakeEmbeddings } from '../kit/fake-embeddings.ts'
import { at, seedWorkspace } from './seed.ts'

async function put(db: Db, workspaceId: string, subject: string, body: string): Promise<void> {
  await indexSubject(
    db,
    { workspaceId: idFrom(workspaceId), subject: idFrom(subject), title: subject },
    readForSearch({ kind: 'markdown', body }),
  )
}

/** In one transaction, as each of its own costs PostgreSQL several times as much. */
async function putMany(
  { root }: Pick<Database, 'root'>,
  workspaceId: string,
  pages: readonly [string, string][],
): Promise<void> {
  await root.transaction(async (tx) => {
    for (const [subject, body] of pages) await put(tx, workspaceId, subject, body)
  })
}
const numbered = (from: number, to: number, page: (i: number) => [string, string]) =>
  Array.from({ length: to - from }, (_, i) => page(from + i))

/** For what the model does and when it is asked, which no database decides: what is stored of it is shown on both. */
async function onSqlite(run: (database: Database) => Promise<void>): Promise<void> {
  const database = openSqlite()
  try {
    await run(database)
  } finally {
    await database.close()
  }
}

const model = 'one'
const vector = normalized([1, 2, 3])

onBoth('a chunk is claimed by one, has its vector, and takes it along when its page is changed', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  await put(root, workspaceId, 'page', 'Some text.')
  const [chunk, ...others] = await claimToEmbed(root, { now: at, until: at + 10 })
  expect(others).toEqual([])
  expect(chunk).toMatchObject({ workspaceId, title: 'page', heading: '', body: 'Some text.' })
  expect(await claimToEmbed(root, { now: at, until: at + 10 })).toEqual([])
  await postponeEmbedding(root, [chunk!.id], 0)
  expect(await claimToEmbed(root, { now: at, until: at + 10 })).toHaveLength(1)
  expect(await claimToEmbed(root, { now: at + 10, until: at + 20 })).toHaveLength(1)
  const { digest } = chunk!
  await putVector(root, { workspaceId, digest, model, vector })
  expect(await claimToEmbed(root, { now: at + 99, until: at + 100 })).toEqual([])
  expect(await countEmbedded(root, { workspaceId, model })).toMatchObject({ chunks: 1, embeddedChunks: 1 })
  expect(await countEmbedded(root, { workspaceId, model: null })).toEqual({
    chunks: 1,
    embeddedChunks: 0,
    embeddedPages: 0,
  })
  expect(await findDimensions(root, model)).toBe(3)
  // The same text again, and one more that says the same.
  await put(root, workspaceId, 'page', 'Some text.')
  expect(await countEmbedded(root, { workspaceId, model })).toMatchObject({ chunks: 1, embeddedChunks: 1 })
  const [row] = await listVectors(root, { workspaceId, digests: [digest] })
  expect(vectorOfBytes(row!.vector)).toEqual(vector)
  expect(await listCodes(root, { workspaceId, model, after: 0, limit: 9 })).toMatchObject([{ digest }])
  expect(await listPlaces(root, { workspaceId, digests: [digest] })).toEqual([
    { subject: 'page', ord: 0, digest, size: 10 },
  ])
  await put(root, workspaceId, 'page', 'Another text.')
  expect(await countEmbedded(root, { workspaceId, model })).toMatchObject({ chunks: 1, embeddedChunks: 0 })
  expect(await listVectors(root, { workspaceId, digests: [digest] })).toEqual([])
  await putVector(root, { workspaceId, digest, model, vector })
  expect(await listVectors(root, { workspaceId, digests: [digest] })).toEqual([])
})

onBoth('a text that two pages have keeps its vector until both are gone; another model asks anew', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const title = 'Same'
  const both = readForSearch({ kind: 'markdown', body: 'Some text.' })
  for (const subject of ['one', 'two']) await indexSubject(root, { workspaceId, subject: idFrom(subject), title }, both)
  const [{ digest } = { digest: '' }] = await listChunks(root, { workspaceId, subjects: ['one'] })
  await putVector(root, { workspaceId, digest, model, vector })
  await removeSubject(root, { workspaceId, subject: idFrom('one') })
  expect(await listVectors(root, { workspaceId, digests: [digest] })).toHaveLength(1)
  expect(await forgetOtherModels(root, model)).toBe(false)
  expect(await forgetOtherModels(root, 'other')).toBe(true)
  expect(await findDimensions(root, model)).toBeNull()
  expect(await claimToEmbed(root, { now: at, until: at })).toHaveLength(1)
  await putVector(root, { workspaceId, digest, model: 'other', vector })
  await removeSubject(root, { workspaceId, subject: idFrom('two') })
  expect(await listVectors(root, { workspaceId, digests: [digest] })).toEqual([])
})

interface Parts {
  fake: FakeEmbeddings
  filler: EmbeddingFiller
  meaning: Meaning
  workspaceId: string
  find: (text: string) => Promise<string[]>
  /** Moves both clocks. */
  advance: (ms: number) => void
  /** Has each timer that is set from now on end as soon as the model was asked, and answers for how long they were set. */
  endTimers: () => number[]
}

async function withModel({ root }: Database, run: (parts: Parts) => Promise<void>, name = model): Promise<void> {
  const fake = await startFakeEmbeddings()
  let offset = 0
  let ended: number[] | null = null
  const world: World = {
    ...realWorld,
    after(ms, end) {
      if (ended === null) return realWorld.after(ms, end)
      ended.push(ms)
      const asked = fake.asked.length
      const look = setInterval(() => fake.asked.length > asked && end(), 5)
      return () => clearInterval(look)
    },
    now: () => Date.now() + offset,
    monotonic: () => performance.now() + offset,
  }
  const client = createEmbeddingClient({ url: endpointOf(fake.url), key: fake.key, model: name }, world)
  const filler = new EmbeddingFiller({ root, client, world, log: silentLog })
  const meaning = new Meaning({ client, world, log: silentLog })
  const workspaceId = await seedWorkspace(root)
  const find = async (text: string) =>
    (await search(root, { workspaceId, text, meaning })).map(({ subject }) => subject)
  try {
    const endTimers = () => (ended = [])
    await run({ fake, filler, meaning, workspaceId, find, advance: (ms) => void (offset += ms), endTimers })
  } finally {
    await filler.stop()
    await fake.stop()
  }
}

onBoth('a page is found by what it is about, and by its words while the model is away', (database) =>
  withModel(database, async ({ fake, filler, workspaceId, find, advance, meaning }) => {
    const { root } = database
    fake.meanings.set('automobile', 'car').set('garage', 'parking')
    const others = numbered(0, 45, (i) => [`other-${i}`, `Number ${i} tells of ships and ${i * 7}.`])
    await putMany(database, workspaceId, others)
    await put(
      root,
      workspaceId,
      'car',
      `${'Intro without it.\n\n'.repeat(100)}# Where\n\nCar, car parking, car parking.`,
    )
    filler.begin()
    await filler.idle()
    expect(fake.asked.length).toBeGreaterThan(1)
    expect(await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).toEqual({
      chunks: 48,
      embeddedChunks: 48,
      embeddedPages: 46,
    })
    expect((await find('automobile garage'))[0]).toBe('car')
    const pages = await search(root, { workspaceId: idFrom(workspaceId), text: 'automobile garage', meaning })
    const snippets = await listSnippets(root, { workspaceId: idFrom(workspaceId), text: 'automobile garage', pages })
    expect(snippets.get('car')).toMatchObject({ heading: 'Where', ranges: [] })
    // Both lists have it, so it is before what only one has.
    expect((await find('ships 42'))[0]).toBe('other-42')
    const other = await seedWorkspace(root)
    expect(await search(root, { workspaceId: other, text: 'automobile', meaning })).toEqual([])
    // What comes and goes after the first search is seen.
    await removeSubject(root, { workspaceId: idFrom(workspaceId), subject: idFrom('car') })
    await put(root, workspaceId, 'new', 'Parking for a car.')
    filler.begin()
    await filler.idle()
    const found = await find('automobile garage')
    expect(found[0]).toBe('new')
    expect(found).not.toContain('car')
    fake.trouble = { status: 503, text: '' }
    expect(await find('automobile tyre')).toEqual([])
    fake.trouble = null
    const asked = fake.asked.length
    expect(await find('parking')).toEqual(['new'])
    expect(fake.asked.length).toBe(asked)
    advance(10_000)
    expect((await find('garage'))[0]).toBe('new')
  }),
)

test('a text that the model refuses, or fails at, takes the model from nobody else', () =>
  onSqlite((database) =>
    withModel(database, async ({ fake, filler, workspaceId, find }) => {
      fake.meanings.set('automobile', 'car')
      await put(database.root, workspaceId, 'page', 'A car.')
      filler.begin()
      await filler.idle()
      fake.refused = 'zzz'
      for (const refusal of [400, 413, 500]) {
        fake.refusal = refusal
        expect(await find(`zzz ${refusal}`)).toEqual([])
        expect(await find(`automobile ${'!'.repeat(refusal % 10)}`)).toEqual(['page'])
      }
    }),
  ))

test('a search waits a second for the model, and no longer', () =>
  onSqlite((database) =>
    withModel(database, async ({ fake, workspaceId, find, endTimers }) => {
      await put(database.root, workspaceId, 'page', 'Some words.')
      fake.trouble = 'hang'
      const timers = endTimers()
      expect(await find('words')).toEqual(['page'])
      expect(await find('some')).toEqual(['page'])
      // The second one does not ask a model that is away.
      expect([timers, fake.asked.length]).toEqual([[1_000], 1])
    }),
  ))

const answerOf = (...embeddings: unknown[]) => ({
  status: 200,
  text: JSON.stringify({ data: embeddings.map((embedding, index) => ({ index, embedding })) }),
})
test('what does not fit is not stored, and is asked for again later and later', () =>
  onSqlite((database) =>
    withModel(database, async ({ fake, filler, workspaceId, advance }) => {
      const { root } = database
      await put(root, workspaceId, 'page', 'Some text.')
      const troubles = [
        { status: 500, text: '' },
        { status: 200, text: 'no json' },
        { status: 200, text: '{"data":[{"index":0,"embedding":[1e999]}]}' },
        { status: 200, text: `{"data":[],"x":"${'x'.repeat(17 * 1024 * 1024)}"}` },
        answerOf(),
        answerOf([1], [2]),
        answerOf([null]),
        answerOf(['1']),
        answerOf([]),
        answerOf([1e300]),
        answerOf(Array.from({ length: 9_000 }, () => 1)),
      ]
      for (const [count, trouble] of troubles.entries()) {
        fake.trouble = trouble
        const asked = fake.asked.length
        filler.begin()
        await filler.idle()
        expect(fake.asked.length, trouble.text.slice(0, 60)).toBe(asked + 1)
        expect(await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).toMatchObject({
          chunks: 1,
          embeddedChunks: 0,
        })
        // Not before half of the time, whatever chance says.
        advance(Math.min(15 * 60_000, 2_000 * 2 ** count) / 2 - 500)
        filler.begin()
        await filler.idle()
        expect(fake.asked.length).toBe(asked + 1)
        advance(15 * 60_000)
      }
      fake.trouble = null
      filler.begin()
      await filler.idle()
      expect(await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).toMatchObject({
        chunks: 1,
        embeddedChunks: 1,
      })
      // The same name for a model of another size.
      fake.dimensions = 32
      await put(root, workspaceId, 'page-2', 'More text.')
      filler.begin()
      await filler.idle()
      expect(await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).toMatchObject({
        chunks: 2,
        embeddedChunks: 1,
      })
    }),
  ))

test('a text that is refused does not hold up others, and is asked for again a day later', () =>
  onSqlite((database) =>
    withModel(database, async ({ fake, filler, workspaceId, advance }) => {
      const { root } = database
      const pages = numbered(0, 40, (i) => [`page-${i}`, i === 7 ? 'A poisoned text.' : `Text ${i}.`])
      await putMany(database, workspaceId, pages)
      fake.refused = 'poisoned'
      filler.begin()
      await filler.idle()
      expect(await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).toMatchObject({
        chunks: 40,
        embeddedChunks: 39,
      })
      const asked = fake.asked.length
      filler.begin()
      await filler.idle()
      expect(fake.asked.length).toBe(asked)
      fake.refused = null
      advance(24 * 3_600_000)
      filler.begin()
      await filler.idle()
      expect(await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).toMatchObject({
        chunks: 40,
        embeddedChunks: 40,
      })
    }),
  ))

test('a text at which the model fails does not hold up others, and neither do several', () =>
  onSqlite((database) =>
    withModel(database, async ({ fake, filler, workspaceId, advance }) => {
      const { root } = database
      const embedded = async () =>
        (await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).embeddedChunks
      const fill = async () => {
        filler.begin()
        await filler.idle()
        advance(15 * 60_000)
      }
      const [refusing, failing] = ['A poisoned text', 'Another poisoned text']
      const pages = numbered(0, 40, (i) => [`page-${i}`, i === 7 ? refusing : i === 9 ? failing : `Text ${i}.`])
      await putMany(database, workspaceId, pages)
      fake.refused = 'poisoned'
      fake.refusal = 500
      await fill()
      expect(await embedded()).toBe(38)
      const asked = fake.asked.length
      await fill()
      expect(fake.asked.length).toBe(asked)
      // As many as a request takes: nothing says that the endpoint is there.
      const poisoned = numbered(0, 32, (i) => [`poisoned-${i}`, `The poisoned text ${i}.`])
      await putMany(database, workspaceId, [...poisoned, ...numbered(40, 50, (i) => [`page-${i}`, `Text ${i}.`])])
      await fill()
      await fill()
      expect(await embedded()).toBe(48)
      fake.refused = null
      advance(24 * 3_600_000)
      await fill()
      expect(await embedded()).toBe(82)
    }),
  ))

onBoth('two at once ask for each text once', (database) =>
  withModel(database, async ({ fake, filler, workspaceId }) => {
    const { root } = database
    const client = createEmbeddingClient({ url: endpointOf(fake.url), key: fake.key, model }, realWorld)
    const other = new EmbeddingFiller({ root, client, world: realWorld, log: silentLog })
    // More than one of them asks for at once.
    const pages = numbered(0, 40, (i) => [`page-${i}`, `Text ${i}.`])
    await putMany(database, workspaceId, pages)
    for (const one of [filler, other]) one.begin()
    await Promise.all([filler.idle(), other.idle()])
    const texts = fake.asked.flat()
    expect([texts.length, new Set(texts).size]).toEqual([40, 40])
    expect(await countEmbedded(root, { workspaceId: idFrom(workspaceId), model })).toMatchObject({
      chunks: 40,
      embeddedChunks: 40,
    })
    await other.stop()
  }),
)

test('the endpoint and the model are set together, and the key does not travel unencrypted', () => {
  const read = (env: Record<string, string>) => () => readConfig(env, {}).embeddings
  const whole = { SVC_EMBEDDINGS_URL: 'https://model.example/v1', SVC_EMBEDDINGS_MODEL: 'm' }
  expect(read({})()).toBeNull()
  expect(read(whole)()).toEqual({ url: 'https://model.example/v1/embeddings', key: null, model: 'm' })
  expect(read({ ...whole, SVC_EMBEDDINGS_KEY: 'k' })()).toMatchObject({ key: 'k' })
  for (const changes of [
    { SVC_EMBEDDINGS_MODEL: '' },
    { SVC_EMBEDDINGS_KEY: 'a b' },
    { SVC_EMBEDDINGS_URL: 'ftp://x' },
  ])
    expect(read({ ...whole, ...changes })).toThrow(ConfigError)
  expect(read({ SVC_EMBEDDINGS_URL: whole.SVC_EMBEDDINGS_URL })).toThrow('together')
  expect(read({ SVC_EMBEDDINGS_KEY: 'k' })).toThrow('together')
  expect(read({ ...whole, SVC_EMBEDDINGS_URL: 'http://model.example' })).toThrow('https')
  expect(read({ ...whole, SVC_EMBEDDINGS_URL: 'http://127.0.0.1:1' })()).toMatchObject({ model: 'm' })
})
