import { afterAll, beforeAll, expect, test } from 'vitest'
import { implement } from '../../../control-plane/http/implement.ts'
import { call, codeOf, refusal, startServer, type TestServer } from './server.ts'
import { makeThings, makeWaiting, numbers, routes } from './things.ts'

const waiting = makeWaiting()
let server: TestServer
beforeAll(async () => {
  server = await startServer({ routes: makeThings(waiting) })
})
afterAll(() => server.close())

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
  expect(await refusal(server, '/nowhere')).toEqual([404, 'route_not_found'])
  expect(await refusal(server, '/things/a/b/c')).toEqual([404, 'route_not_found'])
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
  const { begun, left, release } = waiting
  const gone = new AbortController()
  const headers = { authorization: `Bearer ${server.seed.ownerToken}` }
  const asked = fetch(`${server.url}/api/v1/waiting`, { headers, signal: gone.signal })
  await begun.promise
  gone.abort()
  await expect(asked).rejects.toThrow('abort')
  await left.promise
  release.resolve()
  await expect.poll(() => server.records).toContainEqual(expect.objectContaining({ routeId: 'things.waiting' }))
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
    expect(await refusal(server, `/things?after=${cursor}`)).toEqual([400, 'invalid_cursor'])
  }
  const good = Buffer.from('[10]').toString('base64url')
  expect(await refusal(server, `/things?after=${good}&cursor=${Buffer.from('[9]').toString('base64url')}`)).toEqual([
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
  expect((await call(server, '/things?limit=1&archived=true')).body.data[0].query.archived).toBe(true)
  const closed = await call(server, '/things?status[]=open,closed')
  expect([closed.status, codeOf(closed), closed.body.error.param]).toEqual([400, 'validation_error', 'status'])
  expect(await refusal(server, '/things?archived=yes')).toEqual([400, 'validation_error'])
  expect(await refusal(server, '/things?status=%00')).toEqual([400, 'validation_error'])
})

test('a query parameter without a value is refused, whichever its kind', async () => {
  for (const query of [
    'status=',
    'status[]=',
    'status=,',
    'status=&status=',
    'archived=',
    'limit=',
    'after=',
    'ids=',
  ]) {
    const { status, body } = await call(server, `/things?${query}`)
    const param = query.slice(0, query.search(/[[=]/))
    expect([query, status, body.error.param]).toEqual([query, 400, param])
    expect(body.error.code).toBe('validation_error')
    expect(body.error.message).toBe(`The query parameter \`${param}\` is empty: leave it out, or give it a value.`)
  }
  expect((await call(server, '/things?limit=1&status=&status=open')).body.data[0].query.status).toEqual(['open'])
})

test('a query parameter that a route does not have is refused, with the one that was meant', async () => {
  const { status, body } = await call(server, '/things?stauts=open')
  expect(status).toBe(400)
  expect(body.error).toMatchObject({
    code: 'validation_error',
    param: 'stauts',
    message: 'There is no query parameter `stauts` here. Did you mean `status`?',
    details: { fields: [{ path: 'stauts', message: 'unknown query parameter' }] },
    allowedValues: expect.arrayContaining(['status', 'limit']),
  })
  const long = await call(server, `/things?${'x'.repeat(5000)}=1`)
  expect([long.status, long.body.error.param.length]).toEqual([400, 100])
})

test('ids read several in the order asked, with null for what is not there', async () => {
  const { body } = await call(server, '/things?ids=t3,nope,t1,t3&include=author')
  expect(body.data.map((row: { n: number } | null) => row?.n ?? null)).toEqual([3, null, 1, 3])
  expect(body).not.toHaveProperty('hasMore')
})

test('more than 100 ids, and ids beside a filter or paging, are refused', async () => {
  const ids = (count: number) => Array.from({ length: count }, (_, n) => `t${n}`).join(',')
  expect((await call(server, `/things?ids=${ids(100)}`)).body.data).toHaveLength(100)
  expect(await refusal(server, `/things?ids=${ids(101)}`)).toEqual([400, 'too_many_ids'])
  for (const other of ['limit=25', 'status=open', 'after=x', 'cursor=x']) {
    expect(await refusal(server, `/things?ids=t1&${other}`)).toEqual([400, 'ids_exclusive'])
  }
})

test('query keys with codes of their own answer with them', async () => {
  expect(await refusal(server, '/things?expand[]=all')).toEqual([400, 'expand.not_allowed_on_list'])
  const reply = await call(server, '/things?include=everything')
  expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_include'])
  expect(reply.body.error.allowedValues).toEqual(['author'])
})

test('a malformed id in the path is told, or is not found where the form is not told', async () => {
  expect(await refusal(server, '/things/run_short')).toEqual([400, 'invalid_id_format'])
  expect(await refusal(server, '/things/%00')).toEqual([400, 'invalid_id_format'])
  expect(await refusal(server, '/things/%E0%A4%A')).toEqual([400, 'invalid_id_format'])
  expect(await refusal(server, '/projects/not-a-uuid')).toEqual([404, 'resource_not_found'])
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
