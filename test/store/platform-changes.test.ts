import { idFrom, type ApprovalId } from '../../shared/lib/ids.ts'
import { AnswerRoom } from '../../control-plane/http/answer-room.ts'
import { createBodyRooms } from '../../control-plane/http/body-room.ts'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Db, Tx } from '../../control-plane/db/open.ts'
import { afterCommit, inTransaction } from '../../control-plane/db/transaction.ts'
import type { PersonCaller } from '../../control-plane/http/callers.ts'
import { implement } from '../../control-plane/http/implement.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { addToQuestions } from '../../control-plane/db/migrations/020-workflows.ts'
import { questionWaits } from '../../control-plane/db/migrations/025-question-waits.ts'
import { secretsInSandboxes } from '../../control-plane/db/migrations/055-secrets-in-sandboxes.ts'
import { migrations } from '../../control-plane/db/migrations/index.ts'
import { listApprovals } from '../../control-plane/resources/approvals/store.ts'
import {
  clearTold,
  closePlatformChange,
  findPlatformChange,
  insertPlatformChange,
  listPlatformChanges,
  listUntold,
  setTold,
} from '../../control-plane/resources/platform-changes/store.ts'
import { approveChange } from '../../control-plane/resources/platform-changes/steps/replay.ts'
import { ApiError, fail } from '../../shared/api/errors.ts'
import { defineRoute } from '../../shared/api/route.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedWorkspace } from './seed.ts'

const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)

onBoth('a stored write keeps what came of it, and is closed once', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const change = {
    id: id('apr_'),
    workspaceId,
    agentRef: id('agt_'),
    runId: id('run_'),
    routeId: 'agents.create',
    params: { agentId: 'x' },
    body: { name: 'n', deep: [1, null] },
    source: 'cli' as const,
    createdAt: at,
  }
  await insertPlatformChange(root, change)
  expect(await findPlatformChange(root, workspaceId, change.id)).toEqual({
    ...change,
    status: 'pending',
    result: null,
    toldRunId: null,
  })
  const close = { id: change.id, status: 'approved', result: { status: 201, body: { id: 'agt_1' } } } as const
  expect(await closePlatformChange(root, close)).toBe(true)
  expect(await closePlatformChange(root, { ...close, status: 'rejected' })).toBe(false)
  expect(await listPlatformChanges(root, [change.id, idFrom('apr_x')], { bodyBytes: 1_000 })).toMatchObject([
    { status: 'approved', result: close.result },
  ])
  expect(await listPlatformChanges(root, [change.id], { bodyBytes: 10 })).toMatchObject([{ id: change.id, body: null }])
  expect(await listPlatformChanges(root, [], { bodyBytes: 1_000 })).toEqual([])
})

onBoth('writes that waited before there were approvals get theirs by the migration', async ({ root }) => {
  const gates = migrations.find((migration) => migration.name === 'gates')!
  for (const table of ['approvals', 'questions', 'secret_grants', 'secrets']) await root.schema.dropTable(table)
  await root.schema.alterTable('platform_changes', (t) => {
    t.dropColumn('result')
  })
  try {
    const workspaceId = await seedWorkspace(root)
    const changes = ['pending', 'pending', 'rejected'].map((status) => ({
      id: id('apr_'),
      workspace_id: workspaceId,
      agent_id: id('agt_'),
      run_id: id('run_'),
      route_id: 'agents.create',
      params: '{}',
      body: '{"name":"x"}',
      status,
      created_at: at,
    }))
    await root('platform_changes').insert(changes)
    await root.transaction((tx) => gates.up(tx))
    const listed = await listApprovals(root, { workspaceId, limit: 5 })
    expect(listed.map((approval) => approval.id).toSorted()).toEqual(
      changes
        .slice(0, 2)
        .map((row) => row.id)
        .toSorted(),
    )
    expect(listed[0]).toMatchObject({ trigger: 'platform_change', status: 'open', assignedType: null, createdAt: at })
  } finally {
    if (!(await root.schema.hasTable('approvals'))) await root.transaction((tx) => gates.up(tx))
    // What later migrations add to the tables that are made anew: other tests use this database, too.
    await root.transaction(async (tx) => {
      await addToQuestions(tx)
      await questionWaits.up(tx)
      await secretsInSandboxes.up(tx)
    })
  }
})

const body = z.object({ slug: z.string(), how: z.enum(['do', 'refuse', 'break', 'crash']).default('do') })
const described = { summary: 'Make', body, reply: z.object({ slug: z.string() }), status: 201 } as const
const makes = {
  any: defineRoute({ ...described, id: 'made.any', endpoint: 'POST /made' }),
  admin: defineRoute({
    ...described,
    id: 'made.admin',
    endpoint: 'POST /admin',
    callers: { person: 'admin', agent: 'platform_change' },
  }),
  agent: defineRoute({
    ...described,
    id: 'made.agent',
    endpoint: 'POST /agent',
    callers: { person: { refused: 'restore_forbidden' }, agent: 'platform_change' },
  }),
}

/** Approves a write of this route, which makes a workspace, as a person of this role. */
async function approved(db: Db, change: { route: keyof typeof makes; body: z.input<typeof body>; role?: 'admin' }) {
  const workspaceId = await seedWorkspace(db)
  const after: string[] = []
  const make = async ({ db: tx, body: { slug, how } }: Asked) => {
    afterCommit(tx as Tx, () => after.push(slug))
    await seedWorkspace(tx, slug)
    if (how === 'refuse') fail('slug_taken')
    if (how === 'break') throw new ApiError('database_unavailable')
    if (how === 'crash') throw new Error('something broke')
    return { slug }
  }
  const routes = implement(makes, { any: make, admin: make, agent: make })
  const stored = {
    id: id('apr_'),
    workspaceId,
    agentRef: id('agt_'),
    runId: id('run_'),
    params: {},
    source: 'api' as const,
    createdAt: at,
  }
  await insertPlatformChange(db, { ...stored, routeId: makes[change.route].id, body: change.body })
  const person: PersonCaller = {
    kind: 'person',
    via: 'login_token',
    personUuid: realWorld.uuid(),
    personRef: id('usr_'),
    name: 'Somebody',
    email: 'somebody@example.com',
    workspaceId,
    role: change.role ?? 'member',
  }
  let failure: unknown = null
  const approve = async (tx: Tx) => {
    const { signal } = new AbortController()
    const owner = { group: workspaceId, member: 'somebody' }
    const room = new AnswerRoom(createBodyRooms(realWorld).answers, owner, () => signal)
    const request = { db: tx, world: realWorld, log: silentLog, requestId: 'req_1', signal, room }
    await approveChange(request, stored, { person, routes })
  }
  try {
    await inTransaction(db, approve)
  } catch (error) {
    failure = error
  }
  const { status, result } = (await findPlatformChange(db, workspaceId, stored.id))!
  const made = await db('workspaces').where({ slug: change.body.slug })
  return { status, result, made: made.length, after, failure }
}
interface Asked {
  db: Db
  body: z.infer<typeof body>
}

onBoth('an approved write is done once, and so is what waits for its commit', async ({ root }) => {
  const done = await approved(root, { route: 'any', body: { slug: 'done' } })
  const result = { status: 201, body: { slug: 'done' } }
  expect(done).toEqual({ status: 'approved', result, made: 1, after: ['done'], failure: null })
})

onBoth('a write that is refused leaves the refusal, and nothing of what it did or wanted to do', async ({ root }) => {
  const refused = await approved(root, { route: 'any', body: { slug: 'refused', how: 'refuse' } })
  expect(refused).toMatchObject({ status: 'approved', made: 0, after: [], failure: null })
  expect(refused.result).toMatchObject({ status: 409, body: { error: { code: 'slug_taken' } } })
})

onBoth('a write that fails otherwise is not approved, and waits on', async ({ root }) => {
  for (const how of ['break', 'crash'] as const) {
    const failed = await approved(root, { route: 'any', body: { slug: how, how } })
    expect(failed).toMatchObject({ status: 'pending', result: null, made: 0, after: [] })
    expect(failed.failure).not.toBeNull()
  }
})

onBoth('a write is done with the rights of the person who approves it', async ({ root }) => {
  const byMember = await approved(root, { route: 'admin', body: { slug: 'member' } })
  expect(byMember).toMatchObject({ status: 'approved', result: { status: 403 }, made: 0, after: [] })
  const byAdmin = await approved(root, { route: 'admin', body: { slug: 'admin' }, role: 'admin' })
  expect(byAdmin).toMatchObject({ status: 'approved', result: { status: 201 }, made: 1 })
  const forAgents = await approved(root, { route: 'agent', body: { slug: 'agent' }, role: 'admin' })
  expect(forAgents).toMatchObject({ result: { body: { error: { code: 'restore_forbidden' } } }, made: 0 })
})

onBoth(
  'a resolved write is news until a run has told of it, and again where that run never began',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agentId = id('agt_')
    const about = {
      workspaceId,
      agentRef: agentId,
      runId: id('run_'),
      routeId: 'agents.create',
      params: {},
      body: {},
      source: 'api' as const,
    }
    const asked = [0, 1, 2].map((nth) => ({ ...about, id: id('apr_'), createdAt: at + nth }))
    for (const change of asked) await insertPlatformChange(root, change)
    const [first, second, waiting] = asked.map((change) => change.id) as [ApprovalId, ApprovalId, ApprovalId]
    const idsOf = async (limit = 5) => (await listUntold(root, { agentRef: agentId, limit })).map((change) => change.id)
    expect(await idsOf()).toEqual([])
    await closePlatformChange(root, { id: second, status: 'expired', result: null })
    await closePlatformChange(root, { id: first, status: 'approved', result: { status: 201, body: {} } })
    expect(await idsOf()).toEqual([first, second])
    expect(await idsOf(1)).toEqual([first])
    expect(await listUntold(root, { agentRef: id('agt_'), limit: 5 })).toEqual([])
    await setTold(root, { runId: idFrom('run_a'), ids: [first] })
    await setTold(root, { runId: idFrom('run_b'), ids: [second] })
    await setTold(root, { runId: idFrom('run_b'), ids: [] })
    expect(await idsOf()).toEqual([])
    await clearTold(root, idFrom('run_b'))
    expect(await idsOf()).toEqual([second])
    expect((await findPlatformChange(root, workspaceId, waiting))?.toldRunId).toBeNull()
  },
)
