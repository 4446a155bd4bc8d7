import fc from 'fast-check'
import type { Stage } from '../contract/stage.ts'
import { manyIds, on, patch, plain, post, thing } from './kit/recipe.ts'
import type { CodeRecipe, GoodRequest, Recipe, ResourceFacts } from './kit/resource-facts.ts'
import { makeIngested, makePage } from './kit/wiki.ts'

const aPage: Recipe = async (stage) => ({ params: { 'wiki.id': (await makePage(stage)).id } })

const aRevision = async (stage: Stage): Promise<GoodRequest> => {
  const { id, currentRevisionId } = await makePage(stage)
  return { params: { 'wiki.id': id, 'wiki.revisionId': currentRevisionId } }
}

async function superseding(stage: Stage): Promise<{ id: string; toPageId: string }> {
  const [{ id }, { id: toPageId }] = [await makePage(stage), await makePage(stage)]
  await stage.server.ok(`/wiki/pages/${id}/relations`, { body: { toPageId } })
  return { id, toPageId }
}

const create = { title: 'A page', slug: 'a-page', body: 'x' }
const ofOwnSlug = ({ server }: Stage) => ({ ...create, slug: server.world.uuid() })

const unknownPage = 'wik_0000000000000000'
const unknownRevision = 'wrev_0000000000000000'

/** Asks for a page that is not there, with a body that would do. */
const missing = (route: string, method: string, path: string, body?: unknown): CodeRecipe =>
  on(route, '404 wiki_page_not_found', ({ server }) =>
    server.call(`/wiki/pages/${unknownPage}${path}`, { method, ...(body === undefined ? {} : { body }) }),
  )

async function atPage(stage: Stage, path: string, body: unknown, page: Record<string, unknown> = {}) {
  const { id } = await makePage(stage, page)
  return stage.server.call(`/wiki/pages/${id}${path}`, post(body))
}

async function atArchived(stage: Stage, pathOf: (page: { currentRevisionId: string }) => string) {
  const page = await makePage(stage)
  await stage.server.ok(`/wiki/pages/${page.id}`, patch({ archived: true }))
  return stage.server.call(`/wiki/pages/${page.id}${pathOf(page)}`, post({ body: 'Some words.' }))
}

const codes: readonly CodeRecipe[] = [
  on('wiki.pages.list', '400 too_many_ids', (stage) => manyIds(stage, '/wiki/pages', unknownPage)),
  on('wiki.pages.list', '400 ids_exclusive', ({ server }) => server.call(`/wiki/pages?ids=${unknownPage}&q=a`)),

  on('wiki.pages.create', '422 wiki_body_truncated', ({ server }) =>
    server.call('/wiki/pages', post({ ...create, body: 'One …1234 tokens truncated… two' })),
  ),
  on('wiki.pages.create', '422 wiki_citation_style', ({ server }) =>
    server.call('/wiki/pages', post({ ...create, body: 'So it is [1].' })),
  ),
  on('wiki.pages.create', '409 wiki_page_slug_conflict', async (stage) =>
    stage.server.call('/wiki/pages', post({ ...create, slug: (await makePage(stage)).slug })),
  ),
  on('wiki.pages.create', '409 wiki_publish_failed', ({ server }) =>
    server.call('/wiki/pages', post({ ...create, kind: 'csv', body: 'a,"b' })),
  ),

  missing('wiki.pages.get', 'GET', ''),
  missing('wiki.pages.update', 'PATCH', '', {}),
  missing('wiki.pages.delete', 'DELETE', ''),
  missing('wiki.pages.revisions.list', 'GET', '/revisions'),
  missing('wiki.pages.revisions.publish', 'POST', '/revisions', { body: 'x' }),
  missing('wiki.pages.revisions.get', 'GET', `/revisions/${unknownRevision}`),
  missing('wiki.pages.revisions.restore', 'POST', `/revisions/${unknownRevision}/restore`),
  missing('wiki.pages.relations.add', 'POST', '/relations', { toPageId: unknownPage }),
  missing('wiki.pages.relations.remove', 'DELETE', '/relations', { toPageId: unknownPage }),
  missing('wiki.pages.backlinks', 'GET', '/backlinks'),
  missing('wiki.pages.sources', 'GET', '/sources'),

  on('wiki.pages.update', '409 wiki_page_slug_conflict', async (stage) => {
    const [{ slug }, { id }] = [await makePage(stage), await makePage(stage)]
    return stage.server.call(`/wiki/pages/${id}`, patch({ slug }))
  }),
  on('wiki.pages.update', '409 wiki_source_page_immutable', async (stage) => {
    const { id } = await makePage(stage)
    await makeIngested(stage.server, id)
    return stage.server.call(`/wiki/pages/${id}`, patch({ archived: true }))
  }),

  on('wiki.pages.revisions.publish', '404 wiki_revision_not_found', (stage) =>
    atPage(stage, '/revisions', { body: 'x', baseRevisionId: unknownRevision }),
  ),
  on('wiki.pages.revisions.get', '404 wiki_revision_not_found', async (stage) =>
    stage.server.call(`/wiki/pages/${(await makePage(stage)).id}/revisions/${unknownRevision}`),
  ),
  on('wiki.pages.revisions.restore', '404 wiki_revision_not_found', (stage) =>
    atPage(stage, `/revisions/${unknownRevision}/restore`, {}),
  ),
  on('wiki.pages.revisions.publish', '409 wiki_stale_base_revision', async (stage) => {
    const { id, currentRevisionId: baseRevisionId } = await makePage(stage)
    await stage.server.ok(`/wiki/pages/${id}/revisions`, { body: { body: 'Some other words.' } })
    return stage.server.call(`/wiki/pages/${id}/revisions`, post({ body: 'Third words.', baseRevisionId }))
  }),
  on('wiki.pages.revisions.publish', '422 wiki_body_truncated', (stage) =>
    atPage(stage, '/revisions', { body: 'Some words [12 tokens truncated]' }),
  ),
  on('wiki.pages.revisions.publish', '422 wiki_body_shrunk', (stage) => atPage(stage, '/revisions', { body: 'x' })),
  on('wiki.pages.revisions.publish', '422 wiki_citation_style', (stage) =>
    atPage(stage, '/revisions', { body: 'Some words.\n\n## Sources\n' }),
  ),
  on('wiki.pages.revisions.publish', '409 wiki_publish_failed', (stage) => atArchived(stage, () => '/revisions')),
  on('wiki.pages.revisions.restore', '409 wiki_publish_failed', (stage) =>
    atArchived(stage, ({ currentRevisionId }) => `/revisions/${currentRevisionId}/restore`),
  ),

  on('wiki.pages.relations.add', '400 wiki_relation_self', async (stage) => {
    const { id, slug } = await makePage(stage)
    return stage.server.call(`/wiki/pages/${id}/relations`, post({ toPageId: slug }))
  }),
  on('wiki.pages.relations.add', '409 wiki_relation_exists', async (stage) => {
    const { id, toPageId } = await superseding(stage)
    return stage.server.call(`/wiki/pages/${id}/relations`, post({ toPageId }))
  }),
  on('wiki.pages.relations.add', '400 wiki_relation_workspace_mismatch', (stage) =>
    atPage(stage, '/relations', { toPageId: unknownPage }),
  ),
]

export const wikiFacts: ResourceFacts = {
  requests: {
    'wiki.pages.list': plain,
    'wiki.pages.create': (stage) => ({ body: ofOwnSlug(stage) }),
    'wiki.pages.get': aPage,
    'wiki.pages.update': async (stage) => ({ ...(await aPage(stage)), body: { archived: true } }),
    'wiki.pages.delete': aPage,
    'wiki.pages.revisions.list': aPage,
    'wiki.pages.revisions.publish': async (stage) => ({ ...(await aPage(stage)), body: { body: 'Some more words.' } }),
    'wiki.pages.revisions.get': aRevision,
    'wiki.pages.revisions.restore': aRevision,
    'wiki.pages.relations.add': async (stage) => ({
      ...(await aPage(stage)),
      body: { toPageId: (await makePage(stage)).id },
    }),
    'wiki.pages.relations.remove': async (stage) => {
      const { id, toPageId } = await superseding(stage)
      return { params: { 'wiki.id': id }, body: { toPageId } }
    },
    'wiki.pages.backlinks': aPage,
    'wiki.pages.sources': aPage,
    'wiki.embeddingStatus': plain,
  },
  codes,
  withoutCommand: { 'wiki.pages.revisions.get': '`svc wiki get --revision` asks for it.' },

  unknownIds: { 'wiki.id': unknownPage, 'wiki.revisionId': unknownRevision },
  async things({ server, person: { token } }) {
    const { id, slug } = await makePage({ server }, {}, token)
    await makePage({ server }, { body: `See [it](${slug}) and <https://example.com>.` }, token)
    await server.ok(`/wiki/pages/${id}/revisions`, { body: { body: 'See [more](https://example.com).' }, token })
    const { data } = await server.ok(`/wiki/pages/${id}/revisions`, { token })
    return { 'wiki.id': id, 'wiki.revisionId': data[0].id }
  },
  within: (
    [
      ['wiki.pages.revisions.get', 'GET', ''],
      ['wiki.pages.revisions.restore', 'POST', '/restore'],
    ] as const
  ).map(
    ([route, method, end]) =>
      [
        route,
        method,
        async (stage: Stage, ids: Readonly<Record<string, string>>) => ({
          path: `/wiki/pages/${(await makePage(stage)).id}/revisions/${ids['wiki.revisionId']}${end}`,
        }),
      ] as const,
  ),
  places: [
    ['wiki.pages.list', 'GET', (_, ids) => ({ path: `/wiki/pages?ids=${ids['wiki.id']}` })],
    [
      'wiki.pages.create',
      'POST',
      (stage, ids) => ({ path: '/wiki/pages', body: { ...ofOwnSlug(stage), taskId: ids['tasks.id'] } }),
    ],
    [
      'wiki.pages.create',
      'POST',
      (stage, ids) => ({ path: '/wiki/pages', body: { ...ofOwnSlug(stage), runId: ids['runId'] } }),
    ],
    [
      'wiki.pages.revisions.publish',
      'POST',
      async (stage, ids) => ({
        path: `/wiki/pages/${(await makePage(stage)).id}/revisions`,
        body: { body: 'Some words.', baseRevisionId: ids['wiki.revisionId'] },
      }),
    ],
    ...(['POST', 'DELETE'] as const).map(
      (method) =>
        [
          `wiki.pages.relations.${method === 'POST' ? 'add' : 'remove'}`,
          method,
          async (stage: Stage, ids: Readonly<Record<string, string>>) => ({
            path: `/wiki/pages/${(await makePage(stage)).id}/relations`,
            body: { toPageId: ids['wiki.id'] },
          }),
        ] as const,
    ),
  ],
  named: {
    toPageId: thing('wiki.id'),
    baseRevisionId: thing('wiki.revisionId'),
    body: fc.constantFrom('Some words.', '[a](b) and [[c]]'),
  },
}
