import { idFrom, type ActorRef, type AgentUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import { findAgentIdentity, listAgentIdentities } from '../../control-plane/resources/agents/identity-store.ts'
import {
  findHistory,
  insertHistory,
  listHistory,
  type HistoryRow,
} from '../../control-plane/resources/agents/own/history-store.ts'
import {
  findRevision,
  insertRevision,
  listRevisions,
  type RevisionRow,
} from '../../control-plane/resources/agents/own/revision-store.ts'
import { recordSpend, sumSpend } from '../../control-plane/resources/agents/spend-store.ts'
import {
  findAgent,
  findAgentByReference,
  insertAgent,
  listAgents,
  listAgentsByIds,
  listAgentsByReferences,
  listHandlesLike,
  listManagers,
  matchReference,
  recordLastRun,
  recordLastRuns,
  replaceAgent,
} from '../../control-plane/resources/agents/store.ts'
import { onBoth } from '../kit/database.ts'
import { agentRow, at, seedAgent, seedPerson, seedRun, seedWorkspace, wroteSecond } from './seed.ts'
import { endRun } from '../kit/end-run.ts'

onBoth(
  'an agent comes back as it was stored, and is replaced only from the version that was read',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId, {
      name: 'Größe 测试',
      description: '"quoted"',
      command: ['a', 'b c'],
      tools: { allow: ['Bash'], ask: [{ tool: 'Write', pattern: '*' }], deny: [] },
      capabilities: ['manage_runs'],
      maxTurns: 5,
      reasoningEffort: 'high',
      spentMonth: '2026-03',
      spentNanoUsd: 9_000_000_000_000,
      monthlyBudgetCents: 5_000_000_000,
      sessionsResetAt: at + 2,
      transferredAt: at + 3,
      wakeOnAssignment: false,
      deletedAt: at + 1,
    })
    expect(await findAgent(root, agent.id)).toEqual(agent)
    const { id, handle, name, visibility, ownerUuid, reportingToUuid, transferredAt } = agent
    const identity = { id, handle, name, visibility, ownerUuid, reportingToUuid, transferredAt }
    expect(await findAgentIdentity(root, agent.id)).toEqual(identity)
    expect(await listAgentIdentities(root, [agent.id, idFrom('agt_0000000000000000')])).toEqual([identity])
    expect(await findAgent(root, idFrom('agt_0000000000000000'))).toBeNull()
    const changed = { ...agent, name: 'New', command: null }
    // Meanwhile a run ended: what it left behind is not written over. That it ended is noted only if it did so then.
    const run = await seedRun(root, agent)
    await endRun(root, { runId: run.id, fence: null, exitReason: 'completed', errorMessage: null, at: at + 5 })
    await recordLastRun(root, { ...run, endedAt: at + 5 }, at + 7)
    await recordLastRun(root, { ...run, endedAt: at + 6 }, at + 8)
    await recordSpend(root, agent.id, { month: '2026-03', nanoUsd: 5 })
    await replaceAgent(root, agent, { ...changed, lastRunAt: null, spentNanoUsd: 0 })
    await expect(replaceAgent(root, agent, changed)).rejects.toMatchObject(wroteSecond)
    const ended = { lastRunAt: at + 7, spentNanoUsd: agent.spentNanoUsd + 5 }
    expect(await findAgent(root, agent.id)).toEqual({ ...changed, ...ended, version: 2 })
    await recordLastRuns(root, [agent.id, agent.id], at + 9)
    expect(await findAgent(root, agent.id)).toMatchObject({ lastRunAt: at + 9 })
  },
)

onBoth('a handle is one agent’s in its workspace', async ({ root }) => {
  const [here, there] = [await seedWorkspace(root), await seedWorkspace(root)]
  await seedAgent(root, here, { handle: 'twin' })
  await seedAgent(root, here, { handle: 'twin-2', deletedAt: at })
  await seedAgent(root, here, { handle: 'twinset' })
  await seedAgent(root, there, { handle: 'twin' })
  const taken = await insertAgent(root, agentRow(here, { handle: 'twin' })).catch(databaseTroubleOf)
  expect(taken).toBe('duplicate')
  expect((await listHandlesLike(root, here, 'twin')).toSorted()).toEqual(['twin', 'twin-2'])
})

onBoth('references: id and UUID before a live handle, a live name, then what is deleted', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const gone = await seedAgent(root, workspaceId, { handle: 'x-old', name: 'builder', deletedAt: at })
  const named = await seedAgent(root, workspaceId, { handle: 'other', name: 'builder', createdAt: at + 1 })
  const handled = await seedAgent(root, workspaceId, { handle: 'builder', name: 'Z', createdAt: at + 2 })
  const find = async (reference: string) => (await findAgentByReference(root, workspaceId, reference))?.id
  expect(await find(gone.id)).toBe(gone.id)
  expect(await find(named.uuid.toUpperCase())).toBe(named.id)
  expect(await find('builder')).toBe(handled.id)
  expect(await find('@builder')).toBe(handled.id)
  expect(await find('@Z')).toBeUndefined()
  expect(await find('Z')).toBe(handled.id)
  expect(await find('nobody')).toBeUndefined()
  expect(await findAgentByReference(root, await seedWorkspace(root), handled.id)).toBeNull()
  const known = await listAgentsByReferences(root, workspaceId, ['builder', gone.id])
  expect(known.map((agent) => agent.id)).toEqual([gone.id, named.id, handled.id])
  // Names are not unique, and the instructions of hundreds would not fit into memory.
  for (const agent of known) expect(agent).not.toHaveProperty('agentMd')
  expect(matchReference([gone, named], 'builder')?.id).toBe(named.id)
  expect(await listAgentsByReferences(root, workspaceId, [])).toEqual([])
  const byId = await listAgentsByIds(root, [named.id, handled.id, idFrom('x')])
  expect(new Set(byId.map((agent) => agent.id))).toEqual(new Set([named.id, handled.id]))
  expect(await listAgentsByIds(root, [])).toEqual([])
})

onBoth('lists filter, hide what is private, and page without gaps among equal times', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [me, you] = [await seedPerson(root, workspaceId), await seedPerson(root, workspaceId)]
  const open = await seedAgent(root, workspaceId, {
    role: 'dev',
    description: '100% sure. Über alles, Да',
    status: 'idle',
  })
  const mine = await seedAgent(root, workspaceId, { visibility: 'private', ownerUuid: me, name: 'UPPER_case' })
  const yours = await seedAgent(root, workspaceId, { visibility: 'private', ownerUuid: you })
  const deleted = await seedAgent(root, workspaceId, { deletedAt: at })
  const nobodys = await seedAgent(root, workspaceId, { visibility: 'private' })
  await seedAgent(root, await seedWorkspace(root))
  const ids = async (filter: Partial<Parameters<typeof listAgents>[1]>) =>
    new Set((await listAgents(root, { workspaceId, limit: 50, ...filter })).map((agent) => agent.id))
  expect(await ids({})).toEqual(new Set([open.id, mine.id, yours.id, nobodys.id]))
  expect((await listAgents(root, { workspaceId, limit: 1 }))[0]).not.toHaveProperty('agentMd')
  expect(await ids({ visibleTo: { personUuid: me, agentRef: null } })).toEqual(new Set([open.id, mine.id]))
  expect(await ids({ visibleTo: { personUuid: null, agentRef: yours.id } })).toEqual(new Set([open.id, yours.id]))
  expect(await ids({ withDeleted: true, statuses: [] })).toEqual(new Set([deleted.id]))
  expect(await ids({ withDeleted: true, statuses: ['idle'] })).toEqual(new Set([deleted.id, open.id]))
  expect(await ids({ role: 'dev' })).toEqual(new Set([open.id]))
  expect(await ids({ q: '0% S' })).toEqual(new Set([open.id]))
  // Capitals that a database may not know as such.
  for (const q of ['Über', 'Über ALLES', 'Да']) expect(await ids({ q })).toEqual(new Set([open.id]))
  expect(await ids({ q: 'r_c' })).toEqual(new Set([mine.id]))
  expect(await ids({ q: '\\' })).toEqual(new Set())
  const walked: string[] = []
  let before: { createdAt: number; id: string } | undefined
  for (;;) {
    const rows = await listAgents(root, { workspaceId, limit: 1, ...(before ? { before } : {}) })
    walked.push(...rows.slice(0, 1).map((agent) => agent.id))
    if (rows.length < 2) break
    before = rows[0]
  }
  expect(walked).toEqual([open.id, mine.id, yours.id, nobodys.id].toSorted().reverse())
})

onBoth('managers are walked upwards, and a loop ends', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const top = await seedAgent(root, workspaceId)
  const middle = await seedAgent(root, workspaceId, { reportingToUuid: top.uuid })
  expect((await listManagers(root, workspaceId, middle.uuid)).map((agent) => agent.id)).toEqual([middle.id, top.id])
  await replaceAgent(root, top, { ...top, reportingToUuid: middle.uuid })
  expect(await listManagers(root, workspaceId, middle.uuid)).toHaveLength(2)
  expect(await listManagers(root, workspaceId, null)).toEqual([])
  expect(await listManagers(root, workspaceId, idFrom<AgentUuid>(crypto.randomUUID()))).toEqual([])
})

onBoth('revisions are kept for each agent, newest first', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [agent, other] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
  const revision = (createdAt: number): RevisionRow => ({
    id: crypto.randomUUID(),
    agentRef: agent.id,
    beforeConfig: { runtime: { model: null } },
    afterConfig: { runtime: { model: 'm' } },
    changedKeys: ['runtime.model'],
    changeDescription: 'Changed runtime.model.',
    source: 'patch',
    changedByRef: idFrom<ActorRef>('usr_0000000000000000'),
    createdAt,
  })
  const [first, second] = [revision(at), revision(at + 1)]
  await insertRevision(root, first)
  await insertRevision(root, second)
  expect(await listRevisions(root, { agentRef: agent.id, limit: 10 })).toEqual([second, first])
  expect(await listRevisions(root, { agentRef: agent.id, limit: 10, before: second })).toEqual([first])
  expect(await findRevision(root, agent.id, first.id)).toEqual(first)
  expect(await findRevision(root, other.id, first.id)).toBeNull()
})

onBoth('costs are summed for a month, and a new month begins at nothing', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [agent, other] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId, { deletedAt: at })]
  await seedAgent(root, await seedWorkspace(root), { spentMonth: '2026-02', spentNanoUsd: 9 })
  const spend = async (month: string, nanoUsd: number) => {
    await recordSpend(root, agent.id, { month, nanoUsd })
    const { spentMonth, spentNanoUsd } = (await findAgent(root, agent.id))!
    return [spentMonth, spentNanoUsd]
  }
  expect(await spend('2026-01', 3)).toEqual(['2026-01', 3])
  expect(await spend('2026-01', 4)).toEqual(['2026-01', 7])
  expect(await spend('2026-02', 5_000_000_000_000)).toEqual(['2026-02', 5_000_000_000_000])
  // A clock that was set back adds to the later month.
  expect(await spend('2026-01', 1)).toEqual(['2026-02', 5_000_000_000_001])
  await recordSpend(root, other.id, { month: '2026-02', nanoUsd: 2 })
  expect(await sumSpend(root, workspaceId, '2026-02')).toBe(5_000_000_000_003)
  expect(await sumSpend(root, workspaceId, '2026-01')).toBe(0)
  await Promise.all(Array.from({ length: 5 }, () => recordSpend(root, other.id, { month: '2026-02', nanoUsd: 1 })))
  expect((await findAgent(root, other.id))?.spentNanoUsd).toBe(7)
})

onBoth('history is kept for each agent, newest first, and listed by kind', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [agent, other] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
  const entry = (createdAt: number, changes: Partial<HistoryRow> = {}): HistoryRow => ({
    id: crypto.randomUUID(),
    agentRef: agent.id,
    kind: 'config',
    changedKeys: ['runtime.model'],
    description: 'Changed runtime.model.',
    changedByRef: idFrom<ActorRef>('usr_0000000000000000'),
    reverts: null,
    createdAt,
    ...changes,
  })
  const first = entry(at)
  const second = entry(at + 1, { kind: 'sessions', changedKeys: [], changedByRef: null })
  const third = entry(at + 2, { reverts: first.id })
  for (const each of [first, second, third, entry(at, { agentRef: other.id })]) await insertHistory(root, each)
  expect(await listHistory(root, { agentRef: agent.id, limit: 10 })).toEqual([third, second, first])
  expect(await listHistory(root, { agentRef: agent.id, limit: 1, before: third })).toEqual([second, first])
  expect(await listHistory(root, { agentRef: agent.id, kinds: ['sessions'], limit: 10 })).toEqual([second])
  expect(await listHistory(root, { agentRef: agent.id, kinds: [], limit: 10 })).toEqual([])
  expect(await findHistory(root, third.id)).toEqual(third)
  expect(await findHistory(root, crypto.randomUUID())).toBeNull()
})
