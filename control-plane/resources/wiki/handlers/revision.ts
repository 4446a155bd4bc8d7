import { cursorOf, pageOf } from '../../../../shared/api/paging.ts'
import { byteLength } from '../../../../shared/lib/byte-length.ts'
import type { wikiRoutes } from '../../../../shared/api/wiki.ts'
import { z } from 'zod'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { type BeforeInput, answer, type HandlerInput } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { namedPage, namedRevision } from '../own/lookup.ts'
import { presentPageSummary } from '../own/present.ts'
import type { PageReading } from '../read-page.ts'
import { findPageRevision, findRevisionBody, listPageRevisions, type WikiRevisionRow } from '../revision-store.ts'
import { publishFlaws, restoreFlaws } from '../own/rules.ts'
import { addRevision } from '../steps/own/publish.ts'
import type { WikiPageRow } from '../store.ts'
import { authorOf } from './author.ts'
import { presentWikiRevisions } from './present-revisions.ts'
import { readingOf, refuseIfAny } from './reading.ts'

/** Revisions of pages. None is ever changed: what is restored is published once more. */
type Routes = typeof wikiRoutes

const cursor = z.tuple([z.number().int().positive().max(2_147_483_647)])

export async function revisions({ db, caller, params, query }: HandlerInput<Routes['revisions']>) {
  const page = await namedPage(db, caller.workspaceId, params.id)
  const { limit } = query
  const below = cursorOf(query, cursor)?.[0] ?? null
  const rows = await listPageRevisions(db, { pageId: page.id, below, limit })
  const shown = await presentWikiRevisions(db, caller, rows.slice(0, limit))
  const byId = new Map(shown.map((revision) => [revision.id, revision]))
  return pageOf({ rows, limit, keyOf: ({ number }) => [number], present: ({ id }) => byId.get(id)! })
}

export async function revision({ db, caller, params }: HandlerInput<Routes['revision']>) {
  const page = await namedPage(db, caller.workspaceId, params.id)
  return presented(db, caller, await namedRevision(db, page, { id: params.revisionId, param: 'revisionId' }))
}

export async function publishRevision(
  { db, caller, params, body, world }: HandlerInput<Routes['publish']>,
  reading: PageReading,
) {
  const page = await namedPage(db, caller.workspaceId, params.id)
  const { baseRevisionId = null, allowShrink, title = page.title } = body
  if (baseRevisionId !== null) await namedRevision(db, page, { id: baseRevisionId, param: 'baseRevisionId' })
  const current = page.currentRevisionId === null ? null : await findPageRevision(db, page.id, page.currentRevisionId)
  refuseIfAny(
    publishFlaws({
      bodyFlaws: reading.flaws,
      sizeBytes: byteLength(body.body),
      current,
      baseRevisionId,
      allowShrink,
      isArchived: page.archivedAt !== null,
    }),
  )
  const draft = { title, body: body.body, reading, ...(await authorOf(db, caller)) }
  return answer(201, await published({ db, caller }, await addRevision(db, page, draft, world), draft.body))
}

/** A revision is read before the transaction: it never changes. */
export interface ToRestore {
  body: string
  reading: PageReading
}

export async function readToRestore(
  { db, caller, params }: BeforeInput<Routes['restore']>,
  deps: Pick<ResourceDependencies, 'costly'>,
): Promise<ToRestore> {
  const page = await namedPage(db, caller.workspaceId, params.id)
  const { id } = await namedRevision(db, page, { id: params.revisionId, param: 'revisionId' })
  const body = await findRevisionBody(db, id)
  return { body, reading: await readingOf({ kind: page.kind, body }, { caller, ...deps }) }
}

export async function restore(
  { db, caller, params, world }: HandlerInput<Routes['restore']>,
  { body, reading }: ToRestore,
) {
  const page = await namedPage(db, caller.workspaceId, params.id)
  const { title, sourceRef } = await namedRevision(db, page, { id: params.revisionId, param: 'revisionId' })
  const facts = { sizeBytes: byteLength(body), current: null, baseRevisionId: null, allowShrink: true }
  refuseIfAny(restoreFlaws(publishFlaws({ ...facts, bodyFlaws: reading.flaws, isArchived: page.archivedAt !== null })))
  const draft = { title, body, reading, sourceRef, ...(await authorOf(db, caller)) }
  return published({ db, caller }, await addRevision(db, page, draft, world), body)
}

async function published(
  { db, caller }: { db: Db; caller: Caller },
  { page, revision }: { page: WikiPageRow; revision: WikiRevisionRow },
  body: string,
) {
  const [shown] = await presentWikiRevisions(db, caller, [revision])
  return { ...shown!, body, page: presentPageSummary(page) }
}

async function presented(db: Db, caller: Caller, row: WikiRevisionRow) {
  const [shown] = await presentWikiRevisions(db, caller, [row])
  return { ...shown!, body: await findRevisionBody(db, row.id) }
}
