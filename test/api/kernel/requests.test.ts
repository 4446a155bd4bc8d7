import { request } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { runRef } from '../../../shared/api/ids.ts'
import { batchOf, cursorOf, idsParam, listOrBatchOf, pageOf, pageParams } from '../../../shared/api/paging.ts'
import { defineRoute } from '../../../shared/api/route.ts'
import { answer, implement } from '../../../control-plane/http/implement.ts'
import { call, codeOf, startServer, type TestServer } from './server.ts'

const echoed = z.record(z.string(), z.unknown())
const routes = {
  list: defineRoute({
    id: 'things.list',
    method: 'GET',
    path: '/things',
    aliases: ['/stuff'],
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
    method: 'GET',
    path: '/things/stats',
    summary: 'Fixed',
    reply: z.object({ fixed: z.literal(true) }),
  }),
  get: defineRoute({
    id: 'things.get',
    method: 'GET',
    path: '/things/{runId}',
    summary: 'One',
    params: z.object({ runId: runRef }),
    reply: z.object({ runId: z.string() }),
  }),
  byUuid: defineRoute({
    id: 'things.project',
    method: 'GET',
    path: '/projects/{id}',
    summary: 'One of a form that is not told',
    params: z.object({ id: z.uuid() }),
    malformedParam: 'resource_not_found',
    reply: z.object({ id: z.string() }),
  }),
  create: defineRoute({
    id: 'things.create',
    method: 'POST',
    path: '/things',
    summary: 'Create',
    body: z.object({ name: z.string().min(1).optional(), data: z.unknown().optional() }),
    refusedBodyKeys: { model: 'config_write_forbidden' },
    bodyLimit: 4096,
    reply: z.object({ body: echoed }),
    status: 201,
  }),
  strict: defineRoute({
    id: 'things.update',
    method: 'PATCH',
    path: '/things/{runId}',
    summary: 'Update',
    params: z.object({ runId: runRef }),
    body: z.strictObject({ size: z.number().int().min(1).max(10).optional(), name: z.string().optional() }),
    reply: z.object({ body: echoed }),
  }),
  remove: defineRoute({
    id: 'things.remove',
    method: 'DELETE',
    path: '/things/{runId}',
    summary: 'Remove',
    params: z.object({ runId: runRef }),
  }),
  waiting: defineRoute({
    id: 'things.waiting',
    method: 'GET',
    path: '/waiting',
    summary: 'Answers when it is told to',
    reply: z.object({ waited: z.literal(true) }),
  }),
  moved: defineRoute({
    id: 'things.moved',
    method: 'GET',
    path: '/moved',
    summary: 'Elsewhere',
    reply: z.object({}),
    otherReplies: { 308: z.object({ location: z.string() }) },
  }),
}

const waitingRoute = {
  url: '/api/v1/waiting',
  begun: Promise.withResolvers<void>(),
  left: Promise.withResolvers<void>(),
  release: Promise.withResolvers<void>(),
}
const numbers = Array.from({ length: 60 }, (_, index) => 60 - index)
const things = implement(routes, {
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
    signal.addEventListener('abort', () => waitingRoute.left.resolve())
    waitingRoute.begun.resolve()
    await waitingRoute.release.promise
    return { waited: true as const }
  },
  moved: () => Promise.resolve(answer(308, { location: '/new' }, { Location: '/api/v1/new' })),
})

let server: TestServer
beforeAll(async () => {
  server = await startServer({ routes: things })
})
afterAll(() => server.close())

const refusal = async (path: string, options: Parameters<typeof call>[2] = {}) => {
  const reply = await call(server, path, options)
  return [reply.status, codeOf(reply)]
}
const run = 'run_3nB7cW1yHsD5jK9q'

test('every answer names its request and carries safe headers', async () => {
  const [one, two] = [await call(server, '/things'), await call(server, '/nowhere')]
  for (const { headers } of [one, two]) {
    expect(headers.get('request-id')).toMatch(/^req_[0-9A-Za-z]{16}$/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  }
  expect(one.headers.get('request-id')).not.toBe(two.headers.get('request-id'))
  expect(server.logged.some(({ fields }) => fields['requestId'] === one.headers.get('request-id'))).toBe(true)
  expect(server.records).toContainEqual(expect.objectContaining({ routeId: 'things.list', status: 200, code: null }))
})

test('what no route answers is route_not_found; the methods of a known path are told', async () => {
  expect(await refusal('/nowhere')).toEqual([404, 'route_not_found'])
  expect(await refusal('/things/a/b/c')).toEqual([404, 'route_not_found'])
  const wrong = await call(server, '/things', { method: 'PUT' })
  expect([wrong.status, codeOf(wrong)]).toEqual([404, 'route_not_found'])
  expect(wrong.headers.get('allow')).toBe('GET, HEAD, POST')
  const root = await fetch(`${server.url}/`)
  expect(root.status).toBe(404)
})

test('an alias answers like the route, and a fixed path goes before a parameter', async () => {
  expect((await call(server, '/stuff?limit=1')).body.data).toHaveLength(1)
  expect((await call(server, '/things/stats')).body).toEqual({ fixed: true })
  expect((await call(server, `/things/${run}`)).body).toEqual({ runId: run })
})

test('HEAD is GET without a body', async () => {
  const headers = { authorization: `Bearer ${server.seed.ownerToken}` }
  const response = await fetch(`${server.url}/api/v1/things`, { method: 'HEAD', headers })
  expect(response.status).toBe(200)
  expect(await response.text()).toBe('')
  const whole = await fetch(`${server.url}/api/v1/things`, { headers })
  expect(response.headers.get('content-length')).toBe(whole.headers.get('content-length'))
  expect(whole.headers.get('content-length')).toBe(String((await whole.bytes()).length))
})

test('an answer arrives whole, whatever its letters are', async () => {
  for (const text of ['plain', 'caf\u00e9', '\u65e5\u672c', '\u{1f600}', 'a'.repeat(4_000), '\u00e9'.repeat(2_000)])
    expect((await call(server, '/things', { body: { data: text } })).body.body.data).toBe(text)
})

test('a client that leaves while its request is worked on harms nobody', async () => {
  const { url, begun, left, release } = waitingRoute
  const gone = new AbortController()
  const headers = { authorization: `Bearer ${server.seed.ownerToken}` }
  const asked = fetch(`${server.url}${url}`, { headers, signal: gone.signal })
  await begun.promise
  gone.abort()
  await expect(asked).rejects.toThrow('abort')
  await left.promise
  release.resolve()
  await vi.waitFor(() => expect(server.records).toContainEqual(expect.objectContaining({ routeId: 'things.waiting' })))
  expect((await call(server, '/things')).status).toBe(200)
  expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
})

test('another version of the API is refused', async () => {
  expect((await call(server, '/things', { headers: { 'svc-version': '2026-03' } })).status).toBe(200)
  const reply = await call(server, '/things', { headers: { 'svc-version': '2025-01' } })
  expect([reply.status, codeOf(reply)]).toEqual([400, 'unsupported_api_version'])
  expect(reply.body.error.allowedValues).toEqual(['2026-03'])
})

test('a limit that is no number from 1 to 100 is refused with the field', async () => {
  for (const limit of ['0', '101', '-1', '1.5', 'x', '1e1', '', '1&limit=2']) {
    const reply = await call(server, `/things?limit=${limit}`)
    expect([limit, reply.status, codeOf(reply)]).toEqual([limit, 400, 'validation_error'])
    expect(reply.body.error.param).toBe('limit')
    expect(reply.body.error.details.fields[0].path).toBe('limit')
  }
  expect((await call(server, '/things')).body.data).toHaveLength(25)
  expect((await call(server, '/things?limit=100')).body.data).toHaveLength(60)
})

test('lists are walked by cursor to their end, by either name of it', async () => {
  const seen: number[] = []
  let path = '/things?limit=25'
  for (;;) {
    const { body } = await call(server, path)
    expect(body.object).toBe('list')
    expect(body.cursor).toBe(body.nextCursor)
    expect(body.hasMore).toBe(body.nextCursor !== null)
    seen.push(...body.data.map((row: { n: number }) => row.n))
    if (!body.hasMore) break
    path = `/things?limit=25&${seen.length > 25 ? 'cursor' : 'after'}=${body.nextCursor}`
  }
  expect(seen).toEqual(numbers)
})

test('a cursor that this list did not give is refused', async () => {
  const other = Buffer.from('["text"]').toString('base64url')
  for (const cursor of ['nonsense!', 'bm9uc2Vuc2U', other, encodeURIComponent('[1]')]) {
    expect(await refusal(`/things?after=${cursor}`)).toEqual([400, 'invalid_cursor'])
  }
  const good = Buffer.from('[10]').toString('base64url')
  expect(await refusal(`/things?after=${good}&cursor=${Buffer.from('[9]').toString('base64url')}`)).toEqual([
    400,
    'invalid_cursor',
  ])
})

test('list parameters come repeated or separated by commas, with or without brackets', async () => {
  for (const query of [
    'status=open,done',
    'status=open&status=done',
    'status[]=open&status[]=done',
    'status[]=open,done',
  ]) {
    const { body } = await call(server, `/things?limit=1&${query}`)
    expect(body.data[0].query.status).toEqual(['open', 'done'])
  }
  expect((await call(server, '/things?limit=1&archived=true&unknown=1')).body.data[0].query.archived).toBe(true)
  const closed = await call(server, '/things?status[]=open,closed')
  expect([closed.status, codeOf(closed), closed.body.error.param]).toEqual([400, 'validation_error', 'status'])
  expect(await refusal('/things?archived=yes')).toEqual([400, 'validation_error'])
  expect(await refusal('/things?status=%00')).toEqual([400, 'validation_error'])
})

test('ids read several in the order asked, with null for what is not there', async () => {
  const { body } = await call(server, '/things?ids=t3,nope,t1,t3&include=author')
  expect(body.data.map((row: { n: number } | null) => row?.n ?? null)).toEqual([3, null, 1, 3])
  expect(body).not.toHaveProperty('hasMore')
})

test('more than 100 ids, and ids beside a filter or paging, are refused', async () => {
  const ids = (count: number) => Array.from({ length: count }, (_, n) => `t${n}`).join(',')
  expect((await call(server, `/things?ids=${ids(100)}`)).body.data).toHaveLength(100)
  expect(await refusal(`/things?ids=${ids(101)}`)).toEqual([400, 'too_many_ids'])
  for (const other of ['limit=25', 'status=open', 'after=x', 'cursor=x']) {
    expect(await refusal(`/things?ids=t1&${other}`)).toEqual([400, 'ids_exclusive'])
  }
})

test('query keys with codes of their own answer with them', async () => {
  expect(await refusal('/things?expand[]=all')).toEqual([400, 'expand.not_allowed_on_list'])
  const reply = await call(server, '/things?include=everything')
  expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_include'])
  expect(reply.body.error.allowedValues).toEqual(['author'])
})

test('a malformed id in the path is told, or is not found where the form is not told', async () => {
  expect(await refusal('/things/run_short')).toEqual([400, 'invalid_id_format'])
  expect(await refusal('/things/%00')).toEqual([400, 'invalid_id_format'])
  expect(await refusal('/things/%E0%A4%A')).toEqual([400, 'invalid_id_format'])
  expect(await refusal('/projects/not-a-uuid')).toEqual([404, 'resource_not_found'])
})

const create = (options: Parameters<typeof call>[2]) => call(server, '/things', { method: 'POST', ...options })

test('an empty body is an empty object; unknown keys are passed over where they are not refused', async () => {
  expect((await create({})).body).toEqual({ body: {} })
  expect((await create({ body: { name: 'a', other: 1 } })).body).toEqual({ body: { name: 'a' } })
  const strict = await call(server, `/things/${run}`, { method: 'PATCH', body: { maxSize: 3, size: 11 } })
  expect([strict.status, codeOf(strict)]).toEqual([400, 'validation_error'])
  const paths = strict.body.error.details.fields.map((field: { path: string }) => field.path)
  expect(paths.sort()).toEqual(['maxSize', 'size'])
  expect(await refusal('/things', { body: { model: 'x' } })).toEqual([400, 'config_write_forbidden'])
})

test('bodies that are not JSON, or that cannot be stored, are refused', async () => {
  const deep = '['.repeat(5000) + ']'.repeat(5000)
  const raws: (string | Uint8Array)[] = [
    '{',
    'null garbage',
    '{"name":"\\u0000"}',
    '{"na\\u0000me":"x"}',
    '{"data":["\\ud800"]}',
    '{"__proto__":{"name":"x"}}',
    `{"data":${deep.slice(0, 4000)}`,
    '{"data":' + '['.repeat(200) + ']'.repeat(200) + '}',
    new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    '[]',
    '"text"',
    '1',
    'null',
  ]
  for (const raw of raws) {
    const reply = await create({ raw })
    expect(reply.body.error.param).not.toBe('')
    expect([String(raw).slice(0, 30), reply.status, codeOf(reply)]).toEqual([
      String(raw).slice(0, 30),
      400,
      'validation_error',
    ])
  }
  const form = await create({ raw: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } })
  expect([form.status, codeOf(form), form.body.error.param]).toEqual([400, 'validation_error', 'Content-Type'])
  const vendor = await create({ raw: '{}', headers: { 'content-type': 'application/merge-patch+json; charset=utf-8' } })
  expect(vendor.status).toBe(201)
})

test('packed bodies are read, and what is not packed as it says is refused', async () => {
  const text = JSON.stringify({ name: 'packed' })
  const forms = {
    gzip: gzipSync(text),
    'x-gzip': gzipSync(text),
    deflate: deflateSync(text),
    br: brotliCompressSync(text),
  }
  for (const [encoding, raw] of Object.entries(forms)) {
    expect((await create({ raw, headers: { 'content-encoding': encoding } })).body).toEqual({
      body: { name: 'packed' },
    })
  }
  for (const encoding of ['gzip', 'br', 'deflate', 'zstd']) {
    const reply = await create({ raw: text, headers: { 'content-encoding': encoding } })
    expect([encoding, reply.status, codeOf(reply)]).toEqual([encoding, 400, 'validation_error'])
    expect(reply.body.error.param).toBe('Content-Encoding')
  }
  const half = await create({ raw: gzipSync(text).subarray(0, 15), headers: { 'content-encoding': 'gzip' } })
  expect([half.status, codeOf(half)]).toEqual([400, 'validation_error'])
})

test('a body over the limit is refused, also when it comes in pieces or packed', async () => {
  const large = JSON.stringify({ data: 'x'.repeat(5000) })
  expect(await refusal('/things', { raw: large })).toEqual([413, 'payload_too_large'])
  const pieces = ReadableStream.from(Array.from({ length: 50 }, () => new Uint8Array(200).fill(0x20)))
  expect(await refusal('/things', { raw: pieces })).toEqual([413, 'payload_too_large'])
  const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20))
  expect(bomb.length).toBeGreaterThan(4096)
  const smallBomb = gzipSync(Buffer.alloc(1_000_000, 0x20))
  for (const raw of [bomb, smallBomb]) {
    expect(await refusal('/things', { raw, headers: { 'content-encoding': 'gzip' } })).toEqual([
      413,
      'payload_too_large',
    ])
  }
  const justFits = JSON.stringify({ data: 'x'.repeat(4096 - 11) })
  expect(justFits.length).toBe(4096)
  expect((await create({ raw: justFits })).status).toBe(201)
  expect(await refusal(`/things/${run}`, { method: 'DELETE', raw: 'x'.repeat(3 * 1024 * 1024) })).toEqual([
    413,
    'payload_too_large',
  ])
})

test('a sender that goes on sending gets its answer all the same', async () => {
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(`${server.url}/api/v1/things`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.seed.ownerToken}`, 'content-type': 'application/json' },
    })
    const chunk = Buffer.alloc(256 * 1024, 0x20)
    let bytes = 0
    // Up to 64 MiB, of which the route takes 4 KiB.
    const more = () => {
      bytes += chunk.length
      if (bytes > 64 * 1024 * 1024) sent.end()
      else if (sent.write(chunk)) setImmediate(more)
      else sent.once('drain', more)
    }
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    more()
  })
  expect(status).toBe(413)
  expect((await create({ body: {} })).status).toBe(201)
})

test('204 has no body, and a handler may answer another declared status with headers', async () => {
  const removed = await call(server, `/things/${run}`, { method: 'DELETE' })
  expect([removed.status, removed.body]).toEqual([204, null])
  const response = await fetch(`${server.url}/api/v1/moved`, {
    headers: { authorization: `Bearer ${server.seed.ownerToken}` },
    redirect: 'manual',
  })
  expect([response.status, response.headers.get('location')]).toEqual([308, '/api/v1/new'])
})

test('a route without its handler, or with a reply of another shape, does not compile', () => {
  // @ts-expect-error the other handlers are missing
  implement(routes, { fixed: () => Promise.resolve({ fixed: true }) })
  implement(
    { fixed: routes.fixed },
    {
      // @ts-expect-error not what the schema holds
      fixed: () => Promise.resolve({ fixed: false }),
    },
  )
  expect(implement({ fixed: routes.fixed }, { fixed: () => Promise.resolve({ fixed: true }) })).toHaveLength(1)
})
