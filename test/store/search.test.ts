import { idFrom } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import type { Db } from '../../control-plane/db/open.ts'
import { insertWords, listByWords, removeWords } from '../../control-plane/db/word-index.ts'
import { findRanked, listSnippets } from '../../control-plane/search/find.ts'
import { readQuery } from '../../control-plane/search/query.ts'
import { readForSearch } from '../../control-plane/search/searchable.ts'
import { indexSubject, listChunks, listSearchPages, removeSubject } from '../../control-plane/search/store.ts'
import { onBoth } from '../kit/database.ts'
import { seedWorkspace } from './seed.ts'

async function put(
  db: Db,
  workspaceId: string,
  subject: string,
  { title = subject, body = '' }: { title?: string; body?: string } = {},
): Promise<void> {
  await indexSubject(
    db,
    { workspaceId: idFrom(workspaceId), subject: idFrom(subject), title },
    readForSearch({ body, kind: 'markdown' }),
  )
}

async function search(db: Db, workspaceId: string, text: string): Promise<string[]> {
  const query = readQuery(text)
  return query === null
    ? []
    : (await findRanked(db, { workspaceId: idFrom(workspaceId), query })).map(({ subject }) => subject)
}

onBoth('a page is found by all of its words, in its workspace, until it is removed', async ({ root }) => {
  const [workspaceId, other] = [await seedWorkspace(root), await seedWorkspace(root)]
  const body = `Intro about the canary.\n\n${'filler text\n'.repeat(300)}\n# Roll back\n\nRestore the snapshot.`
  await put(root, workspaceId, 'deploy', { body })
  await put(root, other, 'elsewhere', { body })
  // The words stand far apart, in different chunks.
  expect(await search(root, workspaceId, 'canary snapshot deploy')).toEqual(['deploy'])
  expect(await search(root, workspaceId, 'snapshot unicorn')).toEqual([])
  expect(await search(root, workspaceId, 'snap')).toEqual(['deploy'])
  expect(await search(root, workspaceId, 'snap canary')).toEqual([])
  expect(await search(root, workspaceId, 'elsewhere')).toEqual([])
  await put(root, workspaceId, 'deploy', { body: 'Now about something else.' })
  expect(await search(root, workspaceId, 'snapshot')).toEqual([])
  expect(await search(root, workspaceId, 'something')).toEqual(['deploy'])
  await removeSubject(root, { workspaceId, subject: idFrom('deploy') })
  expect(await search(root, workspaceId, 'deploy')).toEqual([])
  expect(await listChunks(root, { workspaceId, subjects: ['deploy'] })).toEqual([])
  expect(await search(root, other, 'canary')).toEqual(['elsewhere'])
})

onBoth('the title counts most, then headings, then how often; the newest first of equals', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const add = (subject: string, title: string, body: string) => put(root, workspaceId, subject, { title, body })
  await add('title', 'The ledger', 'Nothing here.')
  await add('exact', 'Ledger', 'Nothing here.')
  await add('heading', 'Books', '# Ledger\n\nNothing here.')
  await add('often', 'Books', 'ledger ledger ledger ledger here.')
  await add('old', 'Books', 'One ledger here.')
  await add('new', 'Books', 'One ledger here.')
  await add('prefix', 'Books', 'Many ledgers here.')
  expect(await search(root, workspaceId, 'ledger')).toEqual([
    'exact',
    'title',
    'heading',
    'often',
    'prefix',
    'new',
    'old',
  ])
})

onBoth(
  'what is written as one thing is found before the same words apart, and by its other spelling',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    await put(root, workspaceId, 'camel', { title: 'One', body: 'Set the runId of all it.' })
    await put(root, workspaceId, 'snake', { title: 'Two', body: 'Set the run_id of it.' })
    await put(root, workspaceId, 'apart', { title: 'Id', body: 'Each run of a run has an id; the id of a run.' })
    expect(await search(root, workspaceId, 'run_id')).toEqual(['snake', 'camel', 'apart'])
    expect(await search(root, workspaceId, 'runId')).toEqual(['snake', 'camel'])
  },
)

onBoth('of more pages than are shown, those with the word in their title or headings are kept', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  await put(root, workspaceId, 'title', { title: 'Cluster plan' })
  await put(root, workspaceId, 'heading', { title: 'Plan', body: '# Cluster\n' })
  await put(root, workspaceId, 'often', { title: 'Plan', body: 'cluster cluster cluster' })
  await put(root, workspaceId, 'lost', { title: 'Plan', body: 'cluster' })
  // In one transaction, as each of its own costs PostgreSQL several times as much.
  await root.transaction(async (tx) => {
    for (let i = 0; i < 210; i++)
      await put(tx, workspaceId, `page-${i}`, { title: 'Plan', body: `A cluster, number ${i}.` })
  })
  const found = await search(root, workspaceId, 'cluster')
  expect(found.slice(0, 4)).toEqual(['title', 'heading', 'often', 'page-209'])
  expect(found).toHaveLength(200)
  expect(found).not.toContain('lost')
  expect((await search(root, workspaceId, 'x-cluster plan')).length).toBe(0)
  expect((await search(root, workspaceId, 'a-cluster plan')).length).toBe(200)
})

const hostile = [
  '"',
  '""',
  "'",
  '*',
  '-x',
  'a:b',
  '(',
  ')',
  '()',
  'NEAR(',
  'NEAR(a b, 2)',
  'a AND',
  'OR OR',
  'NOT',
  '{title}: a',
  '^a',
  'a & | ! b',
  "a':*",
  '\\',
  '\0',
  'a\0b',
  '!?',
  '%_',
  '@',
  ':',
  '<->',
  '\u{d800}',
  '\u{202e}x',
  '﷽'.repeat(100),

  '('.repeat(100),
  'a b '.repeat(25),
  'a.'.repeat(50),
  '数'.repeat(100),
  '数 '.repeat(50),
  'é\u0301'.repeat(50),
  '½'.repeat(100),
]
onBoth('no text is an operator or an error', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  for (const [i, text] of hostile.entries()) {
    const subject = `page-${i}`
    // The API refuses NUL in a body, but not in a query.
    const stored = text.replaceAll('\0', ' ')
    await put(root, workspaceId, subject, { title: stored, body: `${stored} and more` })
    const found = await search(root, workspaceId, text)
    expect(readQuery(text) === null ? [subject] : found, text).toContain(subject)
  }
  // A word of them is a word.
  expect(await search(root, workspaceId, 'NEAR')).toHaveLength(2)
})

onBoth('large and strange bodies are indexed', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const words = Array.from({ length: 40_000 }, (_, i) => i.toString(36)).join(' ')
  const bodies = [
    '﷽'.repeat(87_000),
    'ﷺ'.repeat(87_000),
    'a'.repeat(262_144),
    words,
    '数据库'.repeat(29_000),
    '\u{dc00} x',
    '#\n'.repeat(131_072),
  ]
  for (const [i, body] of bodies.entries()) await put(root, workspaceId, `page-${i}`, { body })
  expect(await search(root, workspaceId, (30_000).toString(36))).toEqual(['page-3'])
  expect(await search(root, workspaceId, '据库')).toEqual(['page-4'])
  const snippets = await listSnippets(root, {
    workspaceId,
    text: '数据库',
    pages: [{ subject: idFrom('page-4'), size: 87_000 }],
  })
  expect(snippets.get('page-4')).toMatchObject({ offset: 0, ranges: [{ start: 0, end: 240 }] })
})

onBoth('a snippet shows where the words stand; beyond what is read at once, how the page begins', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const body = `${'Filler text. '.repeat(200)}\n# Usage\n\nThen call Décharger twice.`
  await put(root, workspaceId, 'one', { title: 'Plan', body })
  const snippetOfOne = async (size: number) =>
    (await listSnippets(root, { workspaceId, text: 'decharger', pages: [{ subject: idFrom('one'), size }] })).get(
      'one',
    )!
  const { heading, text, offset, ranges } = await snippetOfOne(body.length)
  expect(heading).toBe('Usage')
  expect(ranges.map(({ start, end }) => text.slice(start, end))).toEqual(['Décharger'])
  expect(body.slice(offset, offset + text.length)).toBe(text)
  expect(await snippetOfOne(1_000_001)).toMatchObject({ heading: '', offset: 0, ranges: [] })
})

onBoth('the index of words knows rows by their numbers and parts', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const parts = { title: ' one ', heading: ' two ', often: ' three ', body: ' four ' }
  await insertWords(root, { id: 7, workspaceId, words: parts })
  await insertWords(root, { id: 8, workspaceId, words: { ...parts, title: ' four ' } })
  const list = (text: string, part: keyof typeof parts) =>
    listByWords(root, { workspaceId, words: [[[{ text, isPrefix: false }]]], part, limit: 10 })
  expect(await list('four', 'body')).toEqual([8, 7])
  expect(await list('four', 'often')).toEqual([8])
  expect(await list('two', 'title')).toEqual([])
  expect(await list('two', 'heading')).toEqual([8, 7])
  await removeWords(root, [7])
  expect(await list('two', 'body')).toEqual([8])
  expect(await listSearchPages(root, { workspaceId, ids: [] })).toEqual([])
  expect(await listSearchPages(root, { workspaceId, ids: [8] })).toEqual([])
})
