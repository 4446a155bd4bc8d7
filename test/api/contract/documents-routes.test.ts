import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contract } from '../../../shared/api/index.ts'
import { mebibyte } from '../../../shared/api/route.ts'
import { isLong } from '../../kit/forms.ts'
import { codeOf, outcomeOf, type CallOptions, type Reply } from '../../kit/server.ts'
import type { GoodRequest } from '../facts/kit/resource-facts.ts'
import { goodRequests, unknownIds } from './collected.ts'
import { builtDocuments, codeFacts, plainFacts, routeFacts, type RouteFact } from './document-facts.ts'
import { asked, fill } from './every-route.ts'
import {
  bodyKeys,
  operationAt,
  readDocument,
  routeIdOf,
  type OpenApiDocument,
  type Operation,
} from './openapi-document.ts'
import { Stage } from './stage.ts'

/**
 * The routes as the documents write them, asked of a running server: mounted with their aliases, callers, idempotency,
 * limits and codes. What is compared comes from the documents' facts; the product's own contract is read only to say which route is meant.
 */
let stage: Stage
let document: OpenApiDocument
/** Tokens that were good once. */
let revokedToken: string
let resetToken: string
/** Of a run of the owner's, for requests that are refused. */
let agentToken: string

beforeAll(async () => {
  stage = await Stage.start()
  document = await readDocument(stage.server)
  const ended = await stage.caller()
  await stage.server.ok(`/runs/${ended.runId}/cancel`, { body: {} })
  revokedToken = ended.token
  const reset = await stage.caller()
  await stage.server.ok(`/agents/${reset.agentId}/sessions/reset`, { method: 'POST' })
  resetToken = reset.token
  agentToken = (await stage.caller()).token
})
afterAll(() => stage.stop())

interface Shown extends RouteFact {
  method: NonNullable<RouteFact['method']>
  path: string
  base: '/api' | '/api/v1'
}
const openApiPath = '{base_url}/api/openapi.json'
const shown = routeFacts.flatMap((fact): Shown[] => {
  const { method, path } = fact
  if (method === null || path === null) return []
  const isDocument = path === openApiPath
  return [{ ...fact, method, path: isDocument ? '/openapi.json' : path, base: isDocument ? '/api' : '/api/v1' }]
})

const pathsOf = ({ path, aliases }: Shown) => [path, ...aliases]

function good(fact: Shown): Promise<GoodRequest> {
  const recipe = goodRequests[fact.id]
  if (recipe === undefined) throw new Error(`test/api/facts has no request of ${fact.id}`)
  return Promise.resolve(recipe(stage))
}

/** A good request for tests in which all that is sent is refused, and so changes nothing: one for all of a route. */
const unsent = new Map<string, Promise<GoodRequest>>()
function goodToRefuse(fact: Shown): Promise<GoodRequest> {
  const known = unsent.get(fact.id) ?? good(fact)
  unsent.set(fact.id, known)
  return known
}

/** Requests that were answered. */
const answered = new Map<string, GoodRequest>()
/** A request that was good once: whoever has no token is refused before anybody looks at what it names. The long form makes it anew. */
const onceGood = async (fact: Shown): Promise<GoodRequest> =>
  (isLong ? undefined : answered.get(fact.id)) ?? goodToRefuse(fact)

interface Sending extends GoodRequest {
  path?: string
  key?: string | null
}
function send(fact: Shown, { params, query, body, token, headers, path, key }: Sending): Promise<Reply> {
  const sent = key === undefined && fact.idempotency === 'required' ? crypto.randomUUID() : key
  const options: CallOptions = {
    method: fact.method,
    base: fact.base,
    ...(token === undefined ? {} : { token }),
    ...(body === undefined ? {} : { body }),
    headers: { ...headers, ...(sent == null ? {} : { 'idempotency-key': sent }) },
  }
  return stage.server.call(asked(fill(path ?? fact.path, { ...unknownIds, ...params }), query), options)
}

function operationOf(fact: Shown, path = fact.path): Operation {
  const operation = operationAt(document, fact.method, fact.base + path)
  if (operation === null) throw new Error(`the OpenAPI document has no ${fact.method} ${path}`)
  return operation
}

/**
 * `files.replace` takes bodies as `files.create` does, which documents-errors.test.ts sends one of 70 MB; the routes of the
 * ingest have their limit in one constant, and resources/wiki-ingest.test.ts sends as much.
 */
const sameLimit = ['files.create', 'files.replace', 'wiki.ingest.plan', 'wiki.ingest.run']
const isRead = ({ method }: Shown) => method === 'GET'
const onlyFor = (fact: Shown, ...callers: string[]) =>
  fact.callers !== null && fact.callers.every((caller) => callers.includes(caller))

const takesKey = (fact: Shown) => !isRead(fact) && !onlyFor(fact, 'none')
async function refusesKeys(fact: Shown, request: GoodRequest): Promise<void> {
  expect(outcomeOf(await send(fact, { ...request, key: 'with a space' }))).toBe('400 idempotency_invalid_key')
  expect(outcomeOf(await send(fact, { ...request, key: 'x'.repeat(256) }))).toBe('400 idempotency_invalid_key')
  if (fact.idempotency !== 'required') return
  expect(outcomeOf(await send(fact, { ...request, key: null }))).toBe('400 idempotency_invalid_key')
}

/** The request that was answered so is answered the same again, and its key is of no other one. */
async function replays(fact: Shown, sent: Sending, first: Reply): Promise<void> {
  expect(first.headers.get('idempotency-replayed')).toBeNull()
  const again = await send(fact, sent)
  expect([again.status, again.body]).toEqual([first.status, first.body])
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  if (sent.body === undefined) return
  const other = await send(fact, { ...sent, body: { ...(sent.body as object), description: 'Another' } })
  // Another body is another request; one that its schema reads alike is the same.
  expect(['409 idempotency_key_reused', String(first.status), '400 validation_error']).toContain(outcomeOf(other))
}

describe.each(shown)('$method $path', (fact) => {
  it('is mounted under each of its paths, answers there, and takes Idempotency-Key as written', async () => {
    for (const path of pathsOf(fact)) {
      const request = await good(fact)
      if (path === fact.path && takesKey(fact)) await refusesKeys(fact, request)
      const key = isRead(fact) ? 'with a space' : crypto.randomUUID()
      // A key belongs to a caller, so who calls without a token has none.
      const sent = { ...request, path, ...(onlyFor(fact, 'none') ? {} : { key }) }
      const reply = await send(fact, sent)
      answered.set(fact.id, request)
      expect([path, reply.status, reply.status < 300 ? null : reply.body]).toEqual([
        path,
        fact.success ?? reply.status,
        null,
      ])
      expect(routeIdOf(operationOf(fact, path))).toBe(fact.id)
      if (path === fact.path && takesKey(fact) && !request.endsCaller) await replays(fact, sent, reply)
    }
  })

  if (!onlyFor(fact, 'none'))
    it('lets in nobody without a good token', async () => {
      const { params, body } = await onceGood(fact)
      for (const path of pathsOf(fact)) {
        const outcome = async (token: string | null) => {
          const options = { method: fact.method, base: fact.base, token, ...(body === undefined ? {} : { body }) }
          return outcomeOf(await stage.server.call(fill(path, { ...unknownIds, ...params }), options))
        }
        expect(await outcome(null)).toBe('401 auth_missing')
        // Which tokens are good is decided before the route is; documents-errors.test.ts shows each of these.
        if (!isLong) continue
        expect(await outcome('svc_pat_unknown')).toBe('401 auth_invalid')
        expect(await outcome(revokedToken)).toBe('401 auth_revoked')
        expect(await outcome(resetToken)).toBe('401 auth.agent_jwt_revoked')
        expect(await outcome(stage.device.identity.token)).toBe('401 auth_invalid')
      }
    })

  it('is for the callers that are written, and for no others', async () => {
    const refused = async (token: string) => {
      const reply = await send(fact, { ...(await goodToRefuse(fact)), token })
      expect([fact.id, reply.status]).toEqual([fact.id, 403])
      return codeOf(reply)
    }
    if (fact.agent?.refused != null) expect(await refused(agentToken)).toBe(fact.agent.refused)
    if (fact.callers?.every((caller) => caller === 'person') === true) await refused(agentToken)
    const notAdmin = fact.codes.includes('not_authorized') ? 'not_authorized' : 'http_exception'
    if (onlyFor(fact, 'admin', 'company_admin')) expect(await refused(stage.member.token)).toBe(notAdmin)
    if (onlyFor(fact, 'workspace_owner')) expect(await refused(stage.admin.token)).toBe('http_exception')
    const isOwned = onlyFor(fact, 'owner', 'admin', 'agent_run') && !onlyFor(fact, 'agent_run')
    if (isOwned) {
      for (const token of [stage.member.token, agentToken]) expect(fact.codes).toContain(await refused(token))
    }
    if (fact.callers?.includes('agent_run') !== true || fact.callers.length > 1) return
    expect(fact.codes).toContain(await refused(stage.owner.token))
  })

  if (fact.agent?.approval === true)
    it('makes an agent wait for approval', async () => {
      const agent = await stage.caller()
      // An agent asks only for its own settings, and some of these it may change at once.
      const own = {
        params: { agentId: agent.agentId },
        body: { config: { runtime: { triggers: { wakeOnHook: false } } } },
      }
      const isOwnOnly = fact.agent?.codes.includes('agent_self_only')
      const reply = await send(fact, { ...(isOwnOnly ? own : await good(fact)), token: agent.token })
      expect([reply.status, reply.body]).toEqual([
        202,
        { object: 'platform_change', approvalId: expect.stringMatching(/^apr_/), status: 'pending' },
      ])
    })

  // Without one of its own a route has the limit of all, which one of them shows in the short form.
  if (!isRead(fact) && (isLong || fact.bodyMiB !== null || fact.id === 'tasks.create'))
    it('takes bodies up to its limit', async () => {
      const { params, token } = await good(fact)
      const limit = (fact.bodyMiB ?? 2) * mebibyte
      const path = fact.base + fill(fact.path, { ...unknownIds, ...params })
      const headers = {
        authorization: `Bearer ${token ?? stage.owner.token}`,
        'content-type': 'application/json',
        ...(fact.idempotency === 'required' ? { 'idempotency-key': crypto.randomUUID() } : {}),
      }
      const over = await stage.server.announce(path, { method: fact.method, headers, length: limit + 1 })
      expect([over.status, over.text]).toEqual([413, expect.stringContaining('"payload_too_large"')])
      // Another test sends so much, or a route that has the limit in common.
      if (!isLong && sameLimit.includes(fact.id)) return
      const body = JSON.stringify({ padding: 'x'.repeat(limit - 14) })
      expect((await stage.server.ask(path, { method: fact.method, headers, body })).status).not.toBe(413)
    })

  if (fact.limit !== null)
    it('pages within its limits', async () => {
      const { max = null, default: byDefault = null } = fact.limit ?? {}
      const request = await good(fact)
      const asked = (limit: number) => send(fact, { ...request, path: `${fact.path}?limit=${limit}` })
      expect(outcomeOf(await asked(0))).toBe('400 validation_error')
      if (max !== null) {
        expect((await asked(max)).status).toBe(200)
        expect(outcomeOf(await asked(max + 1))).toBe('400 validation_error')
      }
      const { schema } = operationOf(fact).parameters?.find(({ name }) => name === 'limit') ?? {}
      if (max !== null) expect(schema).toMatchObject({ maximum: max })
      if (byDefault !== null) expect(schema).toMatchObject({ default: byDefault })
    })

  it('declares the parameters, keys and codes that are written', () => {
    const operation = operationOf(fact)
    const parameters = (operation.parameters ?? []).filter((each) => each.in === 'query').map(({ name }) => name)
    expect(parameters).toEqual(expect.arrayContaining(fact.query.map((name) => name.replace('[]', ''))))
    expect(bodyKeys(document, operation)).toEqual(expect.arrayContaining(fact.body.filter((name) => name !== '(any)')))
    const written = codeFacts.filter(({ routes }) => routes.includes(fact.id)).map(({ code }) => code)
    const told = Object.values(operation.responses).map(({ description }) => description)
    for (const code of new Set([...fact.codes, ...written])) {
      expect([code, told.some((text) => text.includes(`\`${code}\``))]).toEqual([code, true])
    }
  })
})

describe('routes of which the documents show no path', () => {
  const reasons: Readonly<Record<string, string>> = {
    'connections.oauthCallback':
      'no path is written; browsers come back to /integrations/connections/callback (docs/connections.md)',
    'mcp.endpoint': 'MCP servers are only referred to',
    'harnessConfig.import': 'only its body limit is written',
    signIn: 'no path is written; signing in is at /sign-in, /device and /api/auth (docs/sign-in.md)',
  }
  const hidden = routeFacts.filter(({ path }) => path === null)
  const offered = new Set(contract.map(({ id }) => id))

  it('are offered, or it is known why not', () => {
    const missing = hidden.filter(({ id }) => !offered.has(id)).map(({ id }) => id)
    const known = Object.keys(reasons).filter((id) => hidden.some((fact) => fact.id === id))
    expect(missing.toSorted()).toEqual(known.toSorted())
  })

  it('answer the written status and message where it is 501', async () => {
    const unavailable = plainFacts.find(({ id }) => id === 'plain.members_unavailable')?.routes ?? []
    const params = { ...unknownIds, workspaceId: stage.owner.workspaceId }
    for (const route of contract.filter(({ id }) => unavailable.includes(id))) {
      for (const path of [route.path, ...route.aliases]) {
        const reply = await stage.server.call(fill(path, params), { method: route.method })
        expect([reply.status, typeof reply.body.error]).toEqual([501, 'string'])
        const agent = await stage.server.call(fill(path, params), { method: route.method, token: stage.live.token })
        expect(outcomeOf(agent)).toBe('403 agent_no_workspace_access')
      }
    }
  })
})

it('walks the documents that are built, whole', () => {
  expect(builtDocuments.length).toBeGreaterThan(0)
  const recipes = new Set(Object.keys(goodRequests))
  expect(shown.filter(({ id }) => !recipes.has(id)).map(({ id }) => id)).toEqual([])
})
