import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../../control-plane/process/log.ts'
import { KeyedQueue } from '../../../control-plane/process/keyed-queue.ts'
import { removedLogsJob, retentionSweep } from '../../../control-plane/sweeps/retention.ts'
import { contract } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { goodRequests, makeThings } from '../../api/contract/collected.ts'
import { asked, fill, isUnavailable } from '../../api/contract/every-route.ts'
import { Stage } from '../../api/contract/stage.ts'
import type { GoodRequest } from '../../api/facts/kit/resource-facts.ts'
import { hasPostgres } from '../../kit/database.ts'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import type { Person, TestServer } from '../../kit/server.ts'
import { Statements, type Asked, type Walk } from './asked.ts'
import { exceptions, isExcused } from './exceptions.ts'
import { growRows } from './grow.ts'
import { future, long, usualCounts } from './growth.ts'
import { smallTables } from './growths.ts'
import { PostgresPlans } from './postgres.ts'
import { largest, queriesOf, type Ids } from './requests.ts'
import { SqlitePlans } from './sqlite.ts'

// What a call costs depends on its answer, not on what else there is. A server with some hundred thousand rows is asked for each list
// with each filter, each route once, each sweep and the metrics; its database says how it finds what it was asked for, with what it has
// measured of the tables by itself. A walk over a table that grows, or over all of a workspace's rows in it, is refused.

describe.each(['sqlite', 'postgres'] as const)('on %s', (database) => {
  const isThere = database === 'sqlite' || hasPostgres()
  let stage: Stage
  let things: Ids
  let small: Person
  let statements: readonly Asked[]
  let plans: SqlitePlans | PostgresPlans
  let walks: Walk[]
  const ofDatabase = exceptions.filter((each) => (each.database ?? database) === database)

  beforeAll(async () => {
    if (!isThere) return
    // What a reply looks like is checked elsewhere.
    stage = await Stage.start({ database, settings: { SVC_CHECK_REPLIES: '0' } })
    const { server, owner, member, live } = stage
    const { root } = server.database
    const agentId = await stage.agent()
    things = await makeThings({ server, person: owner, agentId, colleague: member, liveRunId: live.runId })
    for (const route of contract.filter(({ id }) => firstRows.has(id))) await ask(route)
    const elsewhere = (await stage.stranger()).workspaceId
    await growRows(root, { workspaceId: owner.workspaceId, elsewhere, counts: usualCounts })
    // Each grown run is a millisecond later than the one before: until the last of them is past, a range that ends now has only some.
    const [{ newest }] = (await root('runs').max({ newest: 'created_at' })) as [{ newest: number | string }]
    await waitFor(() => Date.now() > Number(newest), 'all runs are of the past', { ms: 60_000 })
    // A run waits for the lock of a task that has had thousands.
    await server.startRun(agentId, { taskId: long.task })
    // As PostgreSQL does by itself after a while; SQLite is measured by a sweep.
    if (database === 'postgres') await root.raw('analyze')
    await server.plane.sweeper.runAll()

    const asking = new Statements(root)
    await askLists(asking)
    small = await server.addPerson('owner', 'small')
    for (const route of contract) if (route.id !== 'openapi.get') await asking.while(route.id, () => ask(route))
    await asking.while('sweeps', () => server.plane.sweeper.runAll())
    await asking.while('metrics', () => server.plane.watch.read())
    statements = asking.stop()
    plans = database === 'sqlite' ? await SqlitePlans.of(root) : await PostgresPlans.of(root)
    walks = []
    for (const each of statements) walks.push(...(await plans.walksOf(each)))

    // What it removes would change the plans of all others.
    const removing = new Statements(root)
    await removing.while('retention', () => removeOld(server))
    for (const each of removing.stop()) walks.push(...(await plans.walksOf(each)))
  }, 300_000)
  afterAll(() => stage?.stop())

  async function ask(route: AnyRoute): Promise<void> {
    const good = await goodRequests[route.id]?.(stage)
    if (good === undefined) return
    const { params, query, token, headers, body } = readsAll.has(route.id) ? ofWorkspace(small) : good
    const path = asked(fill(route.path, { ...things, ...params }), query)
    await stage.server.call(path, {
      method: route.method,
      base: route.base,
      headers: { 'idempotency-key': crypto.randomUUID(), ...headers },
      ...(token === undefined ? {} : { token }),
      ...(body === undefined ? {} : { body }),
    })
  }

  /**
   * As somebody who sees everything, as somebody who does not, and as an agent. The short form asks for one page of each filter, as
   * one of the two, on each database as another: an index that a filter lacks is lacking on both.
   */
  async function askLists(asking: Statements): Promise<void> {
    const [owner, member, agent] = [stage.owner.token, stage.member.token, (await stage.caller()).token]
    const either = isLong ? [owner, member] : [database === 'sqlite' ? owner : member]
    for (const route of contract.filter(
      ({ method, ...each }) => method === 'GET' && !isUnavailable(each as AnyRoute),
    )) {
      const { plain, single, pairs } = queriesOf(route, things)
      // Of the others each route is asked once, below.
      const ids = route.path.includes('{') ? [...(isLong ? [things] : []), { ...things, ...largest }] : [things]
      const paths = ids.map((each) => fill(route.path, each))
      for (const [queries, { of, tokens, pages }] of [
        [[plain], { of: paths, tokens: [owner, member, agent], pages: 2 }],
        [single, { of: paths, tokens: either, pages: isLong ? 2 : 1 }],
        // Their texts are many.
        [isLong ? pairs : [], { of: paths, tokens: [member], pages: 2 }],
      ] as const)
        for (const query of queries)
          for (const path of of)
            for (const token of tokens)
              await asking.while(`GET ${asked(route.path, Object.fromEntries(new URLSearchParams(query)))}`, () =>
                askPages(route, query === '' ? path : `${path}?${query}`, { token, pages }),
              )
    }
  }

  async function askPages(
    route: AnyRoute,
    path: string,
    { token, pages }: { token: string; pages: 1 | 2 },
  ): Promise<void> {
    const { body } = await stage.server.call(path, { base: route.base, token })
    const next: unknown = body?.nextCursor
    if (pages === 1 || typeof next !== 'string') return
    const key = 'after' in route.query.shape ? 'after' : 'startingAfter'
    await stage.server.call(`${path}${path.includes('?') ? '&' : '?'}${key}=${next}`, { base: route.base, token })
  }

  it.skipIf(!isThere)('each table has grown, or stays small for a reason', () => {
    const tables = [...plans.counts].filter(([name]) => !/^(?:search_|sqlite_)/.test(name))
    const [grown, small] = [tables.filter(([, rows]) => rows > 2_000), tables.filter(([, rows]) => rows <= 2_000)]
    expect(small.map(([name]) => name).filter((name) => smallTables[name] === undefined)).toEqual([])
    expect(grown.map(([name]) => name).filter((name) => smallTables[name] !== undefined)).toEqual([])
  })

  it.skipIf(!isThere)('the metrics are among what is asked', () => {
    expect(statements.filter(({ on }) => on === 'metrics')).toHaveLength(6)
  })

  it.skipIf(!isThere)('no call walks a table that grows, and no sweep', () => {
    const unexcused = walks.filter((walk) => !isRemoval(walk) && !ofDatabase.some((each) => isExcused(walk, each)))
    expect(new Set(unexcused.map(({ asked: { on, sql }, step }) => `${on}: ${step}\n    ${shortened(sql)}`))).toEqual(
      new Set(),
    )
  })

  it.skipIf(!isThere)('no exception has lost its walk', () => {
    expect(ofDatabase.filter((each) => !walks.some((walk) => isExcused(walk, each)))).toEqual([])
  })
})

/** One pass of what removes old rows, to which all rows are old, and of what removes the events of runs. */
async function removeOld({ plane, database: { root }, world }: TestServer): Promise<void> {
  const queue = new KeyedQueue(silentLog, 'failed')
  queue.start()
  const keep = { runsMs: 1, historyMs: 1, versionsMs: 1 }
  const sweep = retentionSweep({ keep, everyMs: 1, blobs: plane.blobs })
  await sweep.run({ root, now: future, awakeSince: () => 0, world, log: silentLog, queue })
  await queue.idle()
  const logs = await removedLogsJob.list(root)
  expect(logs.length).toBeGreaterThan(0)
  // Which workspace has its turn first is by its id; the run with most events may be none of the first.
  expect(await root('removed_run_logs').where({ run_id: long.run })).toHaveLength(1)
  for (const id of new Set([...logs, long.run])) await removedLogsJob.runBatch(root, id)
  await queue.stop()
}

/** Those that make the rows which `makeThings` does not, and like which others are made. */
const firstRows: ReadonlySet<string> = new Set([
  'tasks.assign',
  'tasks.read',
  'automations.run',
  'conversations.read',
  'messages.edit',
  'wiki.pages.relations.add',
  'wiki.ingest.run',
])

/** Answers with all that a workspace holds, so a workspace with little must cost little. */
const readsAll: ReadonlySet<string> = new Set(['workspaces.export'])
const ofWorkspace = ({ workspaceId, token }: Person): GoodRequest => ({ params: { workspaceId }, token })

/** What is removed with a workspace is read for that. */
const isRemoval = ({ asked: { on } }: Walk) => on.endsWith('workspaces.delete')

const shortened = (sql: string) => sql.replace(/select .*? from/is, 'select ... from').slice(0, 600)
