import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import { wikiPageId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { query, returning } from '../../db/statement.ts'
import { bytesOfCode, bytesOfVector, codeOf } from './vectors.ts'

/**
 * The vectors of chunks. Chunks that tell a model the same have one vector, so a page that is changed in one place keeps those
 * of all others.
 */
const toEmbed = z.object({ id: int, workspaceId: workspaceUuid, title: text, heading: text, body: text, digest: text })
export type ToEmbed = z.output<typeof toEmbed>

/**
 * The oldest chunks without a vector, whose time has come. They are nobody else's until `until`, so replicas do not ask the same;
 * whoever dies leaves them to others by then.
 */
const claim = returning(
  `update search_chunks set embed_at = ?
   where model is null and embed_at <= ? and id in
     (select id from search_chunks where model is null and embed_at <= ? order by embed_at, id limit 32)
   returning id, workspace_id as "workspaceId", heading, body, digest,
     (select caption from search_pages where search_pages.subject = search_chunks.subject) as title`,
  toEmbed,
)
export async function claimToEmbed(db: Db, { now, until }: { now: number; until: number }): Promise<ToEmbed[]> {
  return claim(db, [until, now, now])
}

/** Postpones chunks: these are not tried again before this time (ms UTC). */
export async function postponeEmbedding(db: Db, ids: readonly number[], at: number): Promise<void> {
  await db('search_chunks')
    .whereIn('id', [...ids])
    .whereNull('model')
    .update({ embed_at: at })
}

/** Stores a vector, in a transaction. A digest that no chunk has any more gets none. */
export async function putVector(
  db: Db,
  {
    workspaceId,
    digest,
    model,
    vector,
  }: { workspaceId: WorkspaceUuid; digest: string; model: string; vector: Float32Array },
): Promise<void> {
  const named = { workspace_id: workspaceId, digest }
  // A new row, since whoever keeps codes in memory asks for rows by their numbers.
  await db('search_vectors').where(named).delete()
  if ((await db('search_chunks').where(named).update({ model })) === 0) return
  const [bytes, code] = [bytesOfVector(vector), bytesOfCode(codeOf(vector))]
  await db('search_vectors').insert({ ...named, model, vector: Buffer.from(bytes), code: Buffer.from(code) })
}

/** Forgets everything that another model said, so that it is asked anew. Returns whether there was any. */
export async function forgetOtherModels(db: Db, model: string): Promise<boolean> {
  await db('search_vectors').whereNot({ model }).delete()
  return (await db('search_chunks').whereNot({ model }).update({ model: null, embed_at: 0 })) > 0
}

const counts = z.object({ chunks: int, embeddedChunks: int, embeddedPages: int })

/** Counts what of a workspace is embedded by this model; `model` null: there is none. */
export async function countEmbedded(
  db: Db,
  { workspaceId, model }: { workspaceId: WorkspaceUuid; model: string | null },
): Promise<z.output<typeof counts>> {
  if (model === null) return { ...(await countEmbedded(db, { workspaceId, model: '' })), embeddedPages: 0 }
  const chunks: unknown[] = await db('search_chunks')
    .where({ workspace_id: workspaceId })
    .select({ chunks: db.raw('count(*)'), embeddedChunks: db.raw('count(case when model = ? then 1 end)', [model]) })
  const pages: unknown[] = await db('search_pages')
    .where({ workspace_id: workspaceId })
    .whereNotExists((missing) => {
      void missing.from('search_chunks').select(db.raw('1')).whereRaw('search_chunks.subject = search_pages.subject')
      void missing.where((other) => void other.whereNull('model').orWhereNot({ model }))
    })
    .select({ embeddedPages: db.raw('count(*)') })
  return counts.parse({ ...(chunks[0] as object), ...(pages[0] as object) })
}

const bytes = z.instanceof(Uint8Array)
const codeRow = z.object({ id: int, digest: text, code: bytes })
export type CodeRow = z.output<typeof codeRow>
const codes = query(
  'select id, digest, code from search_vectors where workspace_id = ? and id > ? and model = ? order by id limit ?',
  codeRow,
)

/** Lists codes of a workspace by their numbers, from after this one on. */
export async function listCodes(
  db: Db,
  { workspaceId, model, after, limit }: { workspaceId: WorkspaceUuid; model: string; after: number; limit: number },
): Promise<CodeRow[]> {
  return codes.list(db, [workspaceId, after, model, limit])
}

const vectorRow = z.object({ digest: text, vector: bytes })
const vectors = query('select digest, vector from search_vectors where digest in ? and workspace_id = ?', vectorRow)

export async function listVectors(
  db: Db,
  { workspaceId, digests }: { workspaceId: WorkspaceUuid; digests: readonly string[] },
): Promise<z.output<typeof vectorRow>[]> {
  return vectors.list(db, [digests, workspaceId])
}

const placeRow = z.object({ subject: wikiPageId, ord: int, digest: text, size: int })
const places = query(
  `select c.subject, c.ord, c.digest, p.size from search_chunks c join search_pages p on p.subject = c.subject
   where c.digest in ? and c.workspace_id = ? order by c.id`,
  placeRow,
)

/** Lists where in which subjects these digests are. */
export async function listPlaces(
  db: Db,
  { workspaceId, digests }: { workspaceId: WorkspaceUuid; digests: readonly string[] },
): Promise<z.output<typeof placeRow>[]> {
  return places.list(db, [digests, workspaceId])
}

/** The dimensions of this model's vectors; null: there are none yet. */
export async function findDimensions(db: Db, model: string): Promise<number | null> {
  const row: unknown = await db('search_vectors').where({ model }).first(db.raw('length(vector) as length'))
  return row === undefined ? null : z.object({ length: int }).parse(row).length / 4
}
