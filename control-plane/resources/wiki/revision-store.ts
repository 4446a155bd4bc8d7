import type { WikiPageId } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { publishChecks } from '../../../shared/api/wiki-fields.ts'
import { int, json, nullableText, text, time } from '../../db/columns.ts'
import { actorRef, runId, taskId, wikiPageId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/** The columns without the body, which only single reads need. */
const revisions = table(
  'wiki_revisions',
  {
    id: text,
    pageId: wikiPageId,
    /** The number of the revision of its page, from 1. */
    number: int,
    title: text,
    baseRevisionId: nullableText,
    sourceRef: nullableText,
    authorType: z.enum(['user', 'agent']),
    authorRef: actorRef,
    taskId: taskId.nullable(),
    runId: runId.nullable(),
    sizeBytes: int,
    /** Empty: it was published. */
    failedChecks: json(z.array(z.enum(publishChecks))),
    createdAt: time,
  },
  { columns: { authorRef: 'author_id' } },
)
export type WikiRevisionRow = RowOf<typeof revisions>

export async function insertPageRevision(db: Db, revision: WikiRevisionRow, body: string): Promise<void> {
  await db('wiki_revisions').insert({ ...revisions.toColumns(revision), body })
}

export async function findPageRevision(db: Db, pageId: WikiPageId, id: string): Promise<WikiRevisionRow | null> {
  return revisions.find(db, { pageId, id })
}

const bodyOnly = z.object({ body: text })

/** The body of a revision that is there. */
export async function findRevisionBody(db: Db, id: string): Promise<string> {
  const found: unknown = await db('wiki_revisions').where({ id }).first('body')
  return bodyOnly.parse(found).body
}

/** Lists the revisions of a page, those with a lower number than `below`, newest first; returns one row more than `limit`. */
export async function listPageRevisions(
  db: Db,
  { pageId, below, limit }: { pageId: WikiPageId; below: number | null; limit: number },
): Promise<WikiRevisionRow[]> {
  const query = revisions.from(db).where({ page_id: pageId }).orderBy('number', 'desc')
  if (below !== null) void query.where('number', '<', below)
  return revisions.list(query.limit(limit + 1))
}

export async function removePageRevisions(db: Db, pageId: WikiPageId): Promise<void> {
  await db('wiki_revisions').where({ page_id: pageId }).delete()
}
