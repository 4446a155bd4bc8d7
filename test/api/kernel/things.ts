import { z } from 'zod'
import { runRef } from '../../../shared/api/ids.ts'
import { batchOf, cursorOf, idsParam, listOrBatchOf, pageOf, pageParams } from '../../../shared/api/paging.ts'
import { defineRoute } from '../../../shared/api/route.ts'
import { answer, implement } from '../../../control-plane/http/implement.ts'

// Routes of nothing in particular, which show what the kernel does for each of them.

const echoed = z.record(z.string(), z.unknown())
export const routes = {
  list: defineRoute({
    id: 'things.list',
    endpoint: 'GET /things',
    aliases: { '/stuff': 'stuff.list' },
    summary: 'List',
    query: z.object({
      ids: idsParam,
      status: z.array(z.enum(['open', 'done'])).optional(),
      archived: z.boolean().optional(),
      include: z.array(z.enum(['author'])).optional(),
      ...pageParams,
    }),
    queryCodes: { refuse: { expand: 'expand.not_allowed_on_list' }, invalid: { include: 'invalid_include' } },
    reply: listOrBatchOf(z.object({ n: z.number(), query: echoed })),
  }),
  fixed: defineRoute({
    id: 'things.stats',
    endpoint: 'GET /things/stats',
    summary: 'Fixed',
    reply: z.object({ fixed: z.literal(true) }),
  }),
  get: defineRoute({
    id: 'things.get',
    endpoint: 'GET /things/{runId}',
    summary: 'One',
    params: z.object({ runId: runRef }),
    reply: z.object({ runId: z.string() }),
  }),
  byUuid: defineRoute({
    id: 'things.project',
    endpoint: 'GET /projects/{id}',
    summary: 'One of a form that is not told',
    params: z.object({ id: z.uuid() }),
    malformedParam: 'resource_not_found',
    reply: z.object({ id: z.string() }),
  }),
  create: defineRoute({
    id: 'things.create',
    endpoint: 'POST /things',
    summary: 'Create',
    body: z.object({ name: z.string().min(1).optional(), data: z.unknown().optional() }),
    refusedBodyKeys: { model: 'config_write_forbidden' },
    bodyLimit: 4096,
    reply: z.object({ body: echoed }),
    status: 201,
  }),
  strict: defineRoute({
    id: 'things.update',
    endpoint: 'PATCH /things/{runId}',
    summary: 'Update',
    params: z.object({ runId: runRef }),
    body: z.strictObject({ size: z.number().int().min(1).max(10).optional(), name: z.string().optional() }),
    reply: z.object({ body: echoed }),
  }),
  remove: defineRoute({
    id: 'things.remove',
    endpoint: 'DELETE /things/{runId}',
    summary: 'Remove',
    params: z.object({ runId: runRef }),
  }),
  waiting: defineRoute({
    id: 'things.waiting',
    endpoint: 'GET /waiting',
    summary: 'Answers when it is told to',
    reply: z.object({ waited: z.literal(true) }),
  }),
  moved: defineRoute({
    id: 'things.moved',
    endpoint: 'GET /moved',
    summary: 'Elsewhere',
    reply: z.object({}),
    otherReplies: { 308: z.object({ location: z.string() }) },
  }),
}

/** Makes a place where a test and the handler of the route that waits meet. */
export const makeWaiting = () => ({
  begun: Promise.withResolvers<void>(),
  left: Promise.withResolvers<void>(),
  release: Promise.withResolvers<void>(),
})

/** The numbers that the list holds, in its order. */
export const numbers = Array.from({ length: 60 }, (_, index) => 60 - index)

export const makeThings = (waiting = makeWaiting()) =>
  implement(routes, {
    list: ({ query }) => {
      if (query.ids !== undefined) {
        return Promise.resolve(
          batchOf(query.ids, (id) => (id.startsWith('t') ? { n: Number(id.slice(1)), query } : null)),
        )
      }
      const before = cursorOf(query, z.tuple([z.number()]))
      const rows = numbers.filter((n) => before === null || n < before[0]).slice(0, query.limit + 1)
      return Promise.resolve(pageOf({ rows, limit: query.limit, keyOf: (n) => [n], present: (n) => ({ n, query }) }))
    },
    fixed: () => Promise.resolve({ fixed: true }),
    get: ({ params }) => Promise.resolve(params),
    byUuid: ({ params }) => Promise.resolve(params),
    create: ({ body }) => Promise.resolve({ body }),
    strict: ({ body }) => Promise.resolve({ body }),
    remove: () => Promise.resolve(),
    waiting: async ({ signal }) => {
      signal.addEventListener('abort', () => waiting.left.resolve())
      waiting.begun.resolve()
      await waiting.release.promise
      return { waited: true as const }
    },
    moved: () => Promise.resolve(answer(308, { location: '/new' }, { Location: '/api/v1/new' })),
  })
