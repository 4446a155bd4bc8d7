import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Browser, useLink } from '../../kit/browser.ts'
import { makeLink, signedIn } from '../../kit/signed-in.ts'
import { dropMembership } from '../../kit/rows.ts'
import { codeOf, outcomeOf, TestServer } from '../../kit/server.ts'
import { begin, enterCode, outcome, poll } from './device-client.ts'

let server: TestServer
beforeEach(async () => {
  server = await TestServer.start()
})
afterEach(() => server.stop())

const callerOf = async (cookie: string, headers: Record<string, string> = {}) =>
  server.call('/workspaces', { token: null, headers: { cookie, ...headers } })

describe('one-time links', () => {
  test('opening one signs the browser in, once', async () => {
    const link = await makeLink(server, server.owner.email)
    expect(link).toMatch(new RegExp(`^${server.url}/sign-in/link\\?token=[0-9A-Za-z]{43}$`))
    const browser = new Browser(server)
    const page = await useLink(browser, link)
    expect([page.status, page.location]).toEqual([303, '/account'])
    const cookie = page.headers.getSetCookie().find((line) => line.startsWith('svc_session='))!
    expect(cookie).toMatch(/^svc_session=svc_dsh_[0-9A-Za-z]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Lax$/)
    expect((await browser.visit('/account')).text).toContain(server.owner.email)
    expect(outcomeOf(await callerOf(browser.cookieHeader))).toBe('200')
    const again = await new Browser(server).visit(link)
    expect([again.status, again.headers.getSetCookie()]).toEqual([410, []])
    const kept = JSON.stringify([
      await server.database.root('sign_in_links'),
      await server.database.root('dashboard_sessions'),
    ])
    expect(kept).not.toContain(new URL(link).searchParams.get('token'))
    expect(kept).not.toContain(browser.cookies.get('svc_session'))
  })

  test('of many that open it at once one is signed in', async () => {
    const link = await makeLink(server, server.owner.email)
    const pages = await Promise.all(Array.from({ length: 6 }, () => useLink(new Browser(server), link)))
    expect(pages.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 410, 410, 410, 410, 410])
  })

  test('work for 15 minutes, for members', async () => {
    const person = await server.addPerson('member')
    const [old, ofNobody] = [await makeLink(server, person.email), await makeLink(server, person.email)]
    server.world.advance(15 * 60_000 - 1_000)
    await dropMembership(server, person)
    expect((await useLink(new Browser(server), ofNobody)).status).toBe(410)
    server.world.advance(1_000)
    for (const path of [old, '/sign-in/link', '/sign-in/link?token=x'])
      expect((await new Browser(server).visit(path)).status).toBe(410)
  })

  test('name the workspace to work in', async () => {
    const person = await server.addPerson('member')
    const { workspaceId } = await server.addPerson('owner', 'second')
    const at = server.world.now()
    await server.database.root('members').insert({
      workspace_id: workspaceId,
      user_id: person.uuid,
      role: 'member',
      created_at: at + 1,
    })
    for (const [workspace, expected] of [
      [null, person.workspaceId],
      ['second', workspaceId],
    ] as const) {
      const browser = new Browser(server)
      await useLink(browser, await makeLink(server, person.email, workspace))
      expect((await callerOf(browser.cookieHeader)).body.id).toBe(expected)
      // What a request names counts more.
      const other = await callerOf(browser.cookieHeader, { 'svc-workspace-id': person.workspaceId })
      expect(other.body.id).toBe(person.workspaceId)
    }
    // Another of the person's own, without the header: the answer does not say that they are no member.
    const browser = new Browser(server)
    await useLink(browser, await makeLink(server, person.email, null))
    const headers = { cookie: browser.cookieHeader }
    const elsewhere = await server.call(`/workspaces/${workspaceId}`, { token: null, headers })
    expect([elsewhere.status, codeOf(elsewhere)]).toEqual([403, 'not_permitted'])
    expect(elsewhere.body.error.message).toContain('name that one in the header Svc-Workspace-Id')
    await expect(makeLink(server, 'nobody@example.com')).rejects.toThrow(/Nobody/)
    await expect(makeLink(server, person.email, 'third')).rejects.toThrow(/no workspace/)
  })

  test('ask first, whoever opens them, so that a program which looks at mails uses none up', async () => {
    const person = await server.addPerson('member')
    const link = await makeLink(server, person.email)
    const other = await signedIn(server)
    const cookieBefore = other.cookieHeader
    const visits = [
      [new Browser(server), {}],
      [new Browser(server), { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' }],
      [new Browser(server), { 'sec-fetch-site': 'same-site' }],
      [new Browser(server), { 'sec-fetch-site': 'none', 'sec-fetch-dest': 'image' }],
      [new Browser(server), { 'sec-purpose': 'prefetch;prerender' }],
      [other, { 'sec-fetch-site': 'none', 'sec-fetch-dest': 'document' }],
    ] as const
    for (const [browser, headers] of visits) {
      const page = await browser.visit(link, { headers })
      expect([page.status, page.text.includes(`Sign in as ${person.email}`)]).toEqual([200, true])
    }
    expect((await new Browser(server).visit(link, { method: 'HEAD' })).status).toBe(200)
    const page = await other.visit(link)
    expect(page.text).toContain(`signed in as ${server.owner.email} now`)
    expect((await other.send(page, '/sign-in/link', { csrf: 'wrong' })).status).toBe(403)
    expect((await other.send(page, '/sign-in/link')).status).toBe(303)
    expect((await other.visit('/account')).text).toContain(person.email)
    expect(outcomeOf(await callerOf(cookieBefore))).toBe('401 auth_invalid')
    expect((await other.send(page, '/sign-in/link')).status).toBe(403)
  })
})

describe('forms', () => {
  test('of another site, without the token, or with that of another browser are refused and change nothing', async () => {
    const { body } = await begin(server)
    const [browser, other] = [await signedIn(server), await signedIn(server)]
    const page = await enterCode(browser, body.user_code)
    const form: Record<string, string> = { ...page.fields, workspace: server.owner.workspaceId, decision: 'approve' }
    const send = async (headers: Record<string, string>, changes: Record<string, string> = {}) =>
      (await browser.visit('/device/decision', { form: { ...form, ...changes }, headers })).status
    for (const origin of ['https://evil.example', 'null', `${server.url}.evil.example`, 'http://127.0.0.1:1'])
      expect(await send({ origin })).toBe(403)
    for (const csrf of ['', 'x', form['csrf']!.slice(1), (await other.visit('/device')).fields['csrf']!])
      expect(await send({}, { csrf })).toBe(403)
    expect((await browser.visit('/device/decision', { form: 'grant=1&grant=2' })).status).toBe(400)
    // Browsers that send no Origin still tell where the form is from.
    const raw = (site: string) =>
      fetch(`${server.url}/device`, {
        method: 'POST',
        headers: {
          cookie: browser.cookieHeader,
          'content-type': 'application/x-www-form-urlencoded',
          'sec-fetch-site': site,
        },
        body: new URLSearchParams({ csrf: form['csrf']!, code: body.user_code }).toString(),
      })
    expect((await raw('cross-site')).status).toBe(403)
    expect((await raw('same-site')).status).toBe(403)
    expect((await raw('same-origin')).status).toBe(200)
    const [forged, missing] = [
      await browser.visit('/device', { form: { code: body.user_code } }),
      await browser.visit('/sign-out', { form: {}, headers: { origin: 'https://evil.example' } }),
    ]
    expect([forged.status, missing.status]).toEqual([403, 403])
    expect(outcome(await poll(server, body.device_code))).toBe('400 authorization_pending')
    expect(outcomeOf(await callerOf(browser.cookieHeader))).toBe('200')
    expect(await send({})).toBe(200)
  })

  test('of a browser that is not signed in are refused', async () => {
    const browser = new Browser(server)
    for (const path of ['/device', '/device/decision'])
      expect((await browser.visit(path, { form: { code: 'x', csrf: 'x' } })).status).toBe(403)
    expect((await browser.visit('/account')).location).toBe('/sign-in?next=%2Faccount')
  })

  test('are read up to 16 KiB', async () => {
    const browser = await signedIn(server)
    expect((await browser.visit('/device', { form: { code: 'x'.repeat(20_000) } })).status).toBe(413)
  })
})

test('signing out ends the session everywhere', async () => {
  const browser = await signedIn(server)
  const cookie = browser.cookieHeader
  const page = await browser.visit('/account')
  expect((await browser.send(page, '/sign-out')).text).toContain('signed out')
  expect(browser.cookies.size).toBe(0)
  expect(outcomeOf(await callerOf(cookie))).toBe('401 auth_invalid')
  // Twice is as good as once.
  expect((await browser.visit('/sign-out', { form: {} })).status).toBe(200)
})

test('a session ends after a week, however much it is used', async () => {
  const browser = await signedIn(server)
  const day = 86_400_000
  server.world.advance(2 * day)
  expect((await browser.visit('/account')).status).toBe(200)
  server.world.advance(2 * day)
  expect(outcomeOf(await callerOf(browser.cookieHeader))).toBe('200')
  server.world.advance(3 * day - 1_000)
  expect((await browser.visit('/account')).status).toBe(200)
  server.world.advance(1_000)
  expect((await browser.visit('/account')).status).toBe(303)
  expect(outcomeOf(await callerOf(browser.cookieHeader))).toBe('401 auth_invalid')
})

test('a session that nobody uses for three days ends', async () => {
  const browser = await signedIn(server)
  server.world.advance(3 * 86_400_000 + 1_000)
  expect(outcomeOf(await callerOf(browser.cookieHeader))).toBe('401 auth_invalid')
  expect((await browser.visit('/account')).status).toBe(303)
})

test('a login token that nobody uses ends where the operator says so', async () => {
  const strict = await TestServer.start({ settings: { SVC_TOKEN_IDLE_MS: String(86_400_000) } })
  strict.world.advance(86_000_000)
  expect(outcomeOf(await strict.call('/workspaces'))).toBe('200')
  strict.world.advance(86_000_000)
  expect(outcomeOf(await strict.call('/workspaces'))).toBe('200')
  strict.world.advance(87_000_000)
  expect(outcomeOf(await strict.call('/workspaces'))).toBe('401 auth_invalid')
  await strict.stop()
})

test('signing in leads to pages of this server only', async () => {
  const person = await signedIn(server)
  for (const next of ['https://evil.example', '//evil.example', '/\\evil.example', '/\t/evil.example', 'device', '']) {
    const query = new URLSearchParams({ next }).toString()
    expect((await person.visit(`/sign-in?${query}`)).location).toBe('/account')
    const browser = new Browser(server)
    await browser.visit(`/sign-in?${query}`)
    expect(browser.cookies.size).toBe(0)
  }
  const planted = new Browser(server)
  planted.cookies.set('svc_next', encodeURIComponent('//evil.example'))
  expect((await useLink(planted, await makeLink(server, server.owner.email))).location).toBe('/account')
})

test('pages run nothing, load nothing, are not framed or kept, and show what they are told as text', async () => {
  const person = await server.addPerson('member')
  await server.database.root('users').where({ id: person.uuid }).update({ name: '<script>alert(1)</script>"\'' })
  const browser = await signedIn(server, person.email)
  const page = await browser.visit('/account')
  expect(page.text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;')
  expect(page.text).not.toContain('<script')
  const policy = page.headers.get('content-security-policy')!
  for (const part of ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
    expect(policy).toContain(part)
  expect(policy).not.toMatch(/script-src|unsafe/)
  expect(Object.fromEntries(page.headers)).toMatchObject({
    'cache-control': 'no-store',
    'content-type': 'text/html; charset=utf-8',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  })
  for (const [path, method] of [
    ['/sign-in', 'POST'],
    ['/sign-out', 'GET'],
    ['/device', 'DELETE'],
  ] as const) {
    const refused = await browser.visit(path, { method })
    expect([refused.status, refused.headers.has('allow')]).toEqual([405, true])
  }
})

test('by https cookies are for https, and links lead to the public address', async () => {
  const behind = await TestServer.start({ settings: { SVC_PUBLIC_URL: 'https://svc.example.com' } })
  const link = await makeLink(behind, behind.owner.email)
  const browser = new Browser({ url: behind.plane.localUrl })
  // As a browser sends it.
  const asPublic = { headers: { origin: 'https://svc.example.com' } }
  const asked = await browser.visit(link)
  const page = await browser.visit('/sign-in/link', { form: asked.fields, ...asPublic })
  for (const line of [...asked.headers.getSetCookie(), ...page.headers.getSetCookie()])
    expect(line).toMatch(/^__Host-svc_.*; Path=\/; .*; Secure$/)
  // Only under the name that no other host of the domain can give a cookie.
  const { cookieHeader } = browser
  const read = (cookie: string) => behind.call('/workspaces', { token: null, headers: { cookie } })
  expect(outcomeOf(await read(cookieHeader))).toBe('200')
  expect(outcomeOf(await read(cookieHeader.replaceAll('__Host-', '')))).toBe('401 auth_missing')
  const write = (origin: string) =>
    behind.call('/agents', { body: { name: origin }, token: null, headers: { cookie: cookieHeader, origin } })
  // The proxy does not pass on the public name as Host.
  expect(outcomeOf(await write('https://svc.example.com'))).toBe('201')
  expect(outcomeOf(await write('https://evil.example'))).toBe('403 http_exception')
  expect((await begin(behind)).body.verification_uri).toBe('https://svc.example.com/device')
  // A proxy may ask by another name; the browser's own is the public one.
  const form = { csrf: (await browser.visit('/device')).fields['csrf']!, code: 'BBBB-BBBB' }
  const enter = (origin: string) => browser.visit('/device', { form, headers: { origin } })
  expect((await enter('https://svc.example.com')).status).toBe(422)
  expect((await enter('https://evil.example')).status).toBe(403)
  await behind.stop()
})
