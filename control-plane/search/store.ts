import type { WikiPageId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { hash } from 'node:crypto'
import { z } from 'zod'
import { int, nullableText, text } from '../db/columns.ts'
import { wikiPageId, workspaceUuid } from '../db/id-columns.ts'
import type { Db } from '../db/open.ts'
import { table, type RowOf } from '../db/table.ts'
import { insertWords, removeWords } from '../db/word-index.ts'
import type { Chunk } from './chunks.ts'
import { indexedTitleWords } from './page-words.ts'
import type { Searchable } from './searchable.ts'

/**
 * The pages of a workspace that are found by their words. A subject is a page to whoever has it indexed, in the transaction that changes
 * it, so that what is found is what is stored. An archived or deleted one is removed.
 */
const pages = table('search_pages', {
  id: int,
  workspaceId: workspaceUuid,
  subject: wikiPageId,
  /** The title as its author wrote it. */
  caption: text,
  /** Words for the ranking; see page-words.ts. */
  title: text,
  headings: text,
  counts: text,
  length: int,
  /** The size of the body, in UTF-16 units. */
  size: int,
})
export type SearchPageRow = RowOf<typeof pages>

const chunks = table('search_chunks', {
  id: int,
  workspaceId: workspaceUuid,
  subject: wikiPageId,
  ord: int,
  heading: text,
  start: int,
  body: text,
  /** The digest of all that a model is told of it: equal ones have one vector. */
  digest: text,
  /** The model that its vector is of; null: it has none. */
  model: nullableText,
})
export type SearchChunkRow = RowOf<typeof chunks>

/** Replaces what is known of the subject. */
export async function indexSubject(
  db: Db,
  { workspaceId, subject, title }: { workspaceId: WorkspaceUuid; subject: WikiPageId; title: string },
  { words, chunks: cut, size }: Searchable,
): Promise<void> {
  const before = await removeFromIndex(db, subject)
  const inTitle = indexedTitleWords(title)
  const { headings, counts, length } = words
  const facts = { caption: title, title: inTitle, headings, counts, length, size }
  const [row] = (await db('search_pages')
    .insert(pages.toColumns({ workspaceId, subject, ...facts }))
    .returning('id')) as { id: number | string }[]
  await insertWords(db, { id: Number(row!.id), workspaceId, words: { ...words, title: inTitle } })
  const digests = cut.map((chunk) => digestOf(title, chunk))
  const models = await listModels(db, workspaceId, digests)
  const rows = cut.map(({ heading, start, text: body }, ord) => {
    const digest = digests[ord]!
    return { workspaceId, subject, ord, heading, start, body, digest, model: models.get(digest) ?? null }
  })
  for (let i = 0; i < rows.length; i += atOnce) await chunks.insert(db, rows.slice(i, i + atOnce))
  await removeLoneVectors(db, workspaceId, before)
}

const digestOf = (title: string, { heading, text: body }: Chunk): string =>
  hash('sha256', JSON.stringify([title, heading, body]))

/** PostgreSQL and SQLite bound the values of a statement. */
const atOnce = 500

/** Removes the subject: nothing of it is found any more. */
export async function removeSubject(
  db: Db,
  { workspaceId, subject }: { workspaceId: WorkspaceUuid; subject: WikiPageId },
): Promise<void> {
  await removeLoneVectors(db, workspaceId, await removeFromIndex(db, subject))
}

/** Returns the digests of its chunks that had a vector. Without a page there are no chunks. */
async function removeFromIndex(db: Db, subject: WikiPageId): Promise<string[]> {
  const page = await pages.find(db, { subject })
  if (page === null) return []
  await removeWords(db, [page.id])
  await db('search_pages').where({ id: page.id }).delete()
  const digests: unknown[] = await db('search_chunks').where({ subject }).whereNotNull('model').pluck('digest')
  await db('search_chunks').where({ subject }).delete()
  return digests.map((digest) => text.parse(digest))
}

const withModel = z.object({ digest: text, model: text })

/** The models of vectors that are there for these digests. */
async function listModels(
  db: Db,
  workspaceId: WorkspaceUuid,
  digests: readonly string[],
): Promise<Map<string, string>> {
  const models = new Map<string, string>()
  for (let i = 0; i < digests.length; i += atOnce) {
    const rows: unknown[] = await db('search_vectors')
      .where({ workspace_id: workspaceId })
      .whereIn('digest', digests.slice(i, i + atOnce))
      .select('digest', 'model')
    for (const row of rows) {
      const { digest, model } = withModel.parse(row)
      models.set(digest, model)
    }
  }
  return models
}

/** Removes those of these vectors that no chunk has any more. */
async function removeLoneVectors(db: Db, workspaceId: WorkspaceUuid, digests: readonly string[]): Promise<void> {
  for (let i = 0; i < digests.length; i += atOnce)
    await db('search_vectors')
      .where({ workspace_id: workspaceId })
      .whereIn('digest', digests.slice(i, i + atOnce))
      .whereNotExists((left) => {
        void left.from('search_chunks').select(db.raw('1')).whereRaw('search_chunks.digest = search_vectors.digest')
        void left.where('search_chunks.workspace_id', workspaceId)
      })
      .delete()
}

const byIds = pages.query('where id in ? and workspace_id = ?')

/** Lists the pages that are still there, in no order. */
export async function listSearchPages(
  db: Db,
  { workspaceId, ids }: { workspaceId: WorkspaceUuid; ids: readonly number[] },
): Promise<SearchPageRow[]> {
  return ids.length === 0 ? [] : byIds.list(db, [ids.map(String), workspaceId])
}

// The workspace is not asked for as well: SQLite would read all chunks of it.
const ofSubjects = chunks.query('where subject in ? order by subject, ord')
const firstOfSubjects = chunks.query('where subject in ? and ord = 0')

/** The chunks of these subjects in their order, or only the first of each. */
export async function listChunks(
  db: Db,
  {
    workspaceId,
    subjects,
    isFirst = false,
  }: { workspaceId: WorkspaceUuid; subjects: readonly string[]; isFirst?: boolean },
): Promise<SearchChunkRow[]> {
  if (subjects.length === 0) return []
  const found = await (isFirst ? firstOfSubjects : ofSubjects).list(db, [subjects])
  return found.filter((chunk) => chunk.workspaceId === workspaceId)
}
