import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contract } from '../../../shared/api/index.ts'
import { isLong } from '../../kit/forms.ts'
import { codeOf, outcomeOf, type TestServer, type CallOptions, type Person } from '../../kit/server.ts'
import { unknownIds, withoutCommand } from './collected.ts'
import { fill, isUnavailable, reaches } from './every-route.ts'
import { Stage } from './stage.ts'

// Tests what holds for every route, whichever routes there are: written from the shared rules, run over the contract.

let stage: Stage
let server: TestServer
let member: Person
let agentToken: string

beforeAll(async () => {
  stage = await Stage.start()
  server = stage.server
  member = stage.member
  agentToken = (await stage.caller()).token
})
afterAll(() => stage.stop())

/** What no object is, in the short form one of them for each route in turn; and objects that no route takes. */
const junk = [[], 1, 'text', null, { name: { deep: [[[[]]]] }, a: 'x'.repeat(10_000) }] as const
let at = 0

/** A request that fits as far as ids and method go; a body that no route is harmed by. */
function request(reach: (typeof reaches)[number], token: string | null, ids = unknownIds) {
  const { method, base } = reach.route
  const options: CallOptions = { method, base, token, headers: { 'idempotency-key': crypto.randomUUID() } }
  if (method !== 'GET' && method !== 'DELETE') options.body = {}
  return server.call(fill(reach.path, ids), options)
}

describe.each(reaches)('$label', (reach) => {
  const { callers } = reach.route

  if (callers !== 'none')
    it('asks for a token', async () => {
      expect(outcomeOf(await request(reach, null))).toBe('401 auth_missing')
      // Which tokens are good is decided before the route is; documents-errors.test.ts shows them on one.
      if (isLong) expect(outcomeOf(await request(reach, 'svc_pat_unknown'))).toBe('401 auth_invalid')
    })

  if (callers !== 'none')
    it('refuses whom the contract refuses', async () => {
      if (typeof callers.agent === 'object') {
        const reply = await request(reach, agentToken)
        expect([reply.status, codeOf(reply)]).toEqual([403, callers.agent.refused])
      }
      if (typeof callers.person === 'object') {
        const reply = await request(reach, server.owner.token)
        expect([reply.status, codeOf(reply)]).toEqual([403, callers.person.refused])
      }
      if (callers.person === 'admin' || callers.person === 'owner')
        expect((await request(reach, member.token)).status).toBe(403)
    })

  it('refuses a query parameter that it does not have, unless others’ programs call it', async () => {
    const { method, base } = reach.route
    const isForAgents = callers !== 'none' && typeof callers.person === 'object'
    const token = isForAgents ? agentToken : server.owner.token
    const options: CallOptions = { method, base, token, headers: { 'idempotency-key': crypto.randomUUID() } }
    if (method !== 'GET' && method !== 'DELETE') options.body = {}
    const reply = await server.call(`${fill(reach.path, unknownIds)}?no_such_parameter=1`, options)
    if (reach.route.unknownQuery === 'ignored') expect(JSON.stringify(reply.body)).not.toContain('no_such_parameter')
    else expect([outcomeOf(reply), reply.body.error.param]).toEqual(['400 validation_error', 'no_such_parameter'])
  })

  it('answers an unsupported version and a foreign workspace', async () => {
    const { method, base } = reach.route
    const path = fill(reach.path, unknownIds)
    // As somebody whom the route does not refuse for what they are.
    const isForAgents = callers !== 'none' && typeof callers.person === 'object'
    const token = isForAgents ? agentToken : server.owner.token
    const version = await server.call(path, { method, base, token, headers: { 'Svc-Version': '2020-01' } })
    expect(outcomeOf(version)).toBe('400 unsupported_api_version')
    // Who needs no token is not asked for a workspace either.
    if (callers === 'none') return
    const headers = { 'Svc-Workspace-Id': crypto.randomUUID() }
    expect(outcomeOf(await server.call(path, { method, base, token, headers }))).toBe('403 not_permitted')
  })

  it('answers junk with an error of the contract', async () => {
    const { method, base } = reach.route
    if (method === 'GET') return
    for (const body of isLong ? junk : [junk[at++ % 4], junk[4]]) {
      const reply = await server.call(fill(reach.path, unknownIds), { method, base, body })
      expect(reply.status === 501 ? isUnavailable(reach.route) : reply.status < 500).toBe(true)
    }
  })
})

describe('the contract', () => {
  it('names no path twice and has a command for every route', () => {
    const labels = reaches.map((reach) => `${reach.route.base} ${reach.label}`)
    expect(new Set(labels).size).toBe(labels.length)
    const without = contract.filter((route) => route.commands.length === 0).map((route) => route.id)
    expect(without).toEqual(Object.keys(withoutCommand))
  })

  it('answers a wrong method with the methods there are, and an unknown path with 404', async () => {
    const wrong = await server.call('/agents', { method: 'DELETE' })
    expect(outcomeOf(wrong)).toBe('404 route_not_found')
    expect(wrong.headers.get('allow')).toBe('GET, HEAD, POST')
    expect(outcomeOf(await server.call('/nothing'))).toBe('404 route_not_found')
  })

  it('sets a Request-Id of its own on every answer', async () => {
    const [a, b] = [await server.call('/agents'), await server.call('/agents')]
    expect(a.headers.get('request-id')).toMatch(/^req_/)
    expect(a.headers.get('request-id')).not.toBe(b.headers.get('request-id'))
  })
})
