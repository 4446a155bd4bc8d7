import {
  idFrom,
  type ActorRef,
  type AgentRef,
  type ConversationId,
  type RunId,
  type TaskId,
  type WorkspaceUuid,
} from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { expect } from 'vitest'
import {
  answerWakes,
  claimConversationWakes,
  claimWake,
  claimWakesOfRun,
  findRefusedWake,
  findWake,
  insertWakes,
  listWaitingWakes,
  listWakesToTake,
  removeOldWakes,
  type NewWake,
} from '../../control-plane/run/wakes/wake-store.ts'
import {
  listLiveOfConversation,
  listLiveOfTask,
  listLiveOfTasks,
} from '../../control-plane/resources/runs/live-store.ts'
import { loadOccupancy } from '../../control-plane/resources/runs/live-store.ts'
import { findLastWithSession, lockRun } from '../../control-plane/resources/runs/store.ts'
import {
  closeQuota,
  listQuotaWindows,
  listWorkspacesWithReset,
  removeQuotasBefore,
} from '../../control-plane/resources/quotas/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedWorkspace } from './seed.ts'
import { endRun } from '../kit/end-run.ts'
import { forgetHarnessSession } from '../../control-plane/run/change-store.ts'

const wakeOf = (workspaceId: WorkspaceUuid, changes: Partial<NewWake> = {}): NewWake => ({
  id: realWorld.id('wak_'),
  workspaceId,
  agentRef: idFrom('agt_a'),
  triggerSource: 'channel_message',
  requestedByRef: null,
  causedByUuid: null,
  wordsBy: [],
  prompt: 'Hello.',
  taskId: null,
  conversationId: null,
  parentRunId: null,
  allowCalls: [],
  key: null,
  createdAt: at,
  ...changes,
})
const isInserted = async (root: Knex, wake: NewWake) => (await insertWakes(root, [wake])).has(wake.id)
const idsOf = (rows: readonly { id: string }[]) => rows.map((row) => row.id)

onBoth('a wake waits until it is answered, and is removed a while later', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const call = { name: 'Bash', inputDigest: 'a'.repeat(64), approvalId: 'apr_1' }
  const wake = wakeOf(workspaceId, {
    allowCalls: [call],
    taskId: idFrom<TaskId>('tsk_1'),
    requestedByRef: idFrom<ActorRef>('usr_1'),
  })
  expect(await isInserted(root, wake)).toBe(true)
  const stored = { ...wake, seq: expect.any(Number) as number, state: 'waiting', answer: null, takenAt: null }
  expect(await claimWake(root, wake.id)).toEqual(stored)
  expect(await findWake(root, wake.id)).toEqual(stored)
  expect(await findWake(root, 'wak_0')).toBeNull()
  expect(idsOf(await listWaitingWakes(root, { limit: 5 }))).toEqual([wake.id])
  await answerWakes(root, { ids: [wake.id], answer: { kind: 'coalesced' }, at: at + 5 })
  expect(await claimWake(root, wake.id)).toBeNull()
  expect(await listWaitingWakes(root, { limit: 5 })).toEqual([])
  expect(await removeOldWakes(root, at + 5)).toBe(0)
  expect(await removeOldWakes(root, at + 6)).toBe(1)
})

onBoth('the last refusal of wakes is found by their keys', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const refused = { kind: 'not_dispatched', reason: 'agent_inactive', message: 'It is idle.' }
  const found = (...keys: string[]) => findRefusedWake(root, { workspaceId, keys })
  for (const key of ['one', 'two', 'waits'])
    await insertWakes(root, [wakeOf(workspaceId, { key, id: `wak_${workspaceId}${key}` })])
  const answered = (key: string, answer: unknown, later: number) =>
    answerWakes(root, { ids: [`wak_${workspaceId}${key}`], answer, at: at + later })
  await answered('one', refused, 1)
  expect(await found('one', 'two', 'waits')).toEqual(refused)
  await answered('two', { kind: 'queued', runId: 'run_1' }, 2)
  expect(await found('one', 'two')).toBeNull()
  expect(await found('one')).not.toBeNull()
  expect([await found('waits'), await found()]).toEqual([null, null])
})

onBoth('a second wake with the same key in the workspace is the same wake', async ({ root }) => {
  const [one, other] = [await seedWorkspace(root), await seedWorkspace(root)]
  expect(await isInserted(root, wakeOf(one, { key: 'k' }))).toBe(true)
  expect(await isInserted(root, wakeOf(one, { key: 'k' }))).toBe(false)
  expect(await isInserted(root, wakeOf(other, { key: 'k' }))).toBe(true)
  expect(await isInserted(root, wakeOf(one))).toBe(true)
  expect(await isInserted(root, wakeOf(one))).toBe(true)
  const many = [wakeOf(one, { key: 'k' }), wakeOf(one, { key: 'l' }), wakeOf(one, { key: 'l' }), wakeOf(one)]
  expect(await insertWakes(root, many)).toEqual(new Set([many[1]!.id, many[3]!.id]))
  expect(await insertWakes(root, [])).toEqual(new Set())
})

onBoth('what waits for an agent in a conversation is taken together, oldest first', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const conversationId = idFrom<ConversationId>('cnv_a')
  const second = wakeOf(workspaceId, { conversationId, createdAt: at + 1 })
  const first = wakeOf(workspaceId, { conversationId })
  const others = [
    wakeOf(workspaceId, { conversationId, agentRef: idFrom('agt_b') }),
    wakeOf(workspaceId, { conversationId, taskId: idFrom<TaskId>('tsk_1') }),
    wakeOf(workspaceId, { conversationId: idFrom<ConversationId>('cnv_b') }),
  ]
  await insertWakes(root, [second, first, ...others])
  const claimed = await claimConversationWakes(root, {
    agentRef: idFrom('agt_a'),
    conversationId,
    taskId: null,
    limit: 9,
  })
  expect(idsOf(claimed)).toEqual([first.id, second.id])
  const one = await claimConversationWakes(root, { agentRef: idFrom('agt_a'), conversationId, taskId: null, limit: 1 })
  expect(idsOf(one)).toEqual([first.id])
  const ofTask = await claimConversationWakes(root, {
    agentRef: idFrom('agt_a'),
    conversationId,
    taskId: idFrom<TaskId>('tsk_1'),
    limit: 9,
  })
  expect(idsOf(ofTask)).toEqual([others[1]!.id])
  const [oldest, ...rest] = await listWaitingWakes(root, { limit: 9 })
  // The prompts of hundreds would not fit into memory.
  expect(oldest).toMatchObject({ id: first.id, workspaceId, createdAt: at, seq: expect.any(Number) })
  expect(await listWakesToTake(root, [rest[0]!.id, first.id, 'wak_x'])).toEqual([oldest, rest[0]])
  expect(await listWaitingWakes(root, { limit: 9, after: oldest! })).toEqual(rest)
  expect(await listWaitingWakes(root, { limit: 9, after: rest.at(-1)! })).toEqual([])
  expect(await listWaitingWakes(root, { limit: 9, ended: { runId: idFrom('run_x'), conversationId } })).toHaveLength(4)
  await insertWakes(root, [wakeOf(workspaceId, { parentRunId: idFrom<RunId>('run_x') })])
  expect(await listWaitingWakes(root, { limit: 9, ended: { runId: idFrom('run_x'), conversationId } })).toHaveLength(5)
  expect(
    await listWaitingWakes(root, { limit: 9, ended: { runId: idFrom('run_x'), conversationId: null } }),
  ).toHaveLength(1)
  expect(await listWaitingWakes(root, { limit: 9, ended: { runId: idFrom('run_y'), conversationId: null } })).toEqual(
    [],
  )
})

onBoth('live runs of tasks and conversations, and the last session to go on with', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const [taskId, conversationId] = ['tsk_1', 'cnv_1']
  const end = (runId: string, sessionId: string | null) =>
    endRun(root, {
      runId: idFrom(runId),
      fence: null,
      exitReason: 'completed',
      errorMessage: null,
      at: at + 9,
      sessionId,
    })
  const first = await seedRun(root, agent, { taskId: idFrom<TaskId>(taskId), createdAt: at })
  const second = await seedRun(root, agent, { taskId: idFrom<TaskId>(taskId), createdAt: at + 1 })
  const talk = await seedRun(root, agent, { conversationId: idFrom<ConversationId>(conversationId), createdAt: at + 2 })
  expect(idsOf(await listLiveOfTask(root, idFrom(taskId)))).toEqual([first.id, second.id])
  expect(await listLiveOfTasks(root, [])).toEqual([])
  expect(
    idsOf(await listLiveOfConversation(root, { conversationId: idFrom(conversationId), agentRef: agent.id })),
  ).toEqual([talk.id])
  expect(
    await listLiveOfConversation(root, { conversationId: idFrom(conversationId), agentRef: idFrom('agt_other') }),
  ).toEqual([])

  const last = (of: { taskId?: TaskId; conversationId?: ConversationId }) =>
    findLastWithSession(root, { agentRef: agent.id, taskId: null, conversationId: null, ...of })
  expect(await last({ taskId: idFrom(taskId) })).toBeNull()
  await end(first.id, 'session-1')
  await end(second.id, null)
  await end(talk.id, 'session-2')
  expect((await last({ taskId: idFrom(taskId) }))?.id).toBe(first.id)
  expect((await last({ conversationId: idFrom(conversationId) }))?.id).toBe(talk.id)
  expect(await last({})).toBeNull()

  await forgetHarnessSession(root, { agentRef: idFrom('agt_other'), sessionId: 'session-1' })
  await forgetHarnessSession(root, { agentRef: agent.id, sessionId: 'session-3' })
  expect((await last({ taskId: idFrom(taskId) }))?.sessionId).toBe('session-1')
  await forgetHarnessSession(root, { agentRef: agent.id, sessionId: 'session-1' })
  expect(await last({ taskId: idFrom(taskId) })).toBeNull()
  expect((await last({ conversationId: idFrom(conversationId) }))?.sessionId).toBe('session-2')
})

onBoth('who was limited by a provider a moment ago', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const run = await seedRun(root, agent, { harness: 'claude' })
  const none = { fence: null, errorMessage: null }
  await endRun(root, { runId: run.id, exitReason: 'rate_limited', at: at + 5, ...none })
  const other = await seedRun(root, agent)
  await endRun(root, { runId: other.id, exitReason: 'completed', at: at + 5, ...none })
  // Of this one it is known when the limit is over; a window of its account says so.
  const known = await seedRun(root, agent, { harness: 'codex' })
  await endRun(root, { runId: known.id, exitReason: 'rate_limited', at: at + 5, ...none, limitResetsAt: at + 900 })
  const { workspaceId } = agent
  const close = (closedAt: number, resetsAt: number) =>
    closeQuota(root, { workspaceId, account: 'codex/dvc_a', closedAt, resetsAt })
  await close(at - 100, at - 50)
  // Nobody was kept from it meanwhile, so it is closed since now; a later limit of one that is closed tells only when it ends.
  await close(at, at + 850)
  await close(at + 5, at + 900)
  await close(at + 6, at + 800)
  const since = async (time: number) => {
    const found = await loadOccupancy(root, {
      workspaceId,
      pausedSince: time,
      resetSince: time,
      triedSince: at,
    })
    return [found.paused, found.windows]
  }
  const window = { account: 'codex/dvc_a', resetsAt: at + 900 }
  expect(await since(at)).toEqual([[{ agentRef: agent.id, harness: 'claude' }], [window]])
  expect(await since(at + 5)).toEqual([[], [window]])
  expect(await since(at + 900)).toEqual([[], []])
  expect(await listQuotaWindows(root, workspaceId, at + 899)).toEqual([{ workspaceId, ...window, closedAt: at }])
  expect(await listWorkspacesWithReset(root, at + 899, at + 900)).toEqual([workspaceId])
  expect(await listWorkspacesWithReset(root, at + 900, at + 1_000)).toEqual([])
  await removeQuotasBefore(root, at + 900)
  expect(await listQuotaWindows(root, workspaceId, 0)).toEqual([{ workspaceId, ...window, closedAt: at }])
  await removeQuotasBefore(root, at + 901)
  expect(await listQuotaWindows(root, workspaceId, 0)).toEqual([])
})

onBoth(
  'what waits to go on with one run is claimed together, in order, and found when a run of its agent ends',
  async ({ root }) => {
    const agent = await seedAgent(root, await seedWorkspace(root))
    const { workspaceId } = agent
    const [asked, next] = [await seedRun(root, agent), await seedRun(root, agent)]
    const of = { agentRef: agent.id, parentRunId: asked.id, taskId: idFrom<TaskId>('tsk_1') }
    const [first, second] = [wakeOf(workspaceId, of), wakeOf(workspaceId, of)]
    const others = [
      { taskId: null },
      { parentRunId: next.id },
      { conversationId: idFrom<ConversationId>('cnv_1') },
      { agentRef: idFrom<AgentRef>('agt_b') },
    ]
    for (const wake of [first, second, ...others.map((changes) => wakeOf(workspaceId, { ...of, ...changes }))])
      await insertWakes(root, [wake])
    expect(idsOf(await claimWakesOfRun(root, of))).toEqual([first.id, second.id])
    const ended = { runId: next.id, conversationId: null }
    expect(await listWaitingWakes(root, { limit: 9, ended })).toHaveLength(5)
    await answerWakes(root, { ids: [first.id], answer: {}, at })
    expect(idsOf(await claimWakesOfRun(root, of))).toEqual([second.id])
    expect((await lockRun(root, asked.id))?.id).toBe(asked.id)
    expect(await lockRun(root, idFrom('run_none'))).toBeNull()
  },
)
