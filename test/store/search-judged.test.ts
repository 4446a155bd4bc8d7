import { idFrom } from '../../shared/lib/ids.ts'
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { z } from 'zod'
import { findRanked } from '../../control-plane/search/find.ts'
import { readQuery } from '../../control-plane/search/query.ts'
import { readForSearch } from '../../control-plane/search/searchable.ts'
import { indexSubject } from '../../control-plane/search/store.ts'
import { onBoth } from '../kit/database.ts'
import { seedWorkspace } from './seed.ts'

/**
 * Pages in six languages with code and paths, and queries with the page that a person would want to see first. Both databases
 * must find that one, and agree about the rest.
 */
const folder = new URL('../fixtures/search/', import.meta.url)
function read<T extends z.ZodType>(name: string, row: T): z.output<T>[] {
  const lines = readFileSync(new URL(name, folder), 'utf8').trimEnd().split('\n')
  return lines.map((line) => row.parse(JSON.parse(line)))
}
const pages = read(
  'pages.jsonl',
  z.strictObject({ id: z.string(), kind: z.enum(['markdown', 'csv']), title: z.string(), body: z.string() }),
)
const queries = read('queries.jsonl', z.strictObject({ q: z.string().max(100), first: z.string() }))

const orders = new Set<string>()

onBoth('each judged query finds its page first, in the same order on both databases', async ({ root }) => {
  expect([pages.length, queries.length]).toEqual([300, 89])
  const workspaceId = await seedWorkspace(root)
  await root.transaction(async (tx) => {
    for (const { id: subject, title, ...text } of pages)
      await indexSubject(tx, { workspaceId, subject: idFrom(subject), title }, readForSearch(text))
  })
  const found: { q: string; order: string[] }[] = []
  for (const { q } of queries) {
    const ranked = await findRanked(root, { workspaceId, query: readQuery(q)! })
    found.push({ q, order: ranked.map(({ subject }) => subject) })
  }
  const firsts = found.map(({ q, order }) => ({ q, first: order[0] }))
  expect(firsts).toEqual(queries)
  orders.add(JSON.stringify(found))
  expect(orders.size).toBe(1)
})
