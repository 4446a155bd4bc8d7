import { expect } from 'vitest'
import type { Knex } from 'knex'
import { listReleased, insertBlob, ownBlob } from '../../control-plane/blobs/store.ts'
import { Blobs } from '../../control-plane/blobs/blobs.ts'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import { KeyedQueue } from '../../control-plane/process/keyed-queue.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { insertApproval } from '../../control-plane/resources/approvals/store.ts'
import { insertFileRelation } from '../../control-plane/resources/files/own/relation-store.ts'
import { insertFileRevision, listFileRevisions } from '../../control-plane/resources/files/revision-store.ts'
import { insertQuestion } from '../../control-plane/resources/questions/store.ts'
import { listRunCosts } from '../../control-plane/resources/runs/own/cost-store.ts'
import {
  insertRemovedRuns,
  listRemovedLogs,
  removeSomeOfLog,
} from '../../control-plane/resources/runs/removed-store.ts'
import { insertSandbox } from '../../control-plane/resources/sandboxes/store.ts'
import { insertActivity } from '../../control-plane/resources/tasks/activity-store.ts'
import { removeEndedRuns, type NewRun } from '../../control-plane/run/change-store.ts'
import { quietMs, removedLogsJob, retentionSweep, type Keep } from '../../control-plane/sweeps/retention.ts'
import {
  beginning,
  countDueHistory,
  countDueRuns,
  countDueVersions,
  forgetVersions,
  listOldHistory,
  listOldRuns,
  listOldVersions,
  listRunsStillOver,
  removeHistory,
  removeRunParts,
} from '../../control-plane/sweeps/retention-store.ts'
import type { AgentRow } from '../../control-plane/resources/agents/store.ts'
import { idFrom, type BlobId, type FileId, type RunId, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { endRun } from '../kit/end-run.ts'
import { revisionRow, seedFile } from './file-rows.ts'
import { approvalRow, questionRow } from './hold-rows.ts'
import { sandboxRow } from './sandbox-rows.ts'
import { at, seedAgent, seedRun, seedTask, seedWorkspace } from './seed.ts'
import { seedFlow } from './workflow-rows.ts'

const day = 86_400_000
/** A hundred days after the rows of the seed were made. */
const now = at + 100 * day
const month: Keep = { runsMs: 30 * day, historyMs: null, versionsMs: null }
const before = now - 30 * day

async function sweep(root: Knex, keep: Keep, { awakeSince = 0 } = {}): Promise<void> {
  const world = { ...realWorld, now: () => now }
  const queue = new KeyedQueue(silentLog, 'failed')
  queue.start()
  const place = { name: 'none', put: never, open: never, has: never, remove: never }
  const blobs = new Blobs({ root, place, world, log: silentLog })
  const one = retentionSweep({ keep, everyMs: 1, blobs })
  await one.run({ root, now, awakeSince: () => awakeSince, world, log: silentLog, queue })
  await queue.idle()
  await blobs.idle()
}
const never = (): never => {
  throw new Error('nothing is stored here')
}

async function ended(root: Knex, agent: AgentRow, changes: Partial<NewRun> = {}, endedAt = at + 1): Promise<NewRun> {
  const run = await seedRun(root, agent, changes)
  await endRun(root, { runId: run.id, fence: null, exitReason: 'completed', errorMessage: null, at: endedAt })
  return run
}

const idsOf = async (root: Knex, table: string, column = 'id'): Promise<string[]> =>
  (await root(table).pluck(column)) as string[]

onBoth('runs that ended long ago go with all that is theirs, and what they cost stays', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const task = await seedTask(root, workspaceId, { status: 'done', updatedAt: at + 2 })
  const old = await ended(root, agent, { taskId: task.id, taskKey: 'ABC-1', taskTitle: 'Shop' })
  const young = await ended(root, agent, { createdAt: at + 2 }, now - day)
  await root('runs').where({ id: old.id }).update({ cost_usd: '0.25', usage: '{"costUsd":"0.25","inputTokens":7}' })
  const body = Buffer.from('x')
  for (const id of [old.id, young.id]) {
    for (let seq = 1; seq <= 40; seq++)
      await root('run_frames').insert({
        run_id: id,
        fence: 1,
        first_seq: seq,
        last_seq: seq,
        sha256: 'x',
        body,
        received_at: at,
      })
    await root('run_evidence').insert({
      id: realWorld.uuid(),
      run_id: id,
      fence: 1,
      device: 'd',
      reason: 'r',
      body,
      received_at: at,
    })
    await root('run_change_sets').insert({ run_id: id, fence: 1, result: '{}', received_at: at })
    await insertSandbox(root, sandboxRow(workspaceId, { runId: id, state: 'ended', removedAt: at }))
  }
  const costs = () => listRunCosts(root, { workspaceId, since: 0, until: now, limit: 10 })
  const spent = await costs()
  expect(await countDueRuns(root, before)).toEqual([{ workspaceId, rows: 1, bytes: 0 }])

  await sweep(root, month)
  expect(await idsOf(root, 'runs')).toEqual([young.id])
  expect(await idsOf(root, 'removed_runs')).toEqual([old.id])
  for (const table of ['run_details', 'run_change_sets', 'sandboxes'])
    expect([table, await idsOf(root, table, 'run_id')]).toEqual([table, [young.id]])
  expect(await costs()).toEqual(spent)
  expect(await listRunCosts(root, { workspaceId, since: 0, until: now, limit: 0 })).toEqual(spent.slice(0, 1))
  const after = { before: spent[0]!, limit: 10 }
  expect(await listRunCosts(root, { workspaceId, since: 0, until: now, ...after })).toEqual(spent.slice(1))
  expect(await countDueRuns(root, before)).toEqual([])

  // The events go afterwards, in batches, also after a kill between two of them.
  expect(await removedLogsJob.list(root)).toEqual([old.id])
  expect(await removedLogsJob.runBatch(root, old.id)).toBe('more')
  expect((await idsOf(root, 'run_frames', 'run_id')).filter((id) => id === old.id)).toHaveLength(24)
  for (let end = 'more'; end === 'more';) end = await removedLogsJob.runBatch(root, old.id)
  expect(new Set(await idsOf(root, 'run_frames', 'run_id'))).toEqual(new Set([young.id]))
  expect(await idsOf(root, 'run_evidence', 'run_id')).toEqual([young.id])
  expect(await removedLogsJob.list(root)).toEqual([])
})

/** Runs that ended long ago, each with the reason why it stays. */
const stays: Record<string, (root: Knex, agent: AgentRow, workspaceId: WorkspaceUuid) => Promise<NewRun>> = {
  'its task is open': async (root, agent, workspaceId) =>
    ended(root, agent, { taskId: (await seedTask(root, workspaceId)).id }),
  'its task was closed a moment ago': async (root, agent, workspaceId) =>
    ended(root, agent, { taskId: (await seedTask(root, workspaceId, { status: 'done', updatedAt: now - 1 })).id }),
  'it works': (root, agent) => seedRun(root, agent),
  'it is the last of its conversation': (root, agent) => ended(root, agent, { conversationId: idFrom('cnv_1') }),
  'its workflow goes on': async (root, agent, workspaceId) => {
    const run = await ended(root, agent)
    await root('runs')
      .where({ id: run.id })
      .update({ workflow_run_id: (await seedFlow(root, workspaceId)).id })
    return run
  },
  'an approval of it is open': async (root, agent, workspaceId) => {
    const run = await ended(root, agent)
    await insertApproval(root, approvalRow(workspaceId, { runId: run.id }))
    return run
  },
  'a question of it is open': async (root, agent, workspaceId) => {
    const run = await ended(root, agent)
    await insertQuestion(root, questionRow(workspaceId, { runId: run.id }))
    return run
  },
  'a run that works goes on with it': async (root, agent) => {
    const run = await ended(root, agent)
    await seedRun(root, agent, { parentRunId: run.id, createdAt: now })
    return run
  },
  'a run that asks goes on with it': async (root, agent, workspaceId) => {
    const run = await ended(root, agent)
    const child = await ended(root, agent, { parentRunId: run.id })
    await insertQuestion(root, questionRow(workspaceId, { runId: child.id }))
    return run
  },
  'a wake waits to go on with it': async (root, agent, workspaceId) => {
    const run = await ended(root, agent)
    await root('wakes').insert({
      id: realWorld.uuid(),
      workspace_id: workspaceId,
      agent_id: agent.id,
      trigger_source: 'mention',
      prompt: 'p',
      allow_calls: '[]',
      state: 'waiting',
      continues_run_id: run.id,
      created_at: at,
    })
    return run
  },
  'its sandbox is there': async (root, agent, workspaceId) => {
    const run = await ended(root, agent)
    await insertSandbox(root, sandboxRow(workspaceId, { runId: run.id, state: 'linked' }))
    return run
  },
  'its volume waits for the next sandbox': async (root, agent, workspaceId) => {
    const run = await ended(root, agent)
    await insertSandbox(
      root,
      sandboxRow(workspaceId, { runId: run.id, state: 'ended', removedAt: at, leavesVolume: true }),
    )
    return run
  },
}

for (const [reason, make] of Object.entries(stays))
  onBoth(`a run stays for as long as ${reason}`, async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const { id } = await make(root, agent, workspaceId)
    const goes = await ended(root, agent)
    await sweep(root, month)
    const left = await idsOf(root, 'runs')
    expect([left.includes(id), left.includes(goes.id)]).toEqual([true, false])
  })

onBoth('runs that must stay hold up none behind them, and workspaces have turns', async ({ root }) => {
  const [large, small] = [await seedWorkspace(root), await seedWorkspace(root)]
  const agent = await seedAgent(root, large)
  const task = await seedTask(root, large)
  const kept: string[] = []
  for (let n = 0; n < 210; n++) kept.push((await ended(root, agent, { taskId: task.id, createdAt: at + n })).id)
  for (let n = 0; n < 5; n++) await ended(root, agent, { createdAt: at + 1_000 + n })
  await ended(root, await seedAgent(root, small))
  await sweep(root, month)
  expect((await idsOf(root, 'runs')).toSorted()).toEqual(kept.toSorted())
  expect(await listOldRuns(root, small, { before, after: beginning, limit: 5 })).toEqual([])
})

onBoth('nothing goes without a setting, nor in the first hour of a server or of its clock', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const { id } = await ended(root, await seedAgent(root, workspaceId))
  await sweep(root, { runsMs: null, historyMs: null, versionsMs: null })
  await sweep(root, month, { awakeSince: now - quietMs + 1 })
  expect(await idsOf(root, 'runs')).toEqual([id])
  await sweep(root, month, { awakeSince: now - quietMs })
  expect(await idsOf(root, 'runs')).toEqual([])
})

onBoth('two that remove at once remove each run once', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  for (let n = 0; n < 50; n++) await ended(root, agent, { createdAt: at + n })
  await Promise.all([sweep(root, month), sweep(root, month)])
  await sweep(root, month)
  expect(await idsOf(root, 'runs')).toEqual([])
  expect(new Set(await idsOf(root, 'removed_runs')).size).toBe(50)
})

onBoth('the parts of a removal ask again, and are repeatable', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const [over, live] = [await ended(root, agent), await seedRun(root, agent)]
  const ids: RunId[] = [over.id, live.id]
  expect(await listRunsStillOver(root, ids, before)).toEqual([over.id])
  await inTransaction(root, async (tx) => {
    await insertRemovedRuns(tx, ids, now)
    await removeRunParts(tx, [over.id])
    await removeEndedRuns(tx, ids)
  })
  expect(await idsOf(root, 'runs')).toEqual([live.id])
  expect(await listRemovedLogs(root, 5)).toEqual([over.id])
  expect(await removeSomeOfLog(root, over.id, 5)).toBe(false)
  expect(await listRemovedLogs(root, 5)).toEqual([])
})

onBoth('the history of closed tasks goes by its age, that of others stays', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const closed = await seedTask(root, workspaceId, { status: 'cancelled', updatedAt: at + 5 })
  const open = await seedTask(root, workspaceId, { status: 'in_review' })
  const archived = await seedTask(root, workspaceId, { archivedAt: at, updatedAt: at })
  const entry = (task: typeof closed, createdAt: number) => ({
    id: realWorld.uuid(),
    taskId: task.id,
    source: 'activity' as const,
    kind: 'status',
    actorType: 'system' as const,
    actorRef: null,
    data: {},
    createdAt,
  })
  const [gone, late, kept, also] = [entry(closed, at), entry(closed, now), entry(open, at), entry(archived, at)]
  await insertActivity(root, [gone, late, kept, also])
  expect(await countDueHistory(root, before)).toEqual([{ workspaceId, rows: 2, bytes: 0 }])
  const old = await listOldHistory(root, { before, after: { at: -1, seq: -1 }, limit: 9 })
  expect(old.map(({ id, isOver }) => [id, isOver])).toEqual([
    [gone.id, true],
    [kept.id, false],
    [also.id, true],
  ])
  // A task that was opened again since it was looked at keeps its history.
  const keptSeq = old.find(({ isOver }) => !isOver)!.seq
  expect(await removeHistory(root, [keptSeq], before)).toBe(0)
  await sweep(root, { runsMs: null, historyMs: 30 * day, versionsMs: null })
  expect((await idsOf(root, 'task_activity')).toSorted()).toEqual([kept.id, late.id].toSorted())
})

async function version(
  root: Knex,
  of: { fileId: FileId; workspaceId: WorkspaceUuid },
  number: number,
  createdAt: number,
) {
  const id = realWorld.id('blb_')
  await insertBlob(root, { id, workspaceId: of.workspaceId, createdAt })
  await ownBlob(root, id, createdAt)
  await insertFileRevision(root, { ...revisionRow(of.fileId, number), blobId: id, createdAt })
  await root('files').where({ id: of.fileId }).update({ revision_count: number, blob_id: id })
  return id
}

onBoth(
  'versions of files that were replaced long ago lose their bytes, but never what is current or was meant',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const { id: fileId, blobId } = await seedFile(root, workspaceId)
    const of = { fileId, workspaceId }
    await insertBlob(root, { id: blobId!, workspaceId, createdAt: at })
    await ownBlob(root, blobId!, at)
    const meant = await version(root, of, 2, at + 10)
    await insertFileRelation(root, {
      id: realWorld.uuid(),
      fileId,
      entityType: 'comment',
      entityId: 'msg_1',
      role: 'spec',
      createdAt: at + 15,
    })
    const third = await version(root, of, 3, at + 20)
    const fourth = await version(root, of, 4, now - day)
    const current = await version(root, of, 5, now - 1)
    const due = await listOldVersions(root, { before, after: beginning, limit: 9 })
    expect(due.map(({ blobId: blob, isOver }) => [blob, isOver])).toEqual([
      [blobId, true],
      [meant, false],
    ])
    expect(await countDueVersions(root, before)).toEqual([{ workspaceId, rows: 1, bytes: 11 }])
    await sweep(root, { runsMs: null, historyMs: null, versionsMs: 30 * day })
    const kept = await listFileRevisions(root, { fileId, below: null, limit: 9 })
    expect(kept.map(({ number, blobId: blob }) => [number, blob])).toEqual([
      [5, current],
      [4, fourth],
      [3, third],
      [2, meant],
      [1, null],
    ])
    expect((await listReleased(root, 9)).map(({ id }) => id)).toEqual([blobId as BlobId])
    // The same ones again, and one that is current, are left alone.
    const ids = kept.map(({ id }) => id)
    expect(await inTransaction(root, (tx) => forgetVersions(tx, ids, at))).toEqual([])
  },
)

onBoth(
  'a version that an earlier release replaced is known as replaced once it is replaced again',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const { id: fileId } = await seedFile(root, workspaceId)
    const of = { fileId, workspaceId }
    await version(root, of, 2, at + 10)
    await root('file_revisions').update({ replaced_at: null })
    await version(root, of, 3, at + 20)
    expect(await listOldVersions(root, { before, after: beginning, limit: 9 })).toHaveLength(2)
  },
)
