import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  allowInsecureRequests,
  Configuration,
  initiateDeviceAuthorization,
  None,
  pollDeviceAuthorizationGrant,
} from 'openid-client'
import { deviceFlow } from '../../../shared/api/auth-internal.ts'
import { Browser } from '../../kit/browser.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { dropMembership } from '../../kit/rows.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { begin, decide, enterCode, outcome, poll, post } from './device-client.ts'

// Each test has a server of its own: the limits by address count for a whole test.
let server: TestServer
beforeEach(async () => {
  server = await TestServer.start()
})
afterEach(() => server.stop())

const later = (ms = 5_000) => server.world.advance(ms)

describe('the way to a token', () => {
  test('a person enters the code, sees who asks, approves, and svc gets a token of the chosen workspace', async () => {
    const reply = await begin(server, 'anna’s <b>laptop</b>')
    expect(reply.status).toBe(200)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.body).toEqual({
      device_code: expect.stringMatching(/^[0-9A-Za-z]{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: `${server.url}/device`,
      verification_uri_complete: `${server.url}/device?user_code=${reply.body.user_code}`,
      expires_in: 600,
      interval: 5,
    })
    const { device_code: deviceCode, user_code: userCode } = reply.body
    expect(outcome(await poll(server, deviceCode))).toBe('400 authorization_pending')
    const browser = await signedIn(server)
    // The address fills in the code, and looks nothing up.
    expect((await browser.visit(reply.body.verification_uri_complete)).text).toContain(`value="${userCode}"`)
    const page = await enterCode(browser, userCode.toLowerCase().replace('-', ' '))
    expect(page.status).toBe(200)
    expect(page.text).toContain(userCode)
    expect(page.text).toContain('annas blaptopb')
    expect(page.text).not.toContain('<b>')
    expect(page.text).toContain('127.0.0.1')
    const answer = await browser.send(page, '/device/decision', {
      workspace: server.owner.workspaceId,
      decision: 'approve',
    })
    expect([answer.status, answer.text.includes('svc is signed in')]).toEqual([200, true])
    later()
    const token = await poll(server, deviceCode)
    expect(token.status).toBe(200)
    expect(token.body).toEqual({
      access_token: expect.stringMatching(/^svc_pat_[0-9A-Za-z]{43}$/),
      token_type: 'Bearer',
    })
    expect((await server.ok('/workspaces', { token: token.body.access_token })).id).toBe(server.owner.workspaceId)
    // Neither code nor token is kept.
    for (const table of ['device_grants', 'login_tokens']) {
      const kept = JSON.stringify(await server.database.root(table))
      for (const secret of [deviceCode, userCode, userCode.replace('-', ''), token.body.access_token])
        expect(kept).not.toContain(secret)
    }
  })

  test('a code is good for one token, also when polls come at once', async () => {
    const { body } = await begin(server)
    await decide(await signedIn(server), body.user_code, 'approve')
    const replies = await Promise.all(Array.from({ length: 5 }, () => poll(server, body.device_code)))
    expect(replies.map(outcome).toSorted()).toEqual(['200', ...Array<string>(4).fill('400 invalid_grant')])
    later()
    expect(outcome(await poll(server, body.device_code))).toBe('400 invalid_grant')
    expect(await server.database.root('login_tokens').where('name', 'svc login on laptop')).toHaveLength(1)
  })

  test('an OAuth library gets through it', async () => {
    const config = new Configuration(
      {
        issuer: server.url,
        device_authorization_endpoint: server.url + deviceFlow.authorizePath,
        token_endpoint: server.url + deviceFlow.tokenPath,
      },
      deviceFlow.clientId,
      undefined,
      None(),
    )
    allowInsecureRequests(config)
    const grant = await initiateDeviceAuthorization(config, {})
    await decide(await signedIn(server), grant.user_code, 'approve')
    // The library's own clock waits the interval it is told; a short one spares the test the five seconds.
    const tokens = await pollDeviceAuthorizationGrant(config, { ...grant, interval: 0.01 })
    expect(outcomeOf(await server.call('/workspaces', { token: tokens.access_token }))).toBe('200')
  })
})

describe('what svc is refused', () => {
  test('a refusal of the person', async () => {
    const { body } = await begin(server)
    const page = await decide(await signedIn(server), body.user_code, 'deny')
    expect(page.text).toContain('Refused')
    expect(outcome(await poll(server, body.device_code))).toBe('400 access_denied')
    expect(await server.database.root('login_tokens').where('name', 'like', 'svc login%')).toEqual([])
  })

  test('polls that come too soon, each making the interval longer', async () => {
    const { body } = await begin(server)
    const next = async (ms: number) => {
      later(ms)
      return outcome(await poll(server, body.device_code))
    }
    expect(await next(0)).toBe('400 authorization_pending')
    expect(await next(1_000)).toBe('400 slow_down')
    expect(await next(6_000)).toBe('400 slow_down')
    expect(await next(12_000)).toBe('400 slow_down')
    expect(await next(20_000)).toBe('400 authorization_pending')
  })

  test('a code older than ten minutes, approved or not', async () => {
    const [one, two] = [(await begin(server)).body, (await begin(server)).body]
    const browser = await signedIn(server)
    await decide(browser, one.user_code, 'approve')
    const page = await enterCode(browser, two.user_code)
    later(600_000)
    for (const { device_code: code } of [one, two]) expect(outcome(await poll(server, code))).toBe('400 expired_token')
    expect((await enterCode(browser, two.user_code)).status).toBe(422)
    const late = await browser.send(page, '/device/decision', {
      workspace: server.owner.workspaceId,
      decision: 'approve',
    })
    expect(late.status).toBe(410)
  })

  test('a person who left the workspace meanwhile', async () => {
    const person = await server.addPerson('member')
    const { body } = await begin(server)
    await decide(await signedIn(server, person.email), body.user_code, 'approve')
    await dropMembership(server, person)
    expect(outcome(await poll(server, body.device_code))).toBe('400 access_denied')
  })

  test('requests that are none', async () => {
    const { body } = await begin(server)
    const fields = { client_id: 'svc', grant_type: deviceFlow.grantType, device_code: body.device_code }
    const token = (changes: Record<string, string>) => post(server, deviceFlow.tokenPath, { ...fields, ...changes })
    expect(outcome(await token({ client_id: 'other' }))).toBe('401 invalid_client')
    expect(outcome(await token({ grant_type: 'password' }))).toBe('400 unsupported_grant_type')
    expect(outcome(await token({ device_code: '' }))).toBe('400 invalid_request')
    expect(outcome(await token({ device_code: body.user_code }))).toBe('400 invalid_grant')
    const twice = `${new URLSearchParams(fields).toString()}&client_id=svc`
    expect(outcome(await post(server, deviceFlow.tokenPath, twice))).toBe('400 invalid_request')
    for (const path of [deviceFlow.tokenPath, deviceFlow.authorizePath]) {
      const json = { 'content-type': 'application/json' }
      expect(outcome(await post(server, path, JSON.stringify(fields), json))).toBe('400 invalid_request')
      expect(outcome(await post(server, path, `client_id=svc&x=${'x'.repeat(20_000)}`))).toBe('413 invalid_request')
      const read = await server.call(path, { base: '' })
      expect([outcomeOf(read), read.headers.get('allow')]).toEqual(['404 route_not_found', 'POST'])
    }
    expect(outcome(await post(server, deviceFlow.authorizePath, {}))).toBe('401 invalid_client')
    expect(outcome(await poll(server, body.device_code))).toBe('400 authorization_pending')
  })
})

describe('limits', () => {
  test('a person may enter ten codes in ten minutes', async () => {
    const browser = await signedIn(server)
    const { body } = await begin(server)
    const form = await browser.visit('/device')
    const enter = (code: string) => browser.send(form, '/device', { code })
    const guesses = await Promise.all(Array.from({ length: 10 }, () => enter('BBBB-BBBB')))
    expect(guesses.map(({ status }) => status)).toEqual(Array<number>(10).fill(422))
    const right = await enter(body.user_code)
    expect([right.status, right.headers.get('retry-after')]).toEqual([429, '600'])
    later(600_000)
    const again = await begin(server)
    expect((await enter(again.body.user_code)).status).toBe(200)
  })

  test('thirty failures a minute from one address, polls of a known code aside', async () => {
    const { body } = await begin(server)
    const polls = await Promise.all(Array.from({ length: 40 }, () => poll(server, body.device_code)))
    expect(new Set(polls.map(({ status }) => status))).toEqual(new Set([400]))
    const browser = new Browser(server)
    const guesses = await Promise.all(Array.from({ length: 29 }, (_, at) => poll(server, `guess-${at}`)))
    expect(new Set(guesses.map(outcome))).toEqual(new Set(['400 invalid_grant']))
    expect((await browser.visit('/sign-in')).status).toBe(200)
    expect((await browser.visit('/sign-in/link?token=guess')).status).toBe(410)
    const refused = await poll(server, 'one more')
    expect(outcome(refused)).toBe('429 slow_down')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(outcome(await begin(server))).toBe('429 slow_down')
    const page = await browser.visit('/sign-in')
    expect([page.status, page.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8'])
    expect(Number(page.headers.get('retry-after'))).toBeGreaterThan(0)
    // The API's own routes are another class.
    expect(outcomeOf(await server.call('/workspaces'))).toBe('200')
  })

  test('guesses that come at once all count', async () => {
    const guesses = await Promise.all(
      Array.from({ length: 45 }, (_, at) => new Browser(server).visit(`/sign-in/link?token=guess-${at}`)),
    )
    const statuses = guesses.map(({ status }) => status)
    expect([410, 429].map((each) => statuses.filter((status) => status === each).length)).toEqual([30, 15])
  })

  test('forty people of one office sign in within a minute, in a browser and with svc', async () => {
    for (let person = 0; person < 40; person++) {
      const browser = await signedIn(server)
      expect((await browser.visit('/account')).status).toBe(200)
      expect((await begin(server)).status).toBe(200)
    }
  })

  test('one address makes no more than six hundred codes a minute', async () => {
    const statuses: number[] = []
    for (let round = 0; round < 35; round++)
      statuses.push(...(await Promise.all(Array.from({ length: 20 }, () => begin(server)))).map(({ status }) => status))
    expect(statuses.filter((status) => status === 200)).toHaveLength(600)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
  })
})

test('a code is decided once, by members of the chosen workspace', async () => {
  const { body } = await begin(server)
  const person = await server.addPerson('member', 'elsewhere')
  const [browser, other] = [await signedIn(server), await signedIn(server, person.email)]
  const [page, otherPage] = [await enterCode(browser, body.user_code), await enterCode(other, body.user_code)]
  const decision = { workspace: server.owner.workspaceId, decision: 'approve' }
  expect((await other.send(otherPage, '/device/decision', decision)).status).toBe(403)
  expect((await browser.send(page, '/device/decision', { ...decision, decision: 'maybe' })).status).toBe(400)
  expect((await browser.send(page, '/device/decision', { ...decision, grant: 'dag_0000000000000000' })).status).toBe(
    410,
  )
  expect((await browser.send(page, '/device/decision', decision)).status).toBe(200)
  const again = { workspace: person.workspaceId, decision: 'deny' }
  expect((await other.send(otherPage, '/device/decision', again)).status).toBe(410)
  const token = (await poll(server, body.device_code)).body.access_token as string
  expect((await server.call('/workspaces', { token })).body.id).toBe(server.owner.workspaceId)
})
