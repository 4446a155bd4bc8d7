import {
  idFrom,
  type ConversationId,
  type PersonRef,
  type PersonUuid,
  type RunId,
  type TaskId,
} from '../../shared/lib/ids.ts'
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { hasOnlyHeldTasks } from '../../control-plane/resources/approvals/held-tasks-store.ts'
import { openHoldsOfRuns, openHoldsOfTasks } from '../../control-plane/resources/approvals/open-holds.ts'
import { raiseToolApproval } from '../../control-plane/resources/approvals/steps/raise.ts'
import {
  findApproval,
  findApprovalByKey,
  insertApproval,
  listApprovals,
  listApprovalsOfEndedRuns,
  listHoldingApprovals,
  listOpenApprovals,
  replaceAssignee,
  resolveApproval,
  type ApprovalFilter,
} from '../../control-plane/resources/approvals/store.ts'
import { findUser } from '../../control-plane/resources/members/store.ts'
import {
  findQuestion,
  insertQuestion,
  listQuestions,
  resolveQuestion,
} from '../../control-plane/resources/questions/store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { approvalRow, digest, questionRow } from './hold-rows.ts'
import { at, seedAgent, seedPerson, seedRun, seedTask, seedWorkspace, wroteSecond } from './seed.ts'
import { endRun } from '../kit/end-run.ts'

const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)

onBoth(
  'an approval comes back as it was stored, and is resolved once, from the version that was read',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const stored = approvalRow(workspaceId, {
      agentRef: id('agt_'),
      runId: id('run_'),
      taskId: id('tsk_'),
      conversationId: id('cnv_'),
      sessionId: 'session',
      assignedType: 'user',
      assignedRef: idFrom<PersonRef>('usr_1'),
    })
    expect(await insertApproval(root, stored)).toBe(stored.id)
    const before = (await findApproval(root, workspaceId, stored.id))!
    expect(before).toEqual({
      ...stored,
      status: 'open',
      assignedByRef: null,
      assignReason: null,
      outcome: null,
      reason: null,
      appliedScope: null,
      resolvedType: null,
      resolvedRef: null,
      resolvedAt: null,
      version: 1,
      updatedAt: at,
    })
    expect(await findApproval(root, await seedWorkspace(root), stored.id)).toBeNull()
    const change = {
      personRef: idFrom<PersonRef>('usr_2'),
      by: idFrom<PersonRef>('usr_3'),
      reason: 'on call',
      at: at + 1,
    }
    await replaceAssignee(root, before, change)
    await expect(replaceAssignee(root, before, change)).rejects.toMatchObject(wroteSecond)
    const resolution = {
      outcome: 'approve',
      reason: 'ok',
      appliedScope: 'always',
      by: idFrom<PersonRef>('usr_2'),
      at: at + 2,
    } as const
    expect(await resolveApproval(root, before, resolution)).toBe(false)
    const assigned = (await findApproval(root, workspaceId, stored.id))!
    expect(assigned).toMatchObject({
      assignedRef: 'usr_2',
      assignedByRef: 'usr_3',
      assignReason: 'on call',
      version: 2,
    })
    expect(await resolveApproval(root, assigned, resolution)).toBe(true)
    expect(await resolveApproval(root, assigned, resolution)).toBe(false)
    expect(await findApproval(root, workspaceId, stored.id)).toMatchObject({
      status: 'resolved',
      outcome: 'approve',
      reason: 'ok',
      appliedScope: 'always',
      resolvedType: 'user',
      resolvedRef: 'usr_2',
      resolvedAt: at + 2,
    })
  },
)

onBoth(
  'a second approval with the same key is the first one; a budget that was raised may be hit again',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const first = approvalRow(workspaceId, { raiseKey: 'k' })
    await insertApproval(root, first)
    expect(await insertApproval(root, approvalRow(workspaceId, { raiseKey: 'k' }))).toBe(first.id)
    const other = approvalRow(await seedWorkspace(root), { raiseKey: 'k' })
    expect(await insertApproval(root, other)).toBe(other.id)
    await insertApproval(root, approvalRow(workspaceId))
    await insertApproval(root, approvalRow(workspaceId))
    const close = { outcome: 'approve', reason: null, by: null, at } as const
    await resolveApproval(root, (await findApproval(root, workspaceId, first.id))!, close)
    expect(await insertApproval(root, approvalRow(workspaceId, { raiseKey: 'k' }))).toBe(first.id)
    const budget = approvalRow(workspaceId, { trigger: 'budget_breach', raiseKey: 'b' })
    await insertApproval(root, budget)
    const open = (await findApprovalByKey(root, workspaceId, 'b'))!
    expect(open.id).toBe(budget.id)
    await resolveApproval(root, open, close)
    expect(await findApprovalByKey(root, workspaceId, 'b')).toBeNull()
    const again = approvalRow(workspaceId, { trigger: 'budget_breach', raiseKey: 'b' })
    expect(await insertApproval(root, again)).toBe(again.id)
  },
)

onBoth('approvals are listed newest first, by each filter, and paged both ways', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const run = await seedRun(root, agent)
  const rows = [
    approvalRow(workspaceId, {
      createdAt: at + 1,
      runId: run.id,
      agentRef: agent.id,
      conversationId: idFrom<ConversationId>('cnv_run'),
    }),
    approvalRow(workspaceId, { createdAt: at + 2, trigger: 'platform_change', taskId: idFrom<TaskId>('tsk_1') }),
    approvalRow(workspaceId, {
      createdAt: at + 3,
      assignedType: 'user',
      assignedRef: idFrom<PersonRef>('usr_1'),
      conversationId: idFrom<ConversationId>('cnv_1'),
    }),
    approvalRow(workspaceId, { createdAt: at + 4, trigger: 'budget_breach', assignedType: 'system' }),
  ]
  for (const row of rows) await insertApproval(root, row)
  await insertApproval(root, approvalRow(await seedWorkspace(root)))
  const listed = async (filter: Partial<ApprovalFilter> = {}) =>
    (await listApprovals(root, { workspaceId, limit: 25, ...filter })).map((row) =>
      rows.findIndex((r) => r.id === row.id),
    )
  expect(await listed()).toEqual([3, 2, 1, 0])
  expect(await listed({ limit: 2 })).toEqual([3, 2, 1])
  const from = { createdAt: at + 2, id: rows[1]!.id }
  expect(await listed({ from: { ...from, direction: 'after' } })).toEqual([0])
  expect(await listed({ from: { ...from, direction: 'before' } })).toEqual([2, 3])
  expect(await listed({ from: { ...from, direction: 'before' }, limit: 1 })).toEqual([2, 3])
  expect(await listed({ status: 'resolved' })).toEqual([])
  expect(await listed({ status: 'open' })).toHaveLength(4)
  expect(await listed({ triggers: ['budget_breach', 'platform_change'] })).toEqual([3, 1])
  expect(await listed({ taskId: idFrom('tsk_1') })).toEqual([1])
  expect(await listed({ runId: run.id })).toEqual([0])
  expect(await listed({ assignedRef: 'usr_1' })).toEqual([2])
  expect(await listed({ conversation: { id: idFrom('cnv_1'), taskId: null } })).toEqual([2])
  expect(await listed({ conversation: { id: idFrom('cnv_run'), taskId: idFrom<TaskId>('tsk_1') } })).toEqual([1, 0])
})

onBoth('what a private agent asks is listed for its owner, itself, and whom it is assigned to', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const owner = await seedPerson(root, workspaceId)
  const other = await seedPerson(root, workspaceId)
  const agent = await seedAgent(root, workspaceId, { visibility: 'private', ownerUuid: owner })
  const assignedId = (await findUser(root, other))!.publicId
  await insertApproval(
    root,
    approvalRow(workspaceId, { agentRef: agent.id, assignedType: 'user', assignedRef: assignedId }),
  )
  await insertQuestion(root, questionRow(workspaceId, { agentRef: agent.id }))
  const counted = async (visibleTo: NonNullable<ApprovalFilter['visibleTo']>) => [
    (await listApprovals(root, { workspaceId, limit: 5, visibleTo })).length,
    (await listQuestions(root, { workspaceId, limit: 5, visibleTo })).length,
  ]
  expect(await counted({ personUuid: owner, personRef: idFrom('usr_owner') })).toEqual([1, 1])
  expect(await counted({ agentRef: agent.id, agentUuid: agent.uuid })).toEqual([1, 1])
  expect(await counted({ personUuid: other, personRef: assignedId })).toEqual([1, 0])
  expect(await counted({ personUuid: other, personRef: idFrom('usr_x') })).toEqual([0, 0])
  expect(await counted({ agentRef: id('agt_'), agentUuid: idFrom(randomUUID()) })).toEqual([0, 0])
})

onBoth('what is due is found: by age, and by how long its run is over', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const [ended, live] = [await seedRun(root, agent), await seedRun(root, agent)]
  const ending = { fence: null, exitReason: 'approval_requested', errorMessage: null } as const
  await endRun(root, { ...ending, runId: ended.id, at: at + 10 })
  const due = approvalRow(workspaceId, { runId: ended.id })
  await insertApproval(root, due)
  await insertApproval(root, approvalRow(workspaceId, { runId: live.id }))
  const old = approvalRow(workspaceId, { trigger: 'platform_change', createdAt: at })
  await insertApproval(root, old)
  const trigger = 'tool_permission' as const
  expect(await listApprovalsOfEndedRuns(root, { trigger, endedBefore: at + 10, limit: 5 })).toMatchObject([
    { id: due.id },
  ])
  expect(await listApprovalsOfEndedRuns(root, { trigger, endedBefore: at + 9, limit: 5 })).toEqual([])
  const change = { trigger: 'platform_change', limit: 5 } as const
  const listed = { id: old.id, workspaceId, trigger: change.trigger, raiseKey: null, createdAt: at }
  expect(await listOpenApprovals(root, { ...change, raisedBefore: at })).toEqual([listed])
  expect(await listOpenApprovals(root, { ...change, raisedBefore: at - 1 })).toEqual([])
})

onBoth('open approvals of runs and tasks are those that hold them, oldest first', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const approval = approvalRow(workspaceId, {
    runId: idFrom<RunId>('run_1'),
    taskId: idFrom<TaskId>('tsk_1'),
    prompt: 'Deploy?\nto production',
    createdAt: at + 2,
  })
  await insertApproval(root, approval)
  await insertApproval(
    root,
    approvalRow(workspaceId, {
      runId: idFrom<RunId>('run_1'),
      taskId: idFrom<TaskId>('tsk_1'),
      trigger: 'platform_change',
    }),
  )
  await insertApproval(
    root,
    approvalRow(workspaceId, {
      runId: idFrom<RunId>('run_1'),
      taskId: idFrom<TaskId>('tsk_1'),
      trigger: 'budget_breach',
    }),
  )
  const question = questionRow(workspaceId, {
    runId: idFrom('run_1'),
    taskId: idFrom<TaskId>('tsk_1'),
    prompt: 'x'.repeat(500),
    createdAt: at + 1,
  })
  await insertQuestion(root, question)
  const answered = questionRow(workspaceId, { runId: idFrom('run_2'), taskId: idFrom<TaskId>('tsk_2') })
  await insertQuestion(root, answered)
  const closed = { answer: null, by: null, at }
  await resolveQuestion(root, (await findQuestion(root, workspaceId, answered.id))!, closed)
  const expected = [
    { kind: 'question', id: question.id, label: `${'x'.repeat(159)}…`, since: at + 1, workflowRunId: null },
    { kind: 'approval', id: approval.id, label: 'Deploy?', since: at + 2, workflowRunId: null },
  ]
  expect([...(await openHoldsOfRuns(root, [idFrom('run_1'), idFrom('run_2')]))]).toEqual([['run_1', expected]])
  expect([...(await openHoldsOfTasks(root, [idFrom('tsk_1'), idFrom('tsk_2'), idFrom('tsk_3')]))]).toEqual([
    ['tsk_1', expected],
  ])
  expect([...(await openHoldsOfTasks(root, []))]).toEqual([])
  const triggers = ['budget_breach'] as const
  expect(await listHoldingApprovals(root, 'run_id', { ids: [idFrom('run_1')], triggers })).toHaveLength(1)
  const many = Array.from({ length: 40_000 }, (_, n) => idFrom<RunId>(`run_x${n}`))
  expect(await listHoldingApprovals(root, 'run_id', { ids: [...many, idFrom('run_1')], triggers })).toHaveLength(1)
})

onBoth(
  'a tool call that is sent twice is one approval, of the owner of the agent or of the next agent above',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const userId = await seedPerson(root, workspaceId)
    const { publicId } = (await findUser(root, userId))!
    const above = await seedAgent(root, workspaceId, { ownerUuid: userId })
    const middle = await seedAgent(root, workspaceId, {
      reportingToUuid: above.uuid,
      ownerUuid: idFrom<PersonUuid>(realWorld.uuid()),
    })
    const agent = await seedAgent(root, workspaceId, { reportingToUuid: middle.uuid })
    const run = (await findRun(root, (await seedRun(root, agent)).id))!
    const call = {
      toolCallId: 'c1',
      name: 'Bash',
      inputDigest: digest,
      safeSummary: 'API_TOKEN=abcdefgh123 make',
      toolArgs: { command: 'API_TOKEN=abcdefgh123 make' },
      prompt: 'Allow API_TOKEN=abcdefgh123 make?',
    }
    const first = await raiseToolApproval(root, run, call, realWorld)
    expect(await raiseToolApproval(root, run, call, realWorld)).toBe(first)
    const approval = (await findApproval(root, workspaceId, first))!
    expect(approval).toMatchObject({ assignedType: 'user', assignedRef: publicId, runId: run.id, agentRef: agent.id })
    expect(JSON.stringify(approval)).not.toContain('abcdefgh123')
    expect(approval.gatedThing.toolArgs).toEqual({ command: 'API_TOKEN=[masked] make' })
    expect(await raiseToolApproval(root, run, { ...call, inputDigest: 'b'.repeat(64) }, realWorld)).not.toBe(first)
    const alone = await seedAgent(root, workspaceId)
    const other = (await findRun(root, (await seedRun(root, alone)).id))!
    const unowned = await raiseToolApproval(root, other, call, realWorld)
    expect(await findApproval(root, workspaceId, unowned)).toMatchObject({ assignedType: null, assignedRef: null })
  },
)

onBoth('an agent has only held tasks when each open one waits for a person', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const seed = (changes: Parameters<typeof seedTask>[2] = {}) =>
    seedTask(root, workspaceId, { assigneeAgentRef: agent.id, ...changes })
  expect(await hasOnlyHeldTasks(root, agent)).toBe(false)
  for (const changes of [{ status: 'done' }, { status: 'cancelled' }, { archivedAt: at }] as const) await seed(changes)
  expect(await hasOnlyHeldTasks(root, agent)).toBe(false)
  const first = await seed()
  expect(await hasOnlyHeldTasks(root, agent)).toBe(false)
  // It holds no task.
  await insertApproval(root, approvalRow(workspaceId, { taskId: first.id, trigger: 'budget_breach' }))
  expect(await hasOnlyHeldTasks(root, agent)).toBe(false)
  await insertApproval(root, approvalRow(workspaceId, { taskId: first.id, trigger: 'tool_permission' }))
  expect(await hasOnlyHeldTasks(root, agent)).toBe(true)
  const second = await seed()
  expect(await hasOnlyHeldTasks(root, agent)).toBe(false)
  const question = questionRow(workspaceId, { taskId: second.id })
  await insertQuestion(root, question)
  expect(await hasOnlyHeldTasks(root, agent)).toBe(true)
  expect(await hasOnlyHeldTasks(root, await seedAgent(root, workspaceId))).toBe(false)
})
