import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contract, groups } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { allFacts } from '../facts/all.ts'
import type { ResourceFacts } from '../facts/kit/resource-facts.ts'
import { goodRequests, idNames, makeThings, unknownIds } from './collected.ts'
import { routeFacts } from './document-facts.ts'
import { asked, fill, isUnavailable, reaches } from './every-route.ts'
import { Stage } from './stage.ts'

// The facts themselves: each resource has its own, whole, and they are true.

/** `taskComments` is described in `task-comments.ts`. */
const fileOf = (group: string) =>
  `test/api/facts/${group.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.ts`

/** Returns what is to be added to the facts, a sentence each. */
function missingOf(group: string, routes: readonly AnyRoute[], facts: ResourceFacts | undefined): string[] {
  const file = fileOf(group)
  if (facts === undefined)
    return [
      `The routes of ${group} have no facts: write ${file} (secrets.ts is a short example) and list it in all.ts.`,
    ]
  const ids = new Set(routes.map(({ id }) => id))
  const unasked = routes.filter((route) => facts.requests[route.id] === undefined && !isUnavailable(route))
  const named = [
    ...Object.keys(facts.requests),
    ...[...(facts.codes ?? []), ...(facts.postgresCodes ?? [])].map(({ route }) => route),
    ...Object.keys(facts.notOnRoute ?? {}).map((each) => each.split(' ')[1]!),
    ...Object.keys(facts.withoutCommand ?? {}),
    ...Object.keys(facts.nothingToRead ?? {}),
    ...[...(facts.places ?? []), ...(facts.within ?? [])].map(([route]) => route),
    ...(facts.sharp ?? []),
    ...Object.keys(facts.ends ?? {}),
  ]
  return [
    ...unasked.map(({ id }) => `${file} has no request of ${id} that succeeds: add one to its \`requests\`.`),
    ...[...new Set(named)].filter((id) => !ids.has(id)).map((id) => `${file} speaks of ${id}, no route of ${group}.`),
  ]
}

/** The name under which an id of this parameter is known. */
const nameOf = (path: string, parameter: string) =>
  [`${path.split('/')[1]}.${parameter}`, parameter].find((name) => name in unknownIds)

describe('the facts', () => {
  it('are there for each resource and each of its routes', () => {
    const given: Readonly<Record<string, ResourceFacts>> = allFacts
    const missing = Object.entries(groups).flatMap(([group, routes]) =>
      missingOf(group, Object.values(routes) as AnyRoute[], given[group]),
    )
    expect(missing).toEqual([])
    expect(Object.keys(given)).toEqual(Object.keys(groups))
  })

  it('name an id for each parameter of a path', () => {
    const missing = reaches.flatMap(({ path }) =>
      [...path.matchAll(/\{(\w+)\}/g)]
        .filter((match) => nameOf(path, match[1]!) === undefined)
        .map((match) => `${path}: add ${match[1]} to the \`unknownIds\` of its resource in test/api/facts.`),
    )
    expect([...new Set(missing)]).toEqual([])
  })
})

describe('with a server', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.start()
  })
  afterAll(() => stage.stop())

  it('makes a thing for each id', async () => {
    const { server, owner, member, live } = stage
    const agentId = await stage.agent()
    const things = await makeThings({ server, person: owner, agentId, colleague: member, liveRunId: live.runId })
    const missing = idNames
      .filter((name) => things[name] === undefined || things[name] === unknownIds[name])
      .map((name) => `No \`things\` in test/api/facts make ${name}: make one where its id is among the \`unknownIds\`.`)
    expect(missing).toEqual([])
    // Nobody could say what a thing without an unknown id is for.
    expect(Object.keys(things).toSorted()).toEqual(idNames.toSorted())
  })

  // Those of the documents are asked in documents-routes.test.ts.
  const shown = new Set(routeFacts.filter(({ path }) => path !== null).map(({ id }) => id))
  const others = contract.filter((route) => !shown.has(route.id) && !isUnavailable(route))
  it.each(others)('asks $id with success', async ({ id, path, method, base, status }) => {
    const { params, query, token, headers, body } = (await goodRequests[id]?.(stage)) ?? {}
    const reply = await stage.server.call(asked(fill(path, { ...unknownIds, ...params }), query), {
      method,
      base,
      ...(token === undefined ? {} : { token }),
      ...(body === undefined ? {} : { body }),
      headers: { ...headers, 'idempotency-key': crypto.randomUUID() },
    })
    expect([reply.status, status === 204 ? null : reply.body]).toEqual([
      status,
      status === 204 ? null : expect.objectContaining({}),
    ])
  })
})
