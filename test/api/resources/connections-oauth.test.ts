import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { connectionLimits } from '../../../shared/api/connection-fields.ts'
import { Browser } from '../../kit/browser.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { OauthProvider } from '../../kit/provider.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'

// Signing in to a service by OAuth: a real provider, browsers with their cookies, and who may come back.

let provider: OauthProvider
let server: TestServer
let member: Person
beforeAll(async () => {
  provider = await OauthProvider.start()
  const services = [provider.entry()]
  server = await TestServer.start({
    settings: {
      SVC_SECRETS_KEY: 'ef'.repeat(32),
      SVC_TRUSTED_PROXIES: '1',
      ...serviceSettings({ services }),
    },
  })
  provider.serve(server.url)
  member = await server.addPerson('member')
})
afterAll(async () => {
  await server.stop()
  await provider.stop()
})
beforeEach(() => {
  Object.assign(provider, { approves: true, wire: 'good' })
})

/** Each comes from an address of its own, as callbacks of one address are counted. */
let visits = 0
const comeBack = (browser: Browser, url: string, method = 'GET') =>
  browser.visit(url, { method, headers: { 'x-forwarded-for': `10.0.${visits++}.1` } })

const begin = async (token = server.owner.token, accountLabel: string = crypto.randomUUID()) => {
  const body = { integrationId: 'provider', ownerType: 'company', accountLabel }
  const { nextStep, connection } = await server.ok('/connections', { body, token })
  return { id: connection.id as string, url: nextStep.authorizeUrl as string, accountLabel }
}
const statusOf = async (id: string) => (await server.ok(`/connections/${id}`)).status as string

/** Signs in to the provider, and comes back in a browser of the person. */
async function connected(token = server.owner.token, email = server.owner.email): Promise<string> {
  const { id, url } = await begin(token)
  const page = await comeBack(await signedIn(server, email), await provider.visit(url))
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('Connected')])
  return id
}

test('who approves and comes back has an active connection, whose tokens nobody sees', async () => {
  const id = await connected(member.token, member.email)
  expect(await server.ok(`/connections/${id}`)).toMatchObject({
    status: 'active',
    grantedScopes: ['openid', 'offline_access'],
    auth: { kind: 'oauth', fieldNames: ['accessToken', 'refreshToken'], expiresAt: expect.any(String) },
  })
  const { root } = server.database
  expect(await root('connection_sign_ins').where({ connection_id: id })).toEqual([])
})

test('without a session the page says whose workspace gets which account, and asks to sign in; the connection waits', async () => {
  const { id, url, accountLabel } = await begin(member.token)
  const back = await provider.visit(url)
  const stranger = new Browser(server)
  const page = await comeBack(stranger, back)
  expect(page.status).toBe(200)
  for (const word of ['member wants to connect', accountLabel, 'Provider', 'Sign in as member'])
    expect(page.text).toContain(word)
  expect(await statusOf(id)).toBe('pending')
  const link = /href="(\/sign-in\?next=[^"]*)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const asked = await stranger.visit(link)
  expect(asked.text).toContain('login-link')
  // A prefetch ends nothing.
  await comeBack(await signedIn(server, member.email), back, 'HEAD')
  const own = await comeBack(await signedIn(server, member.email), back)
  expect(own.text).toContain('Connected')
  expect(await statusOf(id)).toBe('active')
  // The state works once.
  expect((await comeBack(await signedIn(server, member.email), back)).status).toBe(400)
  expect(await statusOf(id)).toBe('active')
})

test('somebody else who comes back revokes the connection, and gets nothing', async () => {
  const { id, url } = await begin(member.token)
  const back = await provider.visit(url)
  const asked = provider.asked.length
  expect((await comeBack(await signedIn(server), back)).status).toBe(403)
  expect(await server.ok(`/connections/${id}`)).toMatchObject({ status: 'revoked', auth: { fieldNames: [] } })
  expect((await comeBack(await signedIn(server, member.email), back)).status).toBe(400)
  expect([await statusOf(id), provider.asked.length]).toEqual(['revoked', asked])
})

test('who has left the workspace revokes the connection', async () => {
  const person = await server.addPerson('member')
  await server.addPerson('member', `other-${crypto.randomUUID().slice(0, 8)}`)
  const { id, url } = await begin(person.token)
  const browser = await signedIn(server, person.email)
  await server.database.root('members').where({ user_id: person.uuid }).delete()
  expect((await comeBack(browser, await provider.visit(url))).status).not.toBe(200)
  expect(await statusOf(id)).not.toBe('active')
})

test('an altered state leaves other sign-ins alone, and one that was begun anew makes the one before void', async () => {
  const first = await begin(member.token)
  const browser = await signedIn(server, member.email)
  const back = new URL(await provider.visit(first.url))
  const altered = new URL(back)
  altered.searchParams.set('state', `${back.searchParams.get('state')!.slice(0, -1)}_`)
  expect((await comeBack(browser, altered.href)).status).toBe(400)
  const second = await begin(member.token, first.accountLabel)
  expect(second.id).toBe(first.id)
  expect((await comeBack(browser, back.href)).status).toBe(400)
  expect(await statusOf(first.id)).toBe('pending')
  expect((await comeBack(browser, await provider.visit(second.url))).status).toBe(200)
  expect(await statusOf(first.id)).toBe('active')
})

test.each([
  ['says no', (back: URL) => back, { approves: false }],
  ['gives a code that is none', (back: URL) => (back.searchParams.set('code', 'other'), back), {}],
  ['is another issuer', (back: URL) => (back.searchParams.set('iss', 'https://id.example.com'), back), {}],
  ['is out of reach', (back: URL) => back, { wire: 'away' }],
] as const)('a provider that %s leaves the connection waiting until its time is over', async (_, change, state) => {
  const { id, url } = await begin(member.token)
  if ('approves' in state) provider.approves = state.approves
  const back = change(new URL(await provider.visit(url)))
  if ('wire' in state) provider.wire = state.wire
  const page = await comeBack(await signedIn(server, member.email), back.href)
  expect([page.status, page.text]).toEqual([400, expect.stringContaining('Nothing was connected')])
  expect(await statusOf(id)).toBe('pending')
  Object.assign(provider, { approves: true, wire: 'good' })
  server.world.advance(connectionLimits.signInMs)
  expect(await statusOf(id)).toBe('expired')
  const again = await server.ok(`/connections/${id}/reauthorize`, { body: {}, token: member.token })
  expect(
    (await comeBack(await signedIn(server, member.email), await provider.visit(again.nextStep.authorizeUrl))).status,
  ).toBe(200)
  expect(await statusOf(id)).toBe('active')
})

test('a connection that was deleted while the provider answered stays away', async () => {
  const { id, url } = await begin(member.token)
  const back = await provider.visit(url)
  const revokes = provider.revoked.length
  provider.onToken = async (moment) => {
    if (moment === 'done') await server.ok(`/connections/${id}/revoke`, { method: 'POST' })
  }
  const page = await comeBack(await signedIn(server, member.email), back)
  provider.onToken = () => undefined
  expect(page.status).toBe(400)
  expect(outcomeOf(await server.call(`/connections/${id}`))).toBe('404 connection_not_found')
  expect(provider.revoked.length).toBe(revokes + 1)
})

test('revoking asks the provider first; out of reach nothing is changed, but with `local`', async () => {
  const id = await connected()
  provider.wire = 'away'
  const refused = await server.call(`/connections/${id}/revoke`, { method: 'POST' })
  expect(outcomeOf(refused)).toBe('400 connection_not_revokable')
  expect(await statusOf(id)).toBe('active')
  provider.wire = 'good'
  const revokes = provider.revoked.length
  expect((await server.call(`/connections/${id}/revoke`, { method: 'POST' })).status).toBe(204)
  expect([await statusOf(id), provider.revoked.length]).toEqual(['revoked', revokes + 1])
  const other = await connected()
  provider.wire = 'away'
  expect((await server.call(`/connections/${other}/revoke?local=true`, { method: 'POST' })).status).toBe(204)
  expect(await statusOf(other)).toBe('revoked')
})

test('the callback takes ten requests a minute from one address', async () => {
  const browser = new Browser(server)
  const path = '/integrations/connections/callback?state=none'
  const statuses: number[] = []
  for (let times = 0; times < 11; times++) statuses.push((await browser.visit(path)).status)
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 400), 429])
})
