import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contract } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { goodRequests, makeThings } from '../../api/contract/collected.ts'
import { asked, fill, isUnavailable } from '../../api/contract/every-route.ts'
import { Stage } from '../../api/contract/stage.ts'
import { hasPostgres } from '../../kit/database.ts'
import { isLong } from '../../kit/forms.ts'
import { Statements, type Asked, type Walk } from './asked.ts'
import { exceptions, isExcused } from './exceptions.ts'
import { growRows } from './grow.ts'
import { long, usualCounts } from './growth.ts'
import { smallTables } from './growths.ts'
import { PostgresPlans } from './postgres.ts'
import { largest, queriesOf, type Ids } from './requests.ts'
import { SqlitePlans } from './sqlite.ts'

/**
 * What a call costs depends on its answer, not on what else there is. A server with some hundred thousand rows is asked for each list
 * with each filter, each route once, and each sweep; its database says how it finds what it was asked for, with what it has
 * measured of the tables by itself. A walk over a table that grows, or over all of a workspace's rows in it, is refused.
 */

describe.each(['sqlite', 'postgres'] as const)('on %s', (database) => {
  const isThere = database === 'sqlite' || hasPostgres()
  let stage: Stage
  let things: Ids
  let statements: readonly Asked[]
  let plans: SqlitePlans | PostgresPlans
  let walks: Walk[]

  beforeAll(async () => {
    if (!isThere) return
    stage = await Stage.start({ database })
    const { server, owner, member, live } = stage
    const { root } = server.database
    const agentId = await stage.agent()
    things = await makeThings({ server, person: owner, agentId, colleague: member, liveRunId: live.runId })
    await askAllRoutes((_, ask) => ask())
    const elsewhere = (await stage.stranger()).workspaceId
    await growRows(root, { workspaceId: owner.workspaceId, elsewhere, counts: usualCounts })
    // A run waits for the lock of a task that has had thousands.
    await server.startRun(agentId, { taskId: long.task })
    // As PostgreSQL does by itself after a while; SQLite is measured by a sweep.
    if (database === 'postgres') await root.raw('analyze')
    await server.plane.sweeper.runAll()

    const asking = new Statements(root)
    await askLists(asking)
    await askAllRoutes((on, ask) => asking.while(on, ask))
    await asking.while('sweeps', () => server.plane.sweeper.runAll())
    statements = asking.stop()
    plans = database === 'sqlite' ? await SqlitePlans.of(root) : await PostgresPlans.of(root)
    walks = []
    for (const each of statements) walks.push(...(await plans.walksOf(each)))
  }, 300_000)
  afterAll(() => stage?.stop())

  async function askAllRoutes(use: (on: string, ask: () => Promise<unknown>) => Promise<unknown>): Promise<void> {
    for (const route of contract) {
      const good = await goodRequests[route.id]?.(stage)
      if (good === undefined) continue
      const { params, query, token, headers, body } = good
      const path = asked(fill(route.path, { ...things, ...params }), query)
      const options = {
        method: route.method,
        base: route.base,
        headers: { 'idempotency-key': crypto.randomUUID(), ...headers },
        ...(token === undefined ? {} : { token }),
        ...(body === undefined ? {} : { body }),
      }
      await use(route.id, () => stage.server.call(path, options))
    }
  }

  /** As somebody who sees everything, as somebody who does not, and as an agent. */
  async function askLists(asking: Statements): Promise<void> {
    const [owner, member, agent] = [stage.owner.token, stage.member.token, (await stage.caller()).token]
    for (const route of contract.filter(
      ({ method, ...each }) => method === 'GET' && !isUnavailable(each as AnyRoute),
    )) {
      const { plain, single, pairs } = queriesOf(route, things)
      for (const ids of route.path.includes('{') ? [things, { ...things, ...largest }] : [things]) {
        const path = fill(route.path, ids)
        for (const [queries, tokens] of [
          [[plain], [owner, member, agent]],
          [single, [owner, member]],
          // Their texts are many, and PostgreSQL does all that it is asked.
          [database === 'sqlite' || isLong ? pairs : [], [member]],
        ] as const)
          for (const query of queries)
            for (const token of tokens)
              await asking.while(`GET ${asked(route.path, Object.fromEntries(new URLSearchParams(query)))}`, () =>
                askTwoPages(route, query === '' ? path : `${path}?${query}`, token),
              )
      }
    }
  }

  async function askTwoPages(route: AnyRoute, path: string, token: string): Promise<void> {
    const { body } = await stage.server.call(path, { base: route.base, token })
    const next: unknown = body?.nextCursor
    if (typeof next !== 'string') return
    const key = 'after' in route.query.shape ? 'after' : 'startingAfter'
    await stage.server.call(`${path}${path.includes('?') ? '&' : '?'}${key}=${next}`, { base: route.base, token })
  }

  it.skipIf(!isThere)('each table has grown, or stays small for a reason', () => {
    const tables = [...plans.counts].filter(([name]) => !/^(?:search_|sqlite_)/.test(name))
    const [grown, small] = [tables.filter(([, rows]) => rows > 2_000), tables.filter(([, rows]) => rows <= 2_000)]
    expect(small.map(([name]) => name).filter((name) => smallTables[name] === undefined)).toEqual([])
    expect(grown.map(([name]) => name).filter((name) => smallTables[name] !== undefined)).toEqual([])
  })

  it.skipIf(!isThere)('no call walks a table that grows, and no sweep', () => {
    const unexcused = walks.filter((walk) => !isRemoval(walk) && !exceptions.some((each) => isExcused(walk, each)))
    expect(new Set(unexcused.map(({ asked: { on, sql }, step }) => `${on}: ${step}\n    ${shortened(sql)}`))).toEqual(
      new Set(),
    )
  })

  it.skipIf(!isThere)('no exception has lost its walk', () => {
    const ofDatabase = exceptions.filter((each) => (each.database ?? database) === database)
    expect(ofDatabase.filter((each) => !walks.some((walk) => isExcused(walk, each)))).toEqual([])
  })
})

/** What is removed with a workspace is read for that. */
const isRemoval = ({ asked: { on } }: Walk) => on.endsWith('workspaces.delete')

const shortened = (sql: string) => sql.replace(/select .*? from/is, 'select ... from').slice(0, 600)
