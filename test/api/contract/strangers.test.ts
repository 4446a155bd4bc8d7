import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sessionCookie } from '../../../control-plane/http/auth.ts'
import { openSession } from '../../../control-plane/sign-in/session.ts'
import { contract } from '../../../shared/api/index.ts'
import { isLong } from '../../kit/forms.ts'
import type { CallOptions, TestServer } from '../../kit/server.ts'
import type { Ids, Place } from '../facts/kit/resource-facts.ts'
import { bearerIds, goodRequests, makeThings, nothingToRead, places, placesWithin, unknownIds } from './collected.ts'
import { asked as withQuery, fill, reaches } from './every-route.ts'
import { Stage } from './stage.ts'

// What is in another workspace is to everybody of ours as if it were not there: in paths, bodies and queries.

let stage: Stage
let server: TestServer
/** Each kind of token, that of a run first: what is sent to be let in with it. */
let credentials: readonly Pick<CallOptions, 'token' | 'headers'>[]
/** Ids of things in a workspace that nobody of ours belongs to, and the token of whose they are. */
let foreign: Ids
let strangerToken: string

beforeAll(async () => {
  stage = await Stage.start()
  server = stage.server
  const stranger = await server.addPerson('owner', 'elsewhere')
  strangerToken = stranger.token
  const agentId = await stage.agent({}, strangerToken)
  const keeper = { server, person: stranger, agentId, colleague: stranger, liveRunId: null }
  // Whoever knows these may use them, so nobody does.
  const unheard = Object.fromEntries(bearerIds.map((name) => [name, `another-${unknownIds[name]}`]))
  foreign = { ...(await makeThings(keeper)), ...unheard }
  const { root } = server.database
  const signIn = {
    personUuid: server.owner.uuid,
    workspaceId: server.owner.workspaceId,
    cookieBefore: null,
    sessions: { totalMs: 3_600_000, idleMs: 3_600_000 },
  }
  const cookie = await openSession(root, server.world, signIn)
  credentials = [
    { token: (await stage.caller()).token },
    { token: server.owner.token },
    { token: stage.member.token },
    { token: null, headers: { cookie: `${sessionCookie}=${cookie}` } },
  ]
})
afterAll(() => stage.stop())

describe('the ids', () => {
  const reads = reaches.filter(
    ({ route, path }) => route.method === 'GET' && path.includes('{') && nothingToRead[route.id] === undefined,
  )
  it.each(reads)('are of things that the stranger reads: $label', async ({ route, path }) => {
    const { query } = (await goodRequests[route.id]?.(stage)) ?? {}
    const reply = await server.call(withQuery(fill(path, foreign), query), { base: route.base, token: strangerToken })
    expect([reply.status, reply.body]).toEqual([200, expect.anything()])
  })

  it('are none of those that name nothing, but for what comes with no workspace', () => {
    const same = Object.keys(unknownIds).filter(
      (name) => foreign[name] === undefined || foreign[name] === unknownIds[name],
    )
    expect(same).toEqual(['eventId'])
  })
})

describe('an id of a stranger in a path', () => {
  it.each(reaches.filter(({ path }) => path.includes('{')))('$label', async ({ route, path }) => {
    const { method, base, id } = route
    // A body that fits, so that it is the id that is looked at.
    const good = (await goodRequests[id]?.(stage)) ?? {}
    const body = method === 'GET' ? undefined : (good.body ?? {})
    await expectSame(async (ids) => ({ path: withQuery(fill(path, ids), good.query), method, base, body }))
  })

  it.each(placesWithin)('%s %s, below something of ours', async (_, method, placeOf) => {
    await expectSame(async (ids) => ({ ...(await placeOf(stage, ids)), method }))
  })
})

describe('an id of a stranger in a body or a query', () => {
  it.each(places)('%s %s', async (routeId, method, placeOf) => {
    // A key that the route does not read would prove nothing.
    const { path } = await placeOf(stage, foreign)
    const route = contract.find(({ id }) => id === routeId)!
    expect(Object.keys(route.query.shape)).toEqual(
      expect.arrayContaining([...new URL(path, 'http://x').searchParams.keys()]),
    )

    await expectSame(async (ids) => ({ ...(await placeOf(stage, ids)), method }))
  })
})

let asked = 0
/**
 * The run of an agent, for which routes have ways of their own, and each time another one of the people: in which workspace
 * something is looked for does not hang on their role, nor on how they signed in.
 */
function inTurn(): typeof credentials {
  const [run, ...people] = credentials
  return [run!, people[asked++ % people.length]!]
}

/** Whoever of ours asks: what a stranger has is answered as what there is not. */
async function expectSame(placeOf: (ids: Ids) => Promise<Place>): Promise<void> {
  for (const { token, headers } of isLong ? credentials : inTurn()) {
    const answerFor = async (ids: Ids) => {
      const { path, method, base, body } = await placeOf(ids)
      return server.call(path, {
        ...(method === undefined ? {} : { method }),
        ...(base === undefined ? {} : { base }),
        ...(token === undefined ? {} : { token }),
        ...(body === undefined || method === 'GET' ? {} : { body }),
        headers: { ...headers, accept: 'application/json', 'idempotency-key': crypto.randomUUID() },
      })
    }
    const [unknown, theirs] = [await answerFor(unknownIds), await answerFor(foreign)]
    expect(shapeOf(theirs)).toEqual(shapeOf(unknown))
  }
}

/** All of an answer but the parts that differ from request to request. */
function shapeOf(reply: { status: number; body: unknown }) {
  const text = JSON.stringify(reply.body ?? null)
  return {
    status: reply.status,
    text: text.replaceAll(/req_\w+|[a-z]{2,4}_\w{16}|[0-9a-f-]{36}|[\d-]{10}T[\d:.]+Z/g, 'ID'),
  }
}
