import { idFrom, type ActorRef, type PersonUuid, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  countCalls,
  endCall,
  endCalls,
  insertCall,
  listCalls,
  listCallsOf,
  listWaitingRuns,
  recordChecks,
  recordHanded,
  recordSent,
  resetAttempts,
} from '../../control-plane/resources/workflows/call-store.ts'
import {
  countRunsByWorkflow,
  findOpenRunOnTask,
  findRunToAdvance,
  findWorkflowRunInWorkspace,
  insertProgram,
  listCancelled,
  listOpenWorkflowRunsCausedBy,
  listRunningWorkflowRuns,
  listLastRuns,
  listUnreplayed,
  listWorkflowRuns,
  listWorkflowRunsByIds,
  seesWorkflowRun,
  listUnchanged,
  lockWorkflowRun,
  replaceWorkflowRun,
  takeWorkflowRun,
} from '../../control-plane/resources/workflows/run-store.ts'
import {
  listNearestBranches,
  listOpenChecks,
  listWaitedBranches,
} from '../../control-plane/resources/workflows/checks-store.ts'
import {
  endStepOfRun,
  listLeftSteps,
  listEndedSteps,
  listRunsOfCalls,
  findLastRunOfSteps,
  listOpenRunsOfSteps,
  listRunsOfSteps,
  listWakesOfSteps,
} from '../../control-plane/resources/workflows/step-store.ts'
import {
  countWorkflows,
  findWorkflow,
  insertWorkflow,
  listWorkflows,
  lockWorkflow,
  replaceWorkflow,
} from '../../control-plane/resources/workflows/store.ts'
import { findWorkspace, replaceWorkspace } from '../../control-plane/resources/workspaces/store.ts'
import { insertApproval } from '../../control-plane/resources/approvals/store.ts'
import { insertQuestion, listOpenQuestions } from '../../control-plane/resources/questions/store.ts'
import { insertWakes } from '../../control-plane/run/wakes/wake-store.ts'
import { dialectOfDb } from '../../control-plane/db/dialect.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { approvalRow, questionRow } from './hold-rows.ts'
import { insertGrant, insertProject } from '../../control-plane/resources/projects/store.ts'
import type { WorkViewer } from '../../control-plane/resources/projects/work-visibility.ts'
import { insertFrames } from '../../control-plane/resources/runs/log-store.ts'
import { at, projectRow, seedAgent, seedPerson, seedRun, seedTask, seedWorkspace } from './seed.ts'
import { seedCall, seedFlow, workflowRow } from './workflow-rows.ts'
import { endRun } from '../kit/end-run.ts'

onBoth('a workflow is found by its name, changed by one at a time, and listed by name', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const row = workflowRow(workspaceId)
  await insertWorkflow(root, row)
  await insertWorkflow(root, workflowRow(workspaceId, { name: 'build' }))
  expect(await findWorkflow(root, workspaceId, 'review')).toEqual(row)
  expect(await findWorkflow(root, await seedWorkspace(root), 'review')).toBeNull()
  await expect(insertWorkflow(root, workflowRow(workspaceId))).rejects.toThrow(/unique|UNIQUE/)
  await replaceWorkflow(root, row, { ...row, source: 'return 2', version: 2 })
  expect(await root.transaction((tx) => lockWorkflow(tx, workspaceId, 'review'))).toMatchObject({
    source: 'return 2',
    version: 2,
    revision: 2,
  })
  await expect(replaceWorkflow(root, row, { ...row, title: 'x' })).rejects.toMatchObject({ code: 'transient_conflict' })
  const names = async (afterName?: string) =>
    (await listWorkflows(root, { workspaceId, limit: 1, ...(afterName !== undefined && { afterName }) })).map(
      ({ name }) => name,
    )
  expect([await names(), await names('build'), await names('review')]).toEqual([['build', 'review'], ['review'], []])
  await insertWorkflow(root, workflowRow(workspaceId, { name: 'old', retiredAt: at }))
  expect(await countWorkflows(root, workspaceId)).toBe(2)
})

onBoth('the workflow about a task that is not over is found, the newest first', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const task = await seedTask(root, workspaceId)
  await seedFlow(root, workspaceId)
  const found = async () => (await findOpenRunOnTask(root, task))?.id ?? null
  expect(await found()).toBeNull()
  const first = await seedFlow(root, workspaceId, { taskId: task.id })
  const second = await seedFlow(root, workspaceId, { taskId: task.id, createdAt: at + 1 })
  await seedFlow(root, workspaceId, { taskId: task.id, createdAt: at + 2, status: 'completed', completedAt: at + 3 })
  expect(await found()).toBe(second.id)
  await replaceWorkflowRun(root, second, { status: 'failed', completedAt: at + 4 })
  expect(await found()).toBe(first.id)
})

onBoth('the order of names is that of their characters, whatever language the database sorts by', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const names = ['a1', 'a_b', 'ab', 'b']
  for (const name of names) await insertWorkflow(root, workflowRow(workspaceId, { name }))
  const tx = await root.transaction()
  if (dialectOfDb(root) === 'postgres')
    await tx.raw('alter table workflows alter column name type text collate "und-x-icu"')
  const page = (afterName: string) => listWorkflows(tx, { workspaceId, limit: 1, afterName })
  const read: unknown[] = []
  for (const name of ['', ...names]) read.push((await page(name))[0]?.name)
  await tx.rollback()
  expect(read).toEqual([...names, undefined])
})

onBoth('a run of a workflow on a hidden task is seen by who started it, and by who sees the task', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const userId = await seedPerson(root, workspaceId)
  const agent = await seedAgent(root, workspaceId)
  const project = projectRow(workspaceId, { visibility: 'private', ownerUuid: userId })
  await insertProject(root, project)
  const { id: taskId } = await seedTask(root, workspaceId, { projectId: project.id })
  const open = await seedFlow(root, workspaceId, { createdAt: at })
  const hidden = await seedFlow(root, workspaceId, {
    taskId,
    startedByRef: idFrom<ActorRef>('usr_starter'),
    createdAt: at + 1,
  })
  const seenBy = async (visibleTo: WorkViewer) => {
    const rows = await listWorkflowRuns(root, { workspaceId, visibleTo, limit: 10 })
    const listed = rows.map(({ id }) => id)
    for (const { id } of [open, hidden])
      expect([id, await seesWorkflowRun(root, visibleTo, id)]).toEqual([id, listed.includes(id)])
    return listed
  }
  const self = { agentRef: agent.id, agentUuid: agent.uuid }
  expect(await seenBy({ personUuid: userId, personRef: idFrom('usr_owner') })).toEqual([hidden.id, open.id])
  expect(await seenBy({ personUuid: idFrom('other'), personRef: idFrom('usr_starter') })).toEqual([hidden.id, open.id])
  expect(await seenBy({ personUuid: idFrom('other'), personRef: idFrom('usr_other') })).toEqual([open.id])
  expect(await seenBy(self)).toEqual([open.id])
  await insertGrant(root, { projectId: project.id, agentRef: agent.id, createdAt: at })
  expect(await seenBy(self)).toEqual([hidden.id, open.id])
})

onBoth('runs of workflows are listed newest first and counted; of two writers one wins', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const first = await seedFlow(root, workspaceId)
  const second = await seedFlow(root, workspaceId, { createdAt: at + 1, status: 'failed', replayedAt: at })
  const other = await seedFlow(root, workspaceId, { workflow: 'build', createdAt: at + 2 })
  await seedFlow(root, await seedWorkspace(root), { replayedAt: at })
  const ids = async (filter: Partial<Parameters<typeof listWorkflowRuns>[1]> = {}) =>
    (await listWorkflowRuns(root, { workspaceId, limit: 10, ...filter })).map(({ id }) => id)
  expect(await ids()).toEqual([other.id, second.id, first.id])
  expect(await ids({ workflow: 'review' })).toEqual([second.id, first.id])
  expect(await ids({ status: 'failed' })).toEqual([second.id])
  expect(await ids({ before: { createdAt: at + 1, id: second.id } })).toEqual([first.id])
  expect(await countRunsByWorkflow(root, workspaceId, ['review', 'build', 'none'])).toEqual(
    new Map([
      ['review', 2],
      ['build', 1],
    ]),
  )
  const last = await listLastRuns(root, workspaceId, ['review', 'build', 'none'])
  expect([last.size, last.get('build')?.id, last.get('review')?.id]).toEqual([2, other.id, second.id])
  expect((await listUnreplayed(root, 10)).map(({ id }) => id)).toEqual([first.id, other.id])
  expect(await listRunningWorkflowRuns(root, workspaceId, 10)).toEqual([first.id, other.id])
  expect(await listRunningWorkflowRuns(root, workspaceId, 1)).toEqual([first.id])
  expect(await listWorkflowRunsByIds(root, [first.id])).toEqual([first])
  expect(await findWorkflowRunInWorkspace(root, workspaceId, first.id)).toEqual(first)
  expect(await findWorkflowRunInWorkspace(root, idFrom(second.workspaceId.replace(/./, 'x')), first.id)).toBeNull()
  const stall = { message: 'm', seq: 1, recorded: { kind: 'agent', args: '{}' }, made: null }
  await replaceWorkflowRun(root, first, { stall, replayedAt: at + 5 })
  expect(await root.transaction((tx) => lockWorkflowRun(tx, first.id))).toMatchObject({ stall, version: 2 })
  await expect(replaceWorkflowRun(root, first, { summary: 'x' })).rejects.toMatchObject({ code: 'transient_conflict' })
  const take = (changes: { summary: string }) => root.transaction((tx) => takeWorkflowRun(tx, first, changes))
  expect(await take({ summary: 'x' })).toBe(false)
  expect(await root.transaction((tx) => takeWorkflowRun(tx, { ...first, version: 2 }, { summary: 'y' }))).toBe(true)
  expect(await findWorkflowRunInWorkspace(root, workspaceId, first.id)).toMatchObject({ summary: 'y', version: 3 })
})

onBoth('runs of one program share its text, and are read with it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  await insertProgram(root, { workspaceId, digest: 'd', source: 'return 1' })
  await insertProgram(root, { workspaceId, digest: 'd', source: 'never' })
  const [run, other] = [await seedFlow(root, workspaceId), await seedFlow(root, workspaceId, { programDigest: 'e' })]
  const workspace = { status: 'active', agentsPaused: false, isBillingLocked: false }
  expect(await findRunToAdvance(root, run.id)).toEqual({ run, source: 'return 1', workspace })
  expect(await findRunToAdvance(root, other.id)).toEqual({ run: other, source: null, workspace })
  expect(await findRunToAdvance(root, idFrom('flr_none'))).toBeNull()
})

onBoth('a call ends once, is handed over in an order, and waits in between', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const flow = await seedFlow(root, workspaceId)
  await seedCall(root, flow.id, 0)
  await seedCall(root, flow.id, 1)
  const waiting = async (endedBefore = at + 100) =>
    (await listWaitingRuns(root, { endedBefore, limit: 10 })).filter(({ id }) => id === flow.id)
  expect(await waiting()).toEqual([])
  expect(await endCall(root, { workflowRunId: flow.id, seq: 1 }, { at: at + 10 })).toBe(true)
  expect(await endCall(root, { workflowRunId: flow.id, seq: 1 }, { at: at + 11 })).toBe(false)
  expect(await endCall(root, { workflowRunId: flow.id, seq: 0 }, { at: at + 20, isValue: false, result: '1' })).toBe(
    true,
  )
  expect(await waiting()).toEqual([{ id: flow.id, workspaceId, endedAt: at + 10 }])
  expect(await waiting(at + 9)).toEqual([])
  await recordSent(root, { workflowRunId: flow.id, seq: 1 }, { at: at + 30, attempts: 2 })
  await recordHanded(root, { workflowRunId: flow.id, seq: 0 }, { isValue: false, result: '1', order: 0, at: at + 40 })
  const calls = await listCalls(root, flow.id)
  expect(calls).toMatchObject([
    { seq: 0, endedAt: at + 20, isValue: false, result: '1', handedOrder: 0, resumedAt: at + 40, advancedAt: at + 40 },
    { seq: 1, endedAt: at + 10, isValue: null, result: null, resumeAttempts: 2, resumedAt: at + 30, advancedAt: null },
  ])
  expect(await listCallsOf(root, [flow.id])).toEqual(calls)
  expect(await countCalls(root, [flow.id, idFrom('flr_none')])).toEqual(new Map([[flow.id, 2]]))
  expect(await listCalls(root, flow.id, { handedBefore: 1 })).toEqual(calls.slice(1))
  await resetAttempts(root, flow.id)
  expect(await listCalls(root, flow.id)).toMatchObject([
    { seq: 0, resumedAt: at + 40 },
    { seq: 1, resumedAt: null, resumeAttempts: 0 },
  ])
})

onBoth('a step is left when its run has ended and nothing goes on with it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const flow = await seedFlow(root, workspaceId)
  await seedCall(root, flow.id, 0, agent.id)
  const left = async () => (await listLeftSteps(root, 100)).filter((step) => step.workflowRunId === flow.id)
  const run = await seedRun(root, agent, { step: { workflowRunId: flow.id, call: 0 } })
  expect(await left()).toEqual([])
  const ended = { fence: null, exitReason: 'approval_requested', errorMessage: null } as const
  await endRun(root, { ...ended, runId: run.id, at: at + 5 })
  expect(await left()).toEqual([{ workflowRunId: flow.id, seq: 0, workspaceId }])
  const wake = realWorld.id('wak_')
  await insertWakes(root, [
    {
      id: wake,
      workspaceId,
      agentRef: agent.id,
      triggerSource: 'approval_resolved',
      requestedByRef: null,
      causedByUuid: null,
      wordsBy: [],
      prompt: 'x',
      taskId: null,
      conversationId: null,
      parentRunId: run.id,
      allowCalls: [],
      key: null,
      createdAt: at,
    },
  ])
  const step = { id: run.id, workflowRunId: flow.id, workflowCall: 0 }
  const endedAt = async () => (await listCalls(root, flow.id))[0]?.endedAt
  await endStepOfRun(root, step, at + 6)
  expect([await endedAt(), await left()]).toEqual([null, []])
  expect([await listWakesOfSteps(root, flow.id), await listWakesOfSteps(root, idFrom('flr_none'))]).toEqual([
    [wake],
    [],
  ])
  expect((await listRunsOfSteps(root, [flow.id])).map(({ id }) => id)).toEqual([run.id])
  const self = { agentRef: agent.id, agentUuid: agent.uuid }
  expect((await listRunsOfSteps(root, [flow.id], self)).map(({ id }) => id)).toEqual([run.id])
  const open = async () => (await listOpenRunsOfSteps(root, flow.id)).map(({ id }) => id)
  expect(await open()).toEqual([])
  await insertApproval(root, approvalRow(workspaceId, { runId: run.id }))
  expect(await open()).toEqual([run.id])
  const later = await seedRun(root, agent, { step: { workflowRunId: flow.id, call: 5 }, createdAt: at + 50 })
  expect([await open(), (await findLastRunOfSteps(root, flow.id))?.id]).toEqual([[run.id, later.id], later.id])
  expect(await findLastRunOfSteps(root, idFrom('flr_none'))).toBeNull()
  await endRun(root, { ...ended, runId: later.id, at: at + 60 })
  expect(await open()).toEqual([run.id])
  await root('wakes').where({ id: wake }).delete()
  await endStepOfRun(root, step, at + 70)
  expect(await endedAt()).toBeNull()
  await root('approvals').where({ run_id: run.id }).update({ status: 'approved' })
  await endStepOfRun(root, { ...step, workflowCall: 9 }, at + 70)
  expect(await endedAt()).toBeNull()
  expect(await listEndedSteps(root, flow.id)).toEqual([])
  await endStepOfRun(root, step, at + 70)
  await endStepOfRun(root, step, at + 71)
  expect(await endedAt()).toBe(at + 70)
  expect(await listWakesOfSteps(root, flow.id)).toEqual([])
  const ofCalls = async (seqs: number[]) =>
    (await listRunsOfCalls(root, { workflowRunId: flow.id, seqs })).map(({ id }) => id)
  expect([await ofCalls([0, 1]), await ofCalls([1]), await ofCalls([])]).toEqual([[run.id], [], []])
  // With its last frame, unless that is large, until the result is handed over.
  const stepsAndFrames = async () =>
    (await listEndedSteps(root, flow.id)).map(({ run: { id }, lastFrame }) => [id, lastFrame?.firstSeq ?? null])
  expect(await stepsAndFrames()).toEqual([[run.id, null]])
  const frame = { runId: run.id, fence: 1, sha256: 'x', receivedAt: at }
  await insertFrames(root, [
    { ...frame, firstSeq: 1, lastSeq: 2, body: Buffer.from('a\nb\n') },
    { ...frame, firstSeq: 3, lastSeq: 3, body: Buffer.from('c\n') },
  ])
  expect(await stepsAndFrames()).toEqual([[run.id, 3]])
  await insertFrames(root, [{ ...frame, firstSeq: 4, lastSeq: 4, body: Buffer.alloc(16 * 1024 + 1) }])
  expect(await stepsAndFrames()).toEqual([[run.id, null]])
  await recordHanded(root, { workflowRunId: flow.id, seq: 0 }, { isValue: true, result: '1', order: 0, at: at + 80 })
  expect(await stepsAndFrames()).toEqual([])
})

onBoth('a run that waits for nothing is told from one that does', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [idle, busy] = [await seedFlow(root, workspaceId), await seedFlow(root, workspaceId)]
  await seedCall(root, busy.id, 0)
  const unchanged = async (changedBefore: number, onlyReplayed = false) =>
    (await listUnchanged(root, { changedBefore, onlyReplayed, limit: 100 }))
      .map(({ id }) => id)
      .filter((id) => id === idle.id || id === busy.id)
  expect([await unchanged(at), await unchanged(at + 1)]).toEqual([[], [idle.id]])
  expect(await unchanged(at + 1, true)).toEqual([])
  await replaceWorkflowRun(root, idle, { replayedAt: at })
  expect(await unchanged(at + 1, true)).toEqual([idle.id])
})

onBoth('those of workspaces that let no agent work take no place in a list', async ({ root }) => {
  const ids: string[] = []
  for (const changes of [{ agentsPaused: true }, { status: 'archived' as const }, {}]) {
    const workspaceId = await seedWorkspace(root)
    const workspace = (await findWorkspace(root, workspaceId))!
    await replaceWorkspace(root, workspace, { ...workspace, ...changes })
    const [fresh, waiting] = [await seedFlow(root, workspaceId), await seedFlow(root, workspaceId)]
    await seedCall(root, waiting.id, 0)
    await endCall(root, { workflowRunId: waiting.id, seq: 0 }, { at })
    ids.push(fresh.id, waiting.id)
  }
  const ours = (rows: readonly { id: string }[]) => rows.map(({ id }) => ids.indexOf(id)).filter((at) => at >= 0)
  expect(ours(await listUnreplayed(root, 100))).toEqual([4, 5])
  expect(ours(await listWaitingRuns(root, { endedBefore: at, limit: 100 }))).toEqual([5])
  expect(ours(await listUnchanged(root, { changedBefore: at + 1, onlyReplayed: false, limit: 100 }))).toEqual([4])
})

onBoth(
  'a run that is to be cancelled is found until it has ended, and so are the questions of a run',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const flow = await seedFlow(root, workspaceId, { status: 'stalled', cancelRequestedAt: at })
    const going = await seedFlow(root, workspaceId, { cancelRequestedAt: at })
    const other = await seedFlow(root, workspaceId, { status: 'stalled' })
    const over = await seedFlow(root, workspaceId, { status: 'failed', cancelRequestedAt: at, completedAt: at })
    const found = (await listCancelled(root, 100)).map(({ id }) => id)
    expect([flow, going, other, over].map(({ id }) => found.includes(id))).toEqual([true, true, false, false])
    const question = questionRow(workspaceId, { workflowRunId: flow.id, workflowCall: 1 })
    await insertQuestion(root, question)
    const earlier = questionRow(workspaceId, { workflowRunId: flow.id, workflowCall: 0 })
    const later = questionRow(workspaceId, { workflowRunId: flow.id, workflowCall: 2 })
    for (const each of [later, earlier])
      await insertQuestion(root, { ...each, id: idFrom(`qst_${9 - each.workflowCall!}${each.id}`) })
    const open = await listOpenQuestions(root, 'workflow_run_id', [flow.id])
    expect(open.map(({ workflowCall }) => workflowCall)).toEqual([0, 1, 2])
    expect(await listOpenQuestions(root, 'run_id', [question.runId])).toEqual([])
    expect(await listOpenQuestions(root, 'agent_id', [question.agentRef])).toEqual([])
  },
)

onBoth('the open runs on the account of a person are found, in one workspace or in all', async ({ root }) => {
  const [one, two] = [await seedWorkspace(root), await seedWorkspace(root)]
  const userId = idFrom<PersonUuid>(realWorld.uuid())
  const running = await seedFlow(root, one, { causedByUuid: userId })
  await seedFlow(root, one, { causedByUuid: userId, status: 'completed', completedAt: at })
  await seedFlow(root, one, { causedByUuid: idFrom<PersonUuid>(realWorld.uuid()) })
  const stalled = await seedFlow(root, two, { causedByUuid: userId, status: 'stalled', createdAt: at + 1 })
  const found = async (workspaceId?: WorkspaceUuid) =>
    (
      await listOpenWorkflowRunsCausedBy(root, {
        personUuid: userId,
        ...(workspaceId !== undefined && { workspaceId }),
      })
    ).map(({ id }) => id)
  expect(await found()).toEqual([running.id, stalled.id])
  expect(await found(two)).toEqual([stalled.id])
})

onBoth('waits for checks are found by their branch and their deadline, until they end', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const flow = await seedFlow(root, workspaceId)
  const repo = `acme/${flow.id.toLowerCase()}`
  const call = {
    workflowRunId: flow.id,
    stepOrdinal: null,
    kind: 'checks',
    args: '{}',
    digest: 'd',
    agentRef: null,
  } as const
  const insert = (seq: number, branch: string, deadlineAt: number) =>
    insertCall(root, { ...call, seq, dispatchedAt: at, repo, branch, deadlineAt })
  await insert(0, 'topic', at + 60)
  await insert(1, 'topic', at + 50)
  await insert(2, 'other', at + 55)
  const on = { workspaceId, repo, branch: 'topic' }
  const other = { ...on, branch: 'other' }
  const wait = { ...on, workflowRunId: flow.id, seq: 0, deadlineAt: at + 60 }
  const sooner = { ...wait, seq: 1, deadlineAt: at + 50 }
  const open = (filter: Partial<Parameters<typeof listOpenChecks>[1]> = {}) =>
    listOpenChecks(root, { on, limit: 10, ...filter })
  expect([await open(), await open({ limit: 1 }), await open({ after: sooner })]).toEqual([
    [sooner, wait],
    [sooner],
    [wait],
  ])
  expect([await open({ dueBefore: at + 59 }), await open({ after: wait })]).toEqual([[sooner], []])
  expect(await open({ on: { ...on, workspaceId: idFrom('another') } })).toEqual([])

  expect(await listNearestBranches(root, repo, 10)).toEqual([on, other])
  expect([await listNearestBranches(root, repo, 1), await listNearestBranches(root, 'acme/other', 1)]).toEqual([
    [on],
    [],
  ])
  const all = await listWaitedBranches(root, { limit: 1_000 })
  expect(all.filter((each) => each.repo === repo)).toEqual([other, on])
  const next = await listWaitedBranches(root, { after: other, limit: 1 })
  expect(next).toEqual([on])

  const checks = [{ name: 'build', status: 'pending' as const, url: null }]
  const those = { workflowRunId: flow.id, seqs: [0, 2] }
  await recordChecks(root, those, checks)
  await recordChecks(root, those, checks)
  expect((await listCalls(root, flow.id)).map((each) => each.checks)).toEqual([checks, null, checks])
  expect(await endCalls(root, { ...those, seqs: [0, 1] }, { at, result: '{}' })).toBe(2)
  expect(await endCalls(root, { ...those, seqs: [0, 2] }, { at, result: '[]' })).toBe(1)
  await recordChecks(root, those, [])
  expect(await open()).toEqual([])
  expect(await listCalls(root, flow.id)).toMatchObject([
    { checks, endedAt: at, isValue: true, result: '{}' },
    { result: '{}' },
    { checks, result: '[]' },
  ])
})
