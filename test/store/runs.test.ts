import {
  idFrom,
  type ActorRef,
  type ConversationId,
  type DeviceRef,
  type FolderRef,
  type RunId,
  type TaskId,
} from '../../shared/lib/ids.ts'
import { describe, expect } from 'vitest'
import type { Db } from '../../control-plane/db/open.ts'
import { findDevice, replaceDevice } from '../../control-plane/resources/devices/store.ts'
import {
  listLiveOfAgent,
  listLiveOfDevice,
  listRunning,
  loadOccupancy,
} from '../../control-plane/resources/runs/live-store.ts'
import { listPromptStarts } from '../../control-plane/resources/runs/details-store.ts'
import { listRuns, listRunsByIds, type RunFilter } from '../../control-plane/resources/runs/list-store.ts'
import { findRun, findRunInWorkspace } from '../../control-plane/resources/runs/store.ts'
import { insertParticipants } from '../../control-plane/resources/conversations/participant-store.ts'
import { insertConversation } from '../../control-plane/resources/conversations/store.ts'
import { insertProject } from '../../control-plane/resources/projects/store.ts'
import type { WorkViewer } from '../../control-plane/resources/projects/work-visibility.ts'
import { onBoth } from '../kit/database.ts'
import { at, projectRow, seedAgent, seedDevice, seedPerson, seedRun, seedTask, seedWorkspace } from './seed.ts'
import { claimRun, offerRuns, changeRun } from '../../control-plane/run/change-store.ts'
import { endRun } from '../kit/end-run.ts'

const device = idFrom<DeviceRef>('dvc_a')
const offer = async (db: Db, runId: RunId) =>
  (await offerRuns(db, { runIds: [runId], device, at, expiresAt: at + 10 })).length === 1
const claim = (db: Db, runId: string, fence = 1) =>
  claimRun(db, { runId: idFrom(runId), fence, device, at: at + 5 }).then((run) => run !== null)
const completed = { exitReason: 'completed', errorMessage: null, at: at + 9 } as const

async function seedAgentIn(db: Db) {
  return seedAgent(db, await seedWorkspace(db))
}

describe('one run', () => {
  onBoth('has the beginning of its prompt, if it has one', async ({ root }) => {
    const agent = await seedAgentIn(root)
    const [long, none] = [await seedRun(root, agent, {}, { prompt: '🚀two words' }), await seedRun(root, agent)]
    await seedRun(root, agent, {}, { prompt: 'not asked for' })
    expect(await listPromptStarts(root, [long.id, none.id], 4)).toEqual(new Map([[long.id, '🚀two']]))
    expect(await listPromptStarts(root, [], 4)).toEqual(new Map())
  })

  onBoth('is found in its workspace only, as it was stored', async ({ root }) => {
    const agent = await seedAgentIn(root)
    const run = await seedRun(root, agent, { modelId: 'm', folderId: idFrom<FolderRef>('fs_a') })
    expect(await findRun(root, run.id)).toMatchObject({
      ...run,
      status: 'queued',
      fence: 0,
      leaseState: 'none',
      device: null,
      endedAt: null,
      eventSeq: 0,
      usage: null,
      logVerified: null,
    })
    expect((await findRunInWorkspace(root, agent.workspaceId, run.id))?.id).toBe(run.id)
    expect(await findRunInWorkspace(root, await seedWorkspace(root), run.id)).toBeNull()
    expect(await findRun(root, idFrom('run_0000000000000000'))).toBeNull()
  })

  onBoth('ends once, for its lease or for the control plane', async ({ root }) => {
    const agent = await seedAgentIn(root)
    const { id } = await seedRun(root, agent)
    // Nobody holds a lease yet.
    expect(await endRun(root, { runId: id, fence: 0, ...completed })).toBe(false)
    await offer(root, id)
    await claim(root, id)
    expect(await endRun(root, { runId: id, fence: 2, ...completed })).toBe(false)
    const totals = { usage: { costUsd: '1.5', inputTokens: 3 }, toolCallCount: 4, sessionId: 's', gapBytes: 7 }
    expect(await endRun(root, { runId: id, fence: 1, ...completed, ...totals, logVerified: true })).toBe(true)
    expect(await endRun(root, { runId: id, fence: 1, ...completed })).toBe(false)
    expect(await endRun(root, { runId: id, fence: null, ...completed })).toBe(false)
    expect(await findRun(root, id)).toMatchObject({
      status: 'succeeded',
      exitReason: 'completed',
      leaseState: 'none',
      endedAt: at + 9,
      costUsd: '1.5',
      ...totals,
      logVerified: true,
    })
    expect(await offer(root, id)).toBe(false)
    const waiting = await seedRun(root, agent)
    const ending = { exitReason: 'gate_timeout', errorMessage: 'late', at } as const
    expect(await endRun(root, { runId: waiting.id, fence: null, ...ending, logVerified: null })).toBe(true)
    expect(await findRun(root, waiting.id)).toMatchObject({ status: 'failed', errorCode: 'gate_timeout', usage: null })
  })

  onBoth('keeps its first cancel, its successor and since when nothing gates it', async ({ root }) => {
    const agent = await seedAgentIn(root)
    const { id } = await seedRun(root, agent)
    await changeRun(root, id, { type: 'gate_opened', at: at + 2 })
    expect((await findRun(root, id))?.ungatedSince).toBe(at + 2)
    await offer(root, id)
    // A device that never answers offers must not hold the run for ever.
    expect((await findRun(root, id))?.ungatedSince).toBe(at + 2)
    await claim(root, id)
    await changeRun(root, id, { type: 'gate_opened', at: at + 3 })
    expect((await findRun(root, id))?.ungatedSince).toBeNull()
    const cancel = { type: 'cancel_asked', exitReason: 'interrupted', at: at + 1 } as const
    expect(await changeRun(root, id, { ...cancel, reason: 'first' })).toBe(true)
    expect(await changeRun(root, id, { ...cancel, reason: 'second' })).toBe(false)
    const next = await seedRun(root, agent, { parentRunId: id })
    const followed = { type: 'followed', successorRunId: next.id } as const
    expect(await changeRun(root, id, followed)).toBe(false)
    await endRun(root, { runId: id, fence: 1, ...completed })
    expect(await changeRun(root, id, followed)).toBe(true)
    await changeRun(root, id, { type: 'message_added', sentence: 'It failed.' })
    await changeRun(root, id, { type: 'message_added', sentence: 'Another goes on.' })
    expect(await findRun(root, id)).toMatchObject({
      cancelReason: 'first',
      cancelRequestedAt: at + 1,
      successorRunId: next.id,
      errorMessage: 'It failed. Another goes on.',
    })
  })
})

describe('lists', () => {
  onBoth('of live runs leave out what has ended', async ({ root }) => {
    const agent = await seedAgentIn(root)
    const queued = await seedRun(root, agent, { createdAt: at })
    const offered = await seedRun(root, agent, { createdAt: at + 1 })
    const running = await seedRun(root, agent, { createdAt: at + 2 })
    const ended = await seedRun(root, agent, { createdAt: at + 3 })
    for (const run of [offered, running, ended]) await offer(root, run.id)
    for (const run of [running, ended]) await claim(root, run.id)
    await endRun(root, { runId: ended.id, fence: 1, ...completed })
    const ids = (runs: { id: string }[]) => runs.map((run) => run.id)
    const { workspaceId } = agent
    expect(ids(await listRunning(root, { after: null, limit: 10 }))).toEqual([running.id])
    expect(ids(await listLiveOfAgent(root, agent.id))).toEqual([queued.id, offered.id, running.id])
    expect(new Set(ids(await listLiveOfDevice(root, device)))).toEqual(new Set([offered.id, running.id]))
    const of = { workspaceId: agent.workspaceId, pausedSince: at, resetSince: at, triedSince: at }
    expect((await loadOccupancy(root, of)).live).toEqual([])
    const owner = { workspaceId, personUuid: await seedPerson(root, workspaceId) }
    const { deviceUuid: deviceId } = await seedDevice(root, owner, { publicId: device })
    await seedDevice(root, owner, { publicId: idFrom('dvc_b') })
    expect(await loadOccupancy(root, of)).toEqual({
      live: [{ device, harness: running.harness, count: 2 }],
      paused: [],
      circuits: [],
      windows: [],
    })
    await replaceDevice(root, (await findDevice(root, deviceId))!, { removedAt: at, at })
    expect((await loadOccupancy(root, of)).live).toEqual([])
  })

  onBoth('filter and hide runs of private agents', async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const me = await seedPerson(root, workspaceId)
    const open = await seedAgent(root, workspaceId)
    const mine = await seedAgent(root, workspaceId, { visibility: 'private', ownerUuid: me })
    const secret = await seedAgent(root, workspaceId, { visibility: 'private' })
    const a = await seedRun(root, open, { taskId: idFrom<TaskId>('tsk_1'), taskKey: 'ABC-1', createdAt: at + 1 })
    const b = await seedRun(root, mine, { triggerSource: 'cron', createdAt: at + 2 })
    const c = await seedRun(root, secret, { createdAt: at + 3 })
    const orphan = await seedRun(root, { ...open, id: idFrom('agt_gone') }, { createdAt: at + 4 })
    await endRun(root, { runId: b.id, fence: null, ...completed })
    await seedRun(root, await seedAgentIn(root))
    const ids = async (filter: Partial<RunFilter>) =>
      (await listRuns(root, { workspaceId, limit: 50, ...filter })).map((run) => run.id)
    expect(await ids({})).toEqual([orphan.id, c.id, b.id, a.id])
    expect(await ids({ visibleTo: { personUuid: me, personRef: idFrom('usr_me') } })).toEqual([orphan.id, b.id, a.id])
    expect(await ids({ visibleTo: { agentRef: secret.id, agentUuid: secret.uuid } })).toEqual([orphan.id, c.id, a.id])
    expect(await ids({ agentRef: open.id })).toEqual([a.id])
    expect(await ids({ taskId: idFrom('tsk_1') })).toEqual([a.id])
    expect(await ids({ statuses: ['succeeded', 'failed'] })).toEqual([b.id])
    expect(await ids({ triggerSources: ['cron', 'webhook'] })).toEqual([b.id])
    expect(await ids({ since: at + 2, until: at + 4 })).toEqual([c.id, b.id])
    const named = await listRunsByIds(root, workspaceId, [a.id, c.id, idFrom('x')], {
      personUuid: me,
      personRef: idFrom('usr_me'),
    })
    expect(named.map((run) => run.id)).toEqual([a.id])
    expect(await listRunsByIds(root, workspaceId, [a.id, c.id])).toHaveLength(2)
    expect(await listRunsByIds(root, workspaceId, [])).toEqual([])
  })

  onBoth('hide runs on tasks of private projects, and in dms, from who sees neither', async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const [leader, keeper, other] = [
      await seedPerson(root, workspaceId),
      await seedPerson(root, workspaceId),
      await seedPerson(root, workspaceId),
    ]
    const agent = await seedAgent(root, workspaceId, { ownerUuid: keeper })
    const lead = await seedAgent(root, workspaceId)
    const [assigned, stray] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
    const project = projectRow(workspaceId, {
      visibility: 'private',
      ownerUuid: leader,
      leadAgentUuid: lead.uuid,
    })
    const ownerless = projectRow(workspaceId, { visibility: 'private' })
    for (const row of [project, ownerless]) await insertProject(root, row)
    const hidden = await seedTask(root, workspaceId, { projectId: project.id, assigneeAgentRef: assigned.id })
    const forgotten = await seedTask(root, workspaceId, { projectId: ownerless.id })
    const dm = {
      id: idFrom<ConversationId>('cnv_dm'),
      workspaceId,
      kind: 'dm' as const,
      title: null,
      taskId: null,
      dmUser: 'usr_leader',
    }
    const made = {
      dmAgent: agent.id,
      createdByType: 'user' as const,
      createdByRef: idFrom<ActorRef>('usr_leader'),
      createdAt: at,
    }
    await insertConversation(root, { ...dm, ...made })
    await insertParticipants(root, dm.id, { participants: [{ type: 'user', id: idFrom('usr_leader') }], at })
    const runs = {
      open: await seedRun(root, agent, { createdAt: at + 1 }),
      task: await seedRun(root, agent, { createdAt: at + 2, taskId: hidden.id }),
      ownerless: await seedRun(root, agent, { createdAt: at + 3, taskId: forgotten.id }),
      dm: await seedRun(root, agent, { createdAt: at + 4, conversationId: dm.id }),
    }
    const seenBy = async (visibleTo: WorkViewer) => {
      const ids = (await listRuns(root, { workspaceId, limit: 50, visibleTo })).map(({ id }) => id)
      const named = await listRunsByIds(
        root,
        workspaceId,
        Object.values(runs).map(({ id }) => id),
        visibleTo,
      )
      expect(named.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
      return Object.entries(runs).flatMap(([name, { id }]) => (ids.includes(id) ? [name] : []))
    }
    const asAgent = ({ id: agentId, uuid: agentUuid }: { id: string; uuid: string }) =>
      seenBy({ agentRef: idFrom(agentId), agentUuid: idFrom(agentUuid) })
    expect(await seenBy({ personUuid: leader, personRef: idFrom('usr_leader') })).toEqual(['open', 'task', 'dm'])
    expect(await seenBy({ personUuid: keeper, personRef: idFrom('usr_keeper') })).toEqual(Object.keys(runs))
    expect(await seenBy({ personUuid: other, personRef: idFrom('usr_other') })).toEqual(['open'])
    expect(await asAgent(agent)).toEqual(Object.keys(runs))
    expect(await asAgent(lead)).toEqual(['open', 'task'])
    expect(await asAgent(assigned)).toEqual(['open', 'task'])
    expect(await asAgent(stray)).toEqual(['open'])
  })

  onBoth('page through runs of one moment without gaps or repeats', async ({ root }) => {
    const agent = await seedAgentIn(root)
    const all: string[] = []
    for (let n = 0; n < 7; n++) all.push((await seedRun(root, agent)).id)
    const seen: string[] = []
    let before: { createdAt: number; id: string } | undefined
    for (;;) {
      const page = await listRuns(root, { workspaceId: agent.workspaceId, limit: 3, ...(before ? { before } : {}) })
      seen.push(...page.slice(0, 3).map((run) => run.id))
      if (page.length <= 3) break
      before = page[2]
    }
    expect(seen).toEqual(all.toSorted().reverse())
  })
})
