import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasShortEnvelope } from '../../../shared/api/errors.ts'
import { contract } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { hasPostgres } from '../../kit/database.ts'
import { isLong } from '../../kit/forms.ts'
import { outcomeOf, type Reply } from '../../kit/server.ts'
import { on } from '../facts/kit/recipe.ts'
import type { CodeRecipe } from '../facts/kit/resource-facts.ts'
import {
  codeRecipes,
  goodRequests,
  notOnRoute,
  plainErrorRecipes,
  postgresCodeRecipes,
  unknownIds,
  unprovoked as unprovokedOfResources,
} from './collected.ts'
import { codeFacts, plainFacts, typeFacts } from './document-facts.ts'
import { asked, fill } from './every-route.ts'
import { kernelRecipes, postgresRecipes as postgresKernelRecipes } from './kernel-recipes.ts'
import { Stage } from './stage.ts'

// Each code the documents write, provoked by a real request, on each route for which they name it.

/** Codes no request can provoke, with the reason. */
const unprovoked: Readonly<Record<string, string>> = {
  not_found_or_denied: 'what is hidden answers resource_not_found, as what does not exist does',
  ...unprovokedOfResources,
}
const junk = {
  contentBase64: 7,
  name: 5,
  description: 5,
  maxTurns: 'x',
  newOwnerId: 5,
  status: 5,
  deviceId: 5,
  repoId: 5,
  defaultMaxTurns: 5,
}

async function send(
  stage: Stage,
  route: AnyRoute,
  change: { token?: string; body?: unknown; search?: string; params?: Record<string, string> },
): Promise<Reply> {
  const good = (await goodRequests[route.id]?.(stage)) ?? {}
  const { token, body, params, headers } = { ...good, ...change }
  const path = fill(route.path, { ...unknownIds, ...good.params, ...params })
  return stage.server.call(change.search === undefined ? asked(path, good.query) : path + change.search, {
    method: route.method,
    base: route.base,
    ...(headers === undefined ? {} : { headers: { ...headers } }),
    ...(token === undefined ? {} : { token }),
    ...(body === undefined ? {} : { body }),
  })
}

/** Requests made from good ones, for codes that many routes have in common. */
function commonRecipes(route: AnyRoute): CodeRecipe[] {
  const byAgent = async (stage: Stage) => send(stage, route, { token: (await stage.caller()).token })
  const named = codeFacts.filter(({ routes }) => routes.includes(route.id)).map(({ code }) => code)
  const hasQuery = Object.keys(route.query.shape).length > 0
  const hasBody = route.body.def.type !== 'undefined'
  const make: Record<string, () => CodeRecipe | null> = {
    validation_error: () =>
      on(route.id, '400 validation_error', (stage) =>
        send(stage, route, hasBody ? { body: junk } : { search: hasQuery ? '?limit=x&includeDeleted=x' : '?stauts=x' }),
      ),
    http_exception: () => on(route.id, '403 http_exception', byAgent),
    agent_self_only: () => on(route.id, '403 agent_self_only', byAgent),
    agent_no_workspace_access: () => on(route.id, '403 agent_no_workspace_access', byAgent),
    resource_not_found: () =>
      route.path.includes('{projectId}')
        ? on(route.id, '404 resource_not_found', (stage) =>
            send(stage, route, { params: { projectId: unknownIds['projectId']! } }),
          )
        : null,
  }
  return named.flatMap((code) => make[code]?.() ?? [])
}

const tokens: Readonly<Record<string, (stage: Stage) => Promise<string | null>>> = {
  '401 auth_missing': () => Promise.resolve(null),
  '401 auth_invalid': () => Promise.resolve('svc_pat_unknown'),
  '401 auth_revoked': async (stage) => {
    const { runId, token } = await stage.caller()
    await stage.server.ok(`/runs/${runId}/cancel`, { body: {} })
    return token
  },
  '401 auth.agent_jwt_revoked': async (stage) => {
    const { agentId, token } = await stage.caller()
    await stage.server.ok(`/agents/${agentId}/sessions/reset`, { method: 'POST' })
    return token
  },
}
const tokenRecipes = Object.entries(tokens).map(([outcome, tokenOf]) =>
  on('agents.list', outcome, async (stage) => stage.server.call('/agents', { token: await tokenOf(stage) })),
)
const bodyRecipe = on('agents.create', '413 payload_too_large', ({ server }) =>
  server.call('/agents', { body: { name: 'x', description: 'x'.repeat(2 * 1024 * 1024) } }),
)
const recipes: readonly CodeRecipe[] = [
  ...codeRecipes,
  ...kernelRecipes,
  ...tokenRecipes,
  bodyRecipe,
  ...contract.flatMap(commonRecipes),
]

/**
 * What costs many megabytes and is answered by the same lines as on another route, which stands for it in the short form;
 * `resources/wiki-ingest` has that of `wiki.ingest.run`.
 */
const asOnAnother = ({ route, outcome }: CodeRecipe) =>
  ['files.replace 413 validation_error', 'wiki.ingest.run 400 wiki_ingest_request_too_large'].includes(
    `${route} ${outcome}`,
  )

const postgresRecipes = [...postgresKernelRecipes, ...postgresCodeRecipes]

function check(reply: Reply, outcome: string): void {
  expect(outcomeOf(reply)).toBe(outcome)
  const { type, code } = reply.body.error
  if (hasShortEnvelope(code)) return
  const types = typeFacts.filter(({ http }) => http.includes(reply.status)).map((fact) => fact.type)
  // The table of types covers neither 410 nor 502.
  if (types.length > 0) expect(types).toContain(type)
  if (code.startsWith('idempotency_') && reply.status === 409) expect(type).toBe('idempotency_error')
}

describe('codes', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.start()
  })
  afterAll(() => stage.stop())
  it.each(recipes.filter((recipe) => isLong || !asOnAnother(recipe)))(
    '$outcome of $route',
    async ({ outcome, provoke }) => check(await provoke(stage), outcome),
  )
})

describe.skipIf(!hasPostgres())('codes that need two transactions at once', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.start({ database: 'postgres' })
  })
  afterAll(() => stage.stop())
  it.each(postgresRecipes)('$outcome of $route', async ({ outcome, provoke }) => check(await provoke(stage), outcome))
})

describe('plain errors', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.start()
  })
  afterAll(() => stage.stop())

  const cases = plainFacts.flatMap(({ id, http, routes }) => routes.map((route) => ({ id, http, route })))

  it.each(cases)('$id of $route', async ({ id, http, route: name }) => {
    const route = contract.find((each) => each.id === name)!
    const reply = await plainErrorRecipes[id]!({ stage, route, send: (change) => send(stage, route, change) })
    expect(http).toContain(reply.status)
    expect(reply.body).toEqual({ error: expect.any(String) })
  })
})

describe('the list of what is provoked', () => {
  const all = [...recipes, ...postgresRecipes]
  const done = new Set(all.map(({ outcome, route }) => `${outcome} ${route}`))
  const anywhere = new Set(all.map(({ outcome }) => outcome))
  const isOffered = new Set(contract.map(({ id }) => id))

  it('has each code with each status, and each route that the documents name for it', () => {
    const missing = codeFacts.flatMap(({ code, http, routes, scope }) => {
      if (unprovoked[code] !== undefined) return []
      return http.flatMap((status) => {
        const outcome = `${status} ${code}`
        // What any route answers is answered by the kernel, before it matters which route it is.
        if (scope === 'any route') return anywhere.has(outcome) ? [] : [`${outcome} (anywhere)`]
        const named = routes.filter((route) => isOffered.has(route) && notOnRoute[`${code} ${route}`] === undefined)
        // A code with several statuses has each of them somewhere on its routes, and each route has one of them.
        const statuses = http.length > 1 && anywhere.has(outcome) ? http : [status]
        const isDone = (route: string) => statuses.some((each) => done.has(`${each} ${code} ${route}`))
        return named.filter((route) => !isDone(route)).map((route) => `${outcome} ${route}`)
      })
    })
    expect(missing).toEqual([])
  })

  it('leaves out only what the documents name and nothing provokes', () => {
    const codes = new Set(codeFacts.map(({ code }) => code))
    const provoked = new Set([...anywhere].map((outcome) => outcome.split(' ')[1]))
    expect(Object.keys(unprovoked).filter((code) => !codes.has(code) || provoked.has(code))).toEqual([])
    expect(
      Object.keys(notOnRoute).filter((each) =>
        all.some(({ outcome, route }) => `${outcome.split(' ')[1]} ${route}` === each),
      ),
    ).toEqual([])
  })
})
