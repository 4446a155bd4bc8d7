import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Log } from '../../../control-plane/process/log.ts'
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

const metricsToken = 'a'.repeat(16)
/** As a proxy passes it on; `name`: by which header. */
const passedOn = (token: string | null, { name = 'x-forwarded-for', at = server } = {}) =>
  fetch(`${at.url}/metrics`, {
    headers: { [name]: '127.0.0.1', ...(token !== null && { authorization: `Bearer ${token}` }) },
  })

test.each(['x-forwarded-for', 'forwarded'])('what a proxy passes on (%s) is not from this machine', async (name) => {
  expect((await passedOn(null, { name })).status).toBe(401)
  expect((await passedOn(server.owner.token, { name })).status).toBe(200)
  expect((await get('/healthz', { headers: { [name]: '127.0.0.1' } })).status).toBe(200)
})

test("the metrics are the operator's: members, agents and strangers read none from elsewhere", async () => {
  const [member, admin] = [await server.addPerson('member'), await server.addPerson('admin')]
  const agent = await server.agentCaller()
  const refused = await passedOn(member.token)
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('SVC_METRICS_TOKEN')])
  expect((await passedOn(agent.token)).status).toBe(403)
  expect((await passedOn(admin.token)).status).toBe(200)
  // No token is set on this server, so none counts.
  expect((await passedOn('null')).status).toBe(401)
  expect((await passedOn(metricsToken)).status).toBe(401)
})

test('whoever makes a workspace of their own does not read the metrics by it, but the token of the operator does', async () => {
  const shared = await TestServer.start({ settings: { SVC_METRICS_TOKEN: metricsToken } })
  try {
    expect((await passedOn(shared.owner.token, { at: shared })).status).toBe(200)
    const other = await shared.addPerson('owner', 'of-their-own')
    expect((await passedOn(other.token, { at: shared })).status).toBe(403)
    expect((await passedOn(shared.owner.token, { at: shared })).status).toBe(403)
    expect(await (await passedOn(metricsToken, { at: shared })).text()).toContain('# TYPE ')
    expect((await passedOn(`${metricsToken}a`, { at: shared })).status).toBe(401)
  } finally {
    await shared.stop()
  }
})

test('over https browsers keep to it for this host, and not for those below it', async () => {
  const secure = await TestServer.start({ settings: { SVC_PUBLIC_URL: 'https://svc.example.com' } })
  try {
    const { headers } = await fetch(`${secure.nextUrl()}/healthz`)
    expect(headers.get('strict-transport-security')).toMatch(/^max-age=\d+$/)
  } finally {
    await secure.stop()
  }
})

test('a server that sees X-Forwarded-For and trusts no proxy says so once in its log', async () => {
  const warnings: string[] = []
  const ignore = () => undefined
  const warn = (_: object, message: string) => void warnings.push(message)
  const log: Log = { debug: ignore, info: ignore, warn, error: ignore, child: () => log }
  const passedOnTwice = async (settings: Record<string, string>) => {
    const behind = await TestServer.start({ database: 'sqlite', settings, log })
    try {
      expect((await fetch(`${behind.url}/healthz`)).status).toBe(200)
      expect(warnings).toEqual([])
      for (let time = 0; time < 2; time++)
        await fetch(`${behind.url}/healthz`, { headers: { 'x-forwarded-for': '192.0.2.1' } })
    } finally {
      await behind.stop()
    }
  }
  await passedOnTwice({ SVC_TRUSTED_PROXIES: '1' })
  expect(warnings).toEqual([])
  await passedOnTwice({})
  expect(warnings).toEqual([expect.stringContaining('set SVC_TRUSTED_PROXIES to the number of proxies')])
})
