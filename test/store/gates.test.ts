import { expect } from 'vitest'
import { migrations } from '../../control-plane/db/migrations/index.ts'
import { troubleOf } from '../../control-plane/db/dialect.ts'
import { openGatesOfRuns, openGatesOfTasks } from '../../control-plane/resources/approvals/open-gates.ts'
import { raiseToolApproval } from '../../control-plane/resources/approvals/raise.ts'
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
  type NewApproval,
} from '../../control-plane/resources/approvals/store.ts'
import { findUser } from '../../control-plane/resources/members/store.ts'
import {
  closePlatformChange,
  findPlatformChange,
  insertPlatformChange,
  listPlatformChanges,
} from '../../control-plane/resources/platform-changes/store.ts'
import { answerFromReply } from '../../control-plane/resources/questions/answer.ts'
import {
  findQuestion,
  findQuestionByMessage,
  insertQuestion,
  listOpenQuestions,
  listQuestions,
  resolveQuestion,
  setQuestionMessage,
  type NewQuestion,
} from '../../control-plane/resources/questions/store.ts'
import { endRun, findRun } from '../../control-plane/resources/runs/store.ts'
import {
  findSecret,
  insertSecret,
  insertSecretGrant,
  isSecretNameTaken,
  listGranteesOf,
  listSecrets,
  listSecretKeys,
  listSecretsOfAgent,
  recordReveal,
  removeSecret,
  removeSecretGrant,
  secretsForRun,
} from '../../control-plane/resources/secrets/store.ts'
import { createVault } from '../../control-plane/resources/secrets/vault.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedPerson, seedRun, seedWorkspace } from './seed.ts'

const id = (prefix: string) => realWorld.id(prefix)
const digest = 'a'.repeat(64)

const approvalRow = (workspaceId: string, changes: Partial<NewApproval> = {}): NewApproval => ({
  id: id('apr_'),
  workspaceId,
  trigger: 'tool_permission',
  agentId: null,
  runId: null,
  taskId: null,
  conversationId: null,
  sessionId: null,
  prompt: 'Allow Bash: make?',
  gatedThing: {
    kind: 'tool_call',
    name: 'Bash',
    inputDigest: digest,
    safeSummary: 'make',
    scope: 'once',
    toolArgs: { command: 'make' },
  },
  raiseKey: null,
  assignedType: null,
  assignedId: null,
  createdAt: at,
  ...changes,
})

const questionRow = (workspaceId: string, changes: Partial<NewQuestion> = {}): NewQuestion => ({
  id: id('qst_'),
  workspaceId,
  agentId: id('agt_'),
  runId: id('run_'),
  taskId: null,
  conversationId: null,
  sessionId: 's',
  prompt: 'Which?',
  answerMode: 'free_text',
  options: null,
  secretRequest: null,
  createdAt: at,
  ...changes,
})

onBoth(
  'an approval comes back as it was stored, and is resolved once, from the version that was read',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const stored = approvalRow(workspaceId, {
      agentId: id('agt_'),
      runId: id('run_'),
      taskId: id('tsk_'),
      conversationId: id('cnv_'),
      sessionId: 'session',
      assignedType: 'user',
      assignedId: 'usr_1',
    })
    expect(await insertApproval(root, stored)).toBe(stored.id)
    const before = (await findApproval(root, workspaceId, stored.id))!
    expect(before).toEqual({
      ...stored,
      status: 'open',
      assignedBy: null,
      assignReason: null,
      outcome: null,
      reason: null,
      appliedScope: null,
      resolvedType: null,
      resolvedId: null,
      resolvedAt: null,
      version: 1,
      updatedAt: at,
    })
    expect(await findApproval(root, await seedWorkspace(root), stored.id)).toBeNull()
    const change = { userId: 'usr_2', by: 'usr_3', reason: 'on call', at: at + 1 }
    expect(await replaceAssignee(root, before, change)).toBe(true)
    expect(await replaceAssignee(root, before, change)).toBe(false)
    const resolution = { outcome: 'approve', reason: 'ok', appliedScope: 'always', by: 'usr_2', at: at + 2 } as const
    expect(await resolveApproval(root, before, resolution)).toBe(false)
    const assigned = (await findApproval(root, workspaceId, stored.id))!
    expect(assigned).toMatchObject({ assignedId: 'usr_2', assignedBy: 'usr_3', assignReason: 'on call', version: 2 })
    expect(await resolveApproval(root, assigned, resolution)).toBe(true)
    expect(await resolveApproval(root, assigned, resolution)).toBe(false)
    expect(await findApproval(root, workspaceId, stored.id)).toMatchObject({
      status: 'resolved',
      outcome: 'approve',
      reason: 'ok',
      appliedScope: 'always',
      resolvedType: 'user',
      resolvedId: 'usr_2',
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
  await root('runs').where({ id: run.id }).update({ conversation_id: 'cnv_run' })
  const rows = [
    approvalRow(workspaceId, { createdAt: at + 1, runId: run.id, agentId: agent.id }),
    approvalRow(workspaceId, { createdAt: at + 2, trigger: 'platform_change', taskId: 'tsk_1' }),
    approvalRow(workspaceId, { createdAt: at + 3, assignedType: 'user', assignedId: 'usr_1', conversationId: 'cnv_1' }),
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
  expect(await listed({ taskId: 'tsk_1' })).toEqual([1])
  expect(await listed({ runId: run.id })).toEqual([0])
  expect(await listed({ assignedId: 'usr_1' })).toEqual([2])
  expect(await listed({ conversation: { id: 'cnv_1', taskId: null } })).toEqual([2])
  expect(await listed({ conversation: { id: 'cnv_run', taskId: 'tsk_1' } })).toEqual([1, 0])
})

onBoth('what a private agent asks is listed for its owner, itself, and whom it is assigned to', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const owner = await seedPerson(root, workspaceId)
  const other = await seedPerson(root, workspaceId)
  const agent = await seedAgent(root, workspaceId, { visibility: 'private', ownerUserId: owner })
  const assignedId = (await findUser(root, other))!.publicId
  await insertApproval(root, approvalRow(workspaceId, { agentId: agent.id, assignedType: 'user', assignedId }))
  await insertQuestion(root, questionRow(workspaceId, { agentId: agent.id }))
  const counted = async (visibleTo: NonNullable<ApprovalFilter['visibleTo']>) => [
    (await listApprovals(root, { workspaceId, limit: 5, visibleTo })).length,
    (await listQuestions(root, { workspaceId, limit: 5, visibleTo })).length,
  ]
  expect(await counted({ userId: owner, agentId: null })).toEqual([1, 1])
  expect(await counted({ userId: null, agentId: agent.id })).toEqual([1, 1])
  expect(await counted({ userId: other, agentId: null, userPublicId: assignedId })).toEqual([1, 0])
  expect(await counted({ userId: other, agentId: null, userPublicId: 'usr_x' })).toEqual([0, 0])
  expect(await counted({ userId: null, agentId: id('agt_') })).toEqual([0, 0])
})

onBoth('what is due is found: by age, and by how long its run is over', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const [ended, live] = [await seedRun(root, agent), await seedRun(root, agent)]
  const ending = { fence: null, exitReason: 'approval_requested', errorCode: null, errorMessage: null } as const
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
  expect(await listOpenApprovals(root, { ...change, raisedBefore: at })).toMatchObject([{ id: old.id }])
  expect(await listOpenApprovals(root, { ...change, raisedBefore: at - 1 })).toEqual([])
})

onBoth('open gates of runs and tasks are those that hold them, oldest first', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const approval = approvalRow(workspaceId, {
    runId: 'run_1',
    taskId: 'tsk_1',
    prompt: 'Deploy?\nto production',
    createdAt: at + 2,
  })
  await insertApproval(root, approval)
  await insertApproval(root, approvalRow(workspaceId, { runId: 'run_1', taskId: 'tsk_1', trigger: 'platform_change' }))
  await insertApproval(root, approvalRow(workspaceId, { runId: 'run_1', taskId: 'tsk_1', trigger: 'budget_breach' }))
  const question = questionRow(workspaceId, {
    runId: 'run_1',
    taskId: 'tsk_1',
    prompt: 'x'.repeat(500),
    createdAt: at + 1,
  })
  await insertQuestion(root, question)
  const answered = questionRow(workspaceId, { runId: 'run_2', taskId: 'tsk_2' })
  await insertQuestion(root, answered)
  const closed = { answer: null, by: null, at }
  await resolveQuestion(root, (await findQuestion(root, workspaceId, answered.id))!, closed)
  const expected = [
    { kind: 'question', id: question.id, label: `${'x'.repeat(159)}…`, since: at + 1 },
    { kind: 'approval', id: approval.id, label: 'Deploy?', since: at + 2 },
  ]
  expect([...(await openGatesOfRuns(root, ['run_1', 'run_2']))]).toEqual([['run_1', expected]])
  expect([...(await openGatesOfTasks(root, ['tsk_1', 'tsk_2', 'tsk_3']))]).toEqual([['tsk_1', expected]])
  expect([...(await openGatesOfTasks(root, []))]).toEqual([])
  const triggers = ['budget_breach'] as const
  expect(await listHoldingApprovals(root, 'run_id', { ids: ['run_1'], triggers })).toHaveLength(1)
})

onBoth(
  'a tool call that is sent twice is one approval, of the owner of the agent or of the next agent above',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const userId = await seedPerson(root, workspaceId)
    const { publicId } = (await findUser(root, userId))!
    const above = await seedAgent(root, workspaceId, { ownerUserId: userId })
    const middle = await seedAgent(root, workspaceId, { reportingTo: above.uuid, ownerUserId: realWorld.uuid() })
    const agent = await seedAgent(root, workspaceId, { reportingTo: middle.uuid })
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
    expect(approval).toMatchObject({ assignedType: 'user', assignedId: publicId, runId: run.id, agentId: agent.id })
    expect(JSON.stringify(approval)).not.toContain('abcdefgh123')
    expect(approval.gatedThing.toolArgs).toEqual({ command: 'API_TOKEN=[masked] make' })
    expect(await raiseToolApproval(root, run, { ...call, inputDigest: 'b'.repeat(64) }, realWorld)).not.toBe(first)
    const alone = await seedAgent(root, workspaceId)
    const other = (await findRun(root, (await seedRun(root, alone)).id))!
    const unowned = await raiseToolApproval(root, other, call, realWorld)
    expect(await findApproval(root, workspaceId, unowned)).toMatchObject({ assignedType: null, assignedId: null })
  },
)

onBoth(
  'a question comes back as it was stored, is answered once, and found by its message while it is open',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const stored = questionRow(workspaceId, {
      taskId: id('tsk_'),
      answerMode: 'single_select',
      options: [{ key: 'a', label: 'A' }],
      secretRequest: { name: 'n', provider: 'p', envVarName: 'E', reason: 'r' },
    })
    await insertQuestion(root, stored)
    const before = (await findQuestion(root, workspaceId, stored.id))!
    const open = { status: 'open', answer: null, answeredBy: null, answeredAt: null, version: 1, updatedAt: at }
    expect(before).toEqual({ ...stored, ...open, messageId: null })
    expect(await findQuestion(root, await seedWorkspace(root), stored.id)).toBeNull()
    await setQuestionMessage(root, { questionId: stored.id, messageId: 'msg_1', conversationId: 'cnv_1' })
    expect(await findQuestionByMessage(root, 'msg_1')).toMatchObject({ id: stored.id, conversationId: 'cnv_1' })
    expect(await listOpenQuestions(root, 'run_id', [stored.runId])).toHaveLength(1)
    const resolution = { answer: { text: null, selected: ['a'] }, by: 'usr_1', at: at + 1 }
    expect(await resolveQuestion(root, before, resolution)).toBe(true)
    expect(await resolveQuestion(root, before, resolution)).toBe(false)
    expect(await findQuestion(root, workspaceId, stored.id)).toMatchObject({
      status: 'resolved',
      answer: { text: null, selected: ['a'] },
      answeredBy: 'usr_1',
      answeredAt: at + 1,
    })
    expect(await findQuestionByMessage(root, 'msg_1')).toBeNull()
    expect(await listOpenQuestions(root, 'task_id', [stored.taskId!])).toEqual([])
  },
)

onBoth('questions are listed by each filter', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const rows = [
    questionRow(workspaceId, { createdAt: at + 1, taskId: 'tsk_1', conversationId: 'cnv_1' }),
    questionRow(workspaceId, { createdAt: at + 2, sessionId: 'other' }),
  ]
  for (const row of rows) await insertQuestion(root, row)
  const listed = async (filter: object) =>
    (await listQuestions(root, { workspaceId, limit: 25, ...filter })).map((row) =>
      rows.findIndex((r) => r.id === row.id),
    )
  expect(await listed({})).toEqual([1, 0])
  expect(await listed({ taskId: 'tsk_1' })).toEqual([0])
  expect(await listed({ conversationId: 'cnv_1' })).toEqual([0])
  expect(await listed({ sessionId: 'other' })).toEqual([1])
  expect(await listed({ runId: rows[0]!.runId })).toEqual([0])
  expect(await listed({ agentId: rows[1]!.agentId })).toEqual([1])
  expect(await listed({ status: 'resolved' })).toEqual([])
})

onBoth(
  'a reply answers an open question once and asks for a wake; a secret is never given by one',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const run = await seedRun(root, agent)
    const person = { userPublicId: 'usr_1', name: 'Ada' }
    const say = (messageId: string) =>
      answerFromReply(root, { parentMessageId: messageId, body: 'b', person, world: realWorld })
    const ofRun = { agentId: agent.id, runId: run.id }
    const text = questionRow(workspaceId, {
      ...ofRun,
      answerMode: 'single_select',
      options: [{ key: 'a', label: 'A' }],
    })
    const secret = questionRow(workspaceId, { ...ofRun, answerMode: 'secret_input' })
    for (const [at_, question] of [text, secret].entries()) {
      await insertQuestion(root, question)
      const shown = { questionId: question.id, messageId: `msg_${at_}`, conversationId: 'cnv_1' }
      await setQuestionMessage(root, shown)
    }
    expect(await say('msg_0')).toBe(true)
    expect(await say('msg_0')).toBe(false)
    expect(await say('msg_1')).toBe(false)
    expect(await say('msg_unknown')).toBe(false)
    expect(await findQuestion(root, workspaceId, text.id)).toMatchObject({
      answer: { text: 'b', selected: null },
      answeredBy: 'usr_1',
    })
    const wakes = (await root('wakes').where({ workspace_id: workspaceId })) as Record<string, unknown>[]
    expect(wakes).toMatchObject([{ agent_id: agent.id, trigger_source: 'approval_resolved', continues_run_id: run.id }])
    expect(wakes[0]!['prompt']).toContain('Ada answered')
  },
)

const secretRow = (workspaceId: string, name: string, changes: object = {}) => ({
  id: id('sec_'),
  workspaceId,
  name,
  provider: 'github',
  envVarName: name.toUpperCase(),
  sealed: Buffer.from([0, 255, 1]),
  createdBy: 'usr_1',
  createdAt: at,
  ...changes,
})

onBoth(
  'a secret has its name alone in its workspace, and is listed, revealed and removed with its grants',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const [first, second] = [
      secretRow(workspaceId, 'one'),
      secretRow(workspaceId, 'two', { createdAt: at + 1, provider: null }),
    ]
    await insertSecret(root, first)
    await insertSecret(root, second)
    expect(await findSecret(root, workspaceId, first.id)).toEqual({
      ...first,
      lastRevealedBy: null,
      lastRevealedAt: null,
    })
    expect(await findSecret(root, await seedWorkspace(root), first.id)).toBeNull()
    expect(await isSecretNameTaken(root, workspaceId, 'one')).toBe(true)
    expect(await isSecretNameTaken(root, workspaceId, 'three')).toBe(false)
    expect(await insertSecret(root, secretRow(workspaceId, 'one')).catch(troubleOf)).toBe('duplicate')
    const names = async (filter: object) =>
      (await listSecrets(root, { workspaceId, limit: 5, ...filter })).map((secret) => secret.name)
    expect(await names({})).toEqual(['two', 'one'])
    expect(await names({ before: { createdAt: at + 1, id: second.id } })).toEqual(['one'])
    await recordReveal(root, { secretId: first.id, by: 'usr_2', at: at + 5 })
    expect(await findSecret(root, workspaceId, first.id)).toMatchObject({
      lastRevealedBy: 'usr_2',
      lastRevealedAt: at + 5,
    })
    const grant = { secretId: first.id, agentId: agent.id, workspaceId, by: 'usr_1', at }
    await insertSecretGrant(root, grant)
    await insertSecretGrant(root, { ...grant, at: at + 9 })
    expect([...(await listGranteesOf(root, [first.id, second.id]))]).toEqual([
      [first.id, [agent.id]],
      [second.id, []],
    ])
    expect(await removeSecretGrant(root, first.id, agent.id)).toBe(true)
    expect(await removeSecretGrant(root, first.id, agent.id)).toBe(false)
    await insertSecretGrant(root, grant)
    await removeSecret(root, first.id)
    expect(await findSecret(root, workspaceId, first.id)).toBeNull()
    expect(await listSecretsOfAgent(root, agent.id)).toEqual([])
  },
)

onBoth('a run gets the values that its agent was granted, and no others', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [agent, other] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
  const vault = createVault({ kind: 'memory' }, realWorld)
  for (const [name, agentId] of [
    ['mine', agent.id],
    ['theirs', other.id],
  ] as const) {
    const secret = secretRow(workspaceId, name)
    await insertSecret(root, { ...secret, sealed: vault.seal(secret.id, `value of ${name} 🔑`) })
    await insertSecretGrant(root, { secretId: secret.id, agentId, workspaceId, by: 'usr_1', at })
  }
  expect(await listSecretKeys(root, agent.id)).toEqual(['MINE'])
  expect(await secretsForRun(root, { agentId: agent.id }, vault)).toEqual({ MINE: 'value of mine 🔑' })
  const stranger = createVault({ kind: 'given', text: '0'.repeat(64) }, realWorld)
  await expect(secretsForRun(root, { agentId: agent.id }, stranger)).rejects.toThrow('another key')
})

onBoth('a stored write keeps what came of it, and is closed once', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const change = {
    id: id('apr_'),
    workspaceId,
    agentId: id('agt_'),
    runId: id('run_'),
    routeId: 'agents.create',
    params: { agentId: 'x' },
    body: { name: 'n', deep: [1, null] },
    createdAt: at,
  }
  await insertPlatformChange(root, change)
  expect(await findPlatformChange(root, workspaceId, change.id)).toEqual({ ...change, status: 'pending', result: null })
  const close = { id: change.id, status: 'approved', result: { status: 201, body: { id: 'agt_1' } } } as const
  expect(await closePlatformChange(root, close)).toBe(true)
  expect(await closePlatformChange(root, { ...close, status: 'rejected' })).toBe(false)
  expect(await listPlatformChanges(root, [change.id, 'apr_x'])).toMatchObject([
    { status: 'approved', result: close.result },
  ])
  expect(await listPlatformChanges(root, [])).toEqual([])
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
  }
})
