import { idFrom } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { wikiPageId } from '../../../../shared/api/ids.ts'
import { batchOf, beforeOf, cursorOf, pageByTime, pageOf, timeAndId } from '../../../../shared/api/paging.ts'
import { wikiRoutes } from '../../../../shared/api/wiki.ts'
import { asPageSlug, pageSlugOf } from '../../../../shared/lib/page-slug.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { z } from 'zod'
import {
  answer,
  type BeforeInput,
  type HandlerInput,
  implement,
  type ImplementedRoute,
  prepared,
} from '../../../http/implement.ts'
import { countEmbedded } from '../../../search/embeddings/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { listLinks } from '../own/link-store.ts'
import { namedPage } from '../own/lookup.ts'
import { presentPage, presentPageSummary, presentSources } from '../own/present.ts'
import type { PageReading } from '../read-page.ts'
import { changesWhatFilesSay } from '../own/rules.ts'
import { changePage, checkSlug, makePage, removePage, textOfRevived, type Revived } from '../steps/own/page.ts'
import { addRevision } from '../steps/own/publish.ts'
import { countPages, listPages, listPagesByIds } from '../store.ts'
import { authorOf } from './author.ts'
import { readingOf, refuseIfAny } from './reading.ts'
import { revivedOf } from './revive.ts'
import { found } from './found.ts'
import { supersede, unsupersede } from './relation.ts'
import { publishRevision, readToRestore, restore, revision, revisions, type ToRestore } from './revision.ts'

type Dependencies = Pick<ResourceDependencies, 'costly' | 'meaning'>
type Routes = typeof wikiRoutes

/** Pages are there for everybody in their workspace. */
export function wikiHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(wikiRoutes, {
    list: (input) => (input.query.q === undefined ? list(input) : found(input, input.query.q, deps)),

    create: prepared<Routes['create'], PageReading>({
      before: ({ caller, body }) => readingOf(body, { caller, ...deps }),
      handle: create,
    }),

    async get({ db, caller, params }) {
      return presentPage(db, await namedPage(db, caller.workspaceId, params.id))
    },

    update: prepared<Routes['update'], Revived | null>({
      before: (input) => readToRevive(input, deps),
      handle: update,
    }),

    async delete({ db, caller, params }) {
      await removePage(db, await namedPage(db, caller.workspaceId, params.id))
    },

    revisions,

    publish: prepared<Routes['publish'], PageReading>({
      async before({ db, caller, params, body: { body } }) {
        const { kind } = await namedPage(db, caller.workspaceId, params.id)
        return readingOf({ kind, body }, { caller, ...deps })
      },
      handle: publishRevision,
    }),

    revision,

    restore: prepared<Routes['restore'], ToRestore>({
      before: (input) => readToRestore(input, deps),
      handle: restore,
    }),

    supersede,
    unsupersede,
    backlinks,
    sources,

    async embeddingStatus({ db, caller: { workspaceId } }) {
      const model = deps.meaning?.model ?? null
      const pages = await countPages(db, { workspaceId, isPublished: true })
      const counts = await countEmbedded(db, { workspaceId, model })
      return { object: 'wiki_embedding_status' as const, isConfigured: model !== null, pages, ...counts }
    },
  })
}

const cursor = timeAndId(wikiPageId)

async function list({ db, caller, query }: HandlerInput<Routes['list']>) {
  const { workspaceId } = caller
  const { ids, archived: isArchived = false, neverPublished, limit } = query
  if (ids !== undefined) {
    const found = new Map(
      (await listPagesByIds(db, { workspaceId, ids: ids.map((id) => idFrom(id)) })).map((page) => [page.id, page]),
    )
    return batchOf(ids, (id) => {
      const page = found.get(idFrom(id))
      return page === undefined ? null : presentPageSummary(page)
    })
  }
  const isPublished = neverPublished === undefined ? undefined : !neverPublished
  const filter = { workspaceId, isArchived, ...withoutUndefined({ isPublished }) }
  return pageByTime(await listPages(db, { ...filter, ...beforeOf(query, cursor), limit }), limit, presentPageSummary)
}

async function create({ db, caller, body, world }: HandlerInput<Routes['create']>, reading: PageReading) {
  const { title, kind } = body
  const slug = asPageSlug(body.slug ?? pageSlugOf(title))
  if (slug === null)
    fail('validation_error', { param: 'slug', message: 'The title gives no slug: send one of letters and digits.' })
  refuseIfAny(reading.flaws)
  const authored = await authorOf(db, caller, body)
  const made = await makePage(db, { workspaceId: caller.workspaceId, slug, title, kind, sourceRef: null }, world)
  const { page } = await addRevision(db, made, { title, body: body.body, reading, ...authored }, world)
  return answer(201, await presentPage(db, page))
}

async function readToRevive(
  { db, caller, params, body }: BeforeInput<Routes['update']>,
  deps: Pick<Dependencies, 'costly'>,
): Promise<Revived | null> {
  if (body.archived !== false) return null
  return revivedOf(db, await namedPage(db, caller.workspaceId, params.id), { caller, ...deps })
}

async function update({ db, caller, params, body, world }: HandlerInput<Routes['update']>, revived: Revived | null) {
  const page = await namedPage(db, caller.workspaceId, params.id)
  const slug = body.slug === undefined ? undefined : (asPageSlug(body.slug) ?? undefined)
  if (changesWhatFilesSay(page, { slug, archived: body.archived }))
    fail('wiki_source_page_immutable', {
      message: `The page comes from ${page.sourceRef}: the files say its slug and whether it is live.`,
    })
  if (slug !== undefined && slug !== page.slug) await checkSlug(db, caller.workspaceId, slug)
  // A live page stays found by the text that somebody else may just have published.
  const liveAs = page.archivedAt === null || revived === null ? undefined : { liveAs: textOfRevived(page, revived) }
  const archived = body.archived === true || liveAs
  return presentPage(db, await changePage(db, page, { slug, archived }, world))
}

async function backlinks({ db, caller, params, query }: HandlerInput<Routes['backlinks']>) {
  const { workspaceId } = caller
  const { limit } = query
  const linkingTo = await namedPage(db, workspaceId, params.id)
  const filter = { workspaceId, isArchived: false, linkingTo, ...beforeOf(query, cursor), limit }
  return pageByTime(await listPages(db, filter), limit, presentPageSummary)
}

const linkCursor = z.tuple([z.number().int().nonnegative().max(2_147_483_647)])

async function sources({ db, caller, params, query }: HandlerInput<Routes['sources']>) {
  const { workspaceId } = caller
  const { limit } = query
  const { id: pageId } = await namedPage(db, workspaceId, params.id)
  const rows = await listLinks(db, { pageId, after: cursorOf(query, linkCursor)?.[0] ?? null, limit })
  const shown = await presentSources(db, workspaceId, rows.slice(0, limit))
  return pageOf({ rows, limit, keyOf: ({ ord }) => [ord], present: ({ ord }) => shown.get(ord)! })
}
