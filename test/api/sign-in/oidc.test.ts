import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '../../../control-plane/config.ts'
import { ConfigError } from '../../../control-plane/process/config-error.ts'
import { unlinkUser } from '../../../control-plane/operator/access.ts'
import { Browser, type Page } from '../../kit/browser.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { startIssuer, type Flaw, type Issuer } from '../../kit/oidc-issuer.ts'
import { dropMembership } from '../../kit/rows.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'

let issuer: Issuer
let server: TestServer
let person: Person

async function begin(options: Parameters<typeof startIssuer>[0] = {}): Promise<void> {
  issuer = await startIssuer(options)
  const { url, clientId, clientSecret } = issuer
  const settings = { SVC_OIDC_ISSUER: url, SVC_OIDC_CLIENT_ID: clientId, SVC_OIDC_CLIENT_SECRET: clientSecret }
  server = await TestServer.start({ settings })
  person = await server.addPerson('member')
  issuer.person = { sub: 'p1', email: person.email, email_verified: true }
}
beforeEach(() => begin())
afterEach(async () => {
  await server.stop()
  await issuer.stop()
})

/** To the issuer and back, as a browser goes. */
async function goThere(browser: Browser): Promise<string> {
  const away = await browser.visit('/sign-in/oidc')
  if (away.status !== 303) throw new Error(`not sent to the issuer: ${away.status} ${away.text}`)
  const back = await fetch(away.location!, { redirect: 'manual' })
  return back.headers.get('location')!
}
const signIn = async (browser = new Browser(server)): Promise<Page> => browser.visit(await goThere(browser))

const whoIs = async (browser: Browser) =>
  (await server.call('/members', { token: null, headers: { cookie: browser.cookieHeader } })).status

test('a person known by a verified address is signed in, and goes on to the page wanted before', async () => {
  const browser = new Browser(server)
  const asked = await browser.visit('/device?user_code=BBBB-CCCC')
  expect(asked.location).toBe('/sign-in?next=%2Fdevice%3Fuser_code%3DBBBB-CCCC')
  const page = await browser.visit(asked.location!)
  expect(page.text).toContain(`Sign in with ${new URL(issuer.url).host}`)
  const welcome = await signIn(browser)
  expect([welcome.status, welcome.location]).toEqual([303, '/device?user_code=BBBB-CCCC'])
  expect((await browser.visit(welcome.location!)).text).toContain(person.email)
  expect(await whoIs(browser)).toBe(200)
  expect([...browser.cookies.keys()]).toEqual(['svc_session'])
  expect(issuer.refused).toEqual([])
})

test('an issuer that wants the secret in the body, and tells the address by userinfo only', async () => {
  await server.stop()
  await issuer.stop()
  await begin({ method: 'client_secret_post' })
  issuer.isTerse = true
  expect((await signIn()).status).toBe(303)
})

test('an issuer that says in a text whether it verified the address', async () => {
  issuer.person = { sub: 'p1', email: person.email, email_verified: 'false' }
  expect((await signIn()).status).toBe(403)
  issuer.person = { sub: 'p1', email: person.email, email_verified: 'true' }
  expect((await signIn()).status).toBe(303)
})

test.each(['/.well-known/openid-configuration', '/token', '/jwks', '/userinfo'])(
  'an answer without end of %s is not read to its end',
  async (path) => {
    issuer.isTerse = true
    issuer.padding = { path, bytes: 2 * 1024 * 1024 }
    const browser = new Browser(server)
    const page =
      path === '/.well-known/openid-configuration' ? await browser.visit('/sign-in/oidc') : await signIn(browser)
    expect(page.status).toBe(502)
    issuer.padding = null
    expect((await signIn()).status).toBe(303)
  },
)

test('the identity counts from the first sign-in on, not the address', async () => {
  const other = await server.addPerson('member')
  expect((await signIn()).status).toBe(303)
  issuer.person = { sub: 'p1', email: other.email, email_verified: true }
  const browser = new Browser(server)
  await signIn(browser)
  expect((await browser.visit('/account')).text).toContain(person.email)
  issuer.person = { sub: 'p1' }
  expect((await signIn()).status).toBe(303)
})

test('another subject with the same address is not the same person, until the operator unlinks the first', async () => {
  expect((await signIn()).status).toBe(303)
  issuer.person = { sub: 'p2', email: person.email, email_verified: true }
  const browser = new Browser(server)
  const page = await signIn(browser)
  expect([page.status, browser.cookies.has('svc_session')]).toEqual([403, false])
  expect(page.text).toContain(`svc-server user unlink --email ${person.email}`)
  await unlinkUser(server.database.root, { email: person.email, issuer: null })
  expect((await signIn()).status).toBe(303)
  issuer.person = { sub: 'p1', email: person.email, email_verified: true }
  expect((await signIn()).status).toBe(403)
})

describe('nobody is signed in', () => {
  const refusals: [string, () => Partial<Issuer['person']>][] = [
    ['with an address that is not verified', () => ({ email_verified: false })],
    ['with an unknown address', () => ({ email: 'stranger@example.com' })],
  ]
  test.each(refusals)('%s', async (_, changes) => {
    issuer.person = { ...issuer.person, ...changes() }
    const browser = new Browser(server)
    const page = await signIn(browser)
    expect([page.status, browser.cookies.has('svc_session')]).toEqual([403, false])
    expect(page.text).not.toContain('unlink')
  })

  test('where the issuer says nothing about the address', async () => {
    issuer.person = { sub: 'p1', email: person.email }
    expect((await signIn()).status).toBe(403)
    issuer.person = { sub: 'p1' }
    expect((await signIn()).status).toBe(403)
  })

  test.each<Flaw>(['nonce', 'audience', 'key', 'expired', 'issuer'])('by a token with the wrong %s', async (flaw) => {
    issuer.flaw = flaw
    const browser = new Browser(server)
    const page = await signIn(browser)
    expect([page.status, browser.cookies.has('svc_session')]).toEqual([502, false])
  })

  test('by a code of another, a state of another browser, or either twice', async () => {
    const browser = new Browser(server)
    const back = new URL(await goThere(browser))
    const thief = new Browser(server)
    await goThere(thief)
    expect((await thief.visit(back.href)).status).toBe(410)
    // Claimed by the wrong browser it is gone for the right one too.
    expect((await browser.visit(back.href)).status).toBe(410)
    const again = await goThere(browser)
    expect((await browser.visit(again)).status).toBe(303)
    expect((await browser.visit(again)).status).toBe(410)
    const forged = new URL(await goThere(browser))
    forged.searchParams.set('code', 'made-up')
    expect((await browser.visit(forged.href)).status).toBe(502)
    expect((await browser.visit('/sign-in/oidc/callback')).status).toBe(410)
  })

  test('by a look ahead, or after ten minutes', async () => {
    const browser = new Browser(server)
    expect((await browser.visit('/sign-in/oidc', { method: 'HEAD' })).status).toBe(200)
    const back = await goThere(browser)
    server.world.advance(600_000)
    expect((await browser.visit(back)).status).toBe(410)
  })

  test('when the person refuses there', async () => {
    const browser = new Browser(server)
    const back = new URL(await goThere(browser))
    back.searchParams.delete('code')
    back.searchParams.set('error', 'access_denied')
    expect((await browser.visit(back.href)).status).toBe(502)
  })

  test('who belongs to no workspace any more', async () => {
    await dropMembership(server, person)
    expect((await signIn()).status).toBe(403)
  })
})

test('an issuer that is away is asked again', async () => {
  issuer.isAway = true
  expect((await new Browser(server).visit('/sign-in/oidc')).status).toBe(502)
  issuer.isAway = false
  expect((await signIn()).status).toBe(303)
})

test('signing in anew ends the session before', async () => {
  const browser = await signedIn(server)
  const before = browser.cookieHeader
  await signIn(browser)
  const call = (cookie: string) => server.call('/members', { token: null, headers: { cookie } })
  expect(outcomeOf(await call(before))).toBe('401 auth_invalid')
  expect(outcomeOf(await call(browser.cookieHeader))).toBe('200')
})

test('a server without an issuer offers none', async () => {
  const plain = await TestServer.start()
  for (const path of ['/sign-in/oidc', '/sign-in/oidc/callback?state=x'])
    expect((await new Browser(plain).visit(path)).status).toBe(404)
  expect((await new Browser(plain).visit('/sign-in')).text).not.toContain('Sign in with')
  await plain.stop()
})

test('half a configuration, or one that sends the secret in the clear, stops the start', () => {
  const read = (changes: Record<string, string>) => () => readConfig({ ...changes }, {})
  const whole = { SVC_OIDC_CLIENT_ID: 'i', SVC_OIDC_CLIENT_SECRET: 's' }
  expect(read(whole)).toThrow(ConfigError)
  expect(read({ SVC_OIDC_ISSUER: 'https://id.example.com' })).toThrow(/are set together/)
  expect(read({ ...whole, SVC_OIDC_ISSUER: 'http://id.example.com' })).toThrow(/https/)
  expect(read({ ...whole, SVC_OIDC_ISSUER: 'file:///x' })).toThrow(ConfigError)
  expect(read({ ...whole, SVC_OIDC_ISSUER: 'https://id.example.com' })().oidc?.issuer).toBe('https://id.example.com')
})
