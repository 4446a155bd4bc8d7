import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../kit/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const get = (path: string, init: RequestInit = {}) => fetch(`${server.url}${path}`, init)

test('health and metrics need no token from this machine', async () => {
  expect(await (await get('/healthz')).json()).toEqual({ status: 'ok' })
  expect(await (await get('/readyz')).json()).toEqual({ status: 'ready' })
  expect(await (await get('/metrics')).text()).toContain('# TYPE ')
  expect((await get('/healthz', { method: 'POST' })).status).toBe(405)
})

test.each(['x-forwarded-for', 'forwarded'])('what a proxy passes on (%s) is not from this machine', async (name) => {
  const headers = { [name]: '127.0.0.1' }
  expect((await get('/metrics', { headers })).status).toBe(401)
  expect(
    (await get('/metrics', { headers: { ...headers, authorization: `Bearer ${server.owner.token}` } })).status,
  ).toBe(200)
  expect((await get('/healthz', { headers })).status).toBe(200)
})
