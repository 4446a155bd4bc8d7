import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finishRun } from '../../../control-plane/dispatch/end-run.ts'
import { raiseToolApproval } from '../../../control-plane/resources/approvals/raise.ts'
import { findRun } from '../../../control-plane/resources/runs/store.ts'
import { canonicalJson } from '../../../shared/lib/canonical-json.ts'
import { createHash } from 'node:crypto'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person, type Reply } from '../../kit/server.ts'

let server: TestServer
let admin: Person
let member: Person
let other: Person
beforeAll(async () => {
  server = await TestServer.start()
  admin = await server.addPerson('admin')
  member = await server.addPerson('member')
  other = await server.addPerson('member')
})
afterAll(() => server.stop())

/** An agent of the member with a run that waits for a device, and the token that the run would get. */
async function agentCaller(body: Record<string, unknown> = {}, owner = member) {
  const agent = await server.createAgent(body, owner.token)
  const reply = await server.ok(`/agents/${agent.id}/runs`, { body: { prompt: 'Work' }, token: owner.token })
  const runId = reply.runPublicId as string
  return { agent, runId, token: await server.runToken(runId) }
}

let keys = 0
const post = (path: string, body: unknown, token: string | null = member.token): Promise<Reply> =>
  server.call(path, { body, token, headers: { 'Idempotency-Key': `key-${keys++}` } })

const ask = async (token: string, body: Record<string, unknown> = {}) =>
  post('/approvals', { prompt: 'Deploy build 17?', gatedThing: { name: 'deploy' }, ...body }, token)

/** An open approval, raised by the member's agent. */
async function raised(body: Record<string, unknown> = {}) {
  const caller = await agentCaller()
  const reply = await ask(caller.token, body)
  expect(outcomeOf(reply)).toBe('201')
  return { ...caller, approval: reply.body.approval, id: reply.body.approval.id as string }
}

const digestOf = (name: string, args: unknown) =>
  createHash('sha256')
    .update(canonicalJson([name, args]))
    .digest('hex')

/** A tool call that a device asked about in a run which has ended so. */
async function askedCall(command = 'npm publish', name = 'Bash') {
  const caller = await agentCaller()
  const { root } = server.database
  const run = (await findRun(root, caller.runId))!
  const toolArgs = { command }
  const call = {
    toolCallId: 'call_1',
    name,
    inputDigest: digestOf(name, toolArgs),
    safeSummary: command,
    toolArgs,
    prompt: `Allow ${name}: ${command}?`,
  }
  const ending = { fence: null, exitReason: 'approval_requested', errorCode: null, errorMessage: null } as const
  const id = await root.transaction(async (tx) => {
    const raised = await raiseToolApproval(tx, run, call, server.world)
    await finishRun(tx, run, { ...ending, at: server.world.now(), world: server.world })
    return raised
  })
  return { ...caller, id, call }
}

/** A run that a device executes: of an agent and on a device of a person of their own, so that nothing else is offered. */
async function working() {
  const person = await server.addPerson('member')
  const device = await FakeDevice.connect(server, { token: person.token })
  const caller = await agentCaller({}, person)
  return { ...caller, person, device, work: await device.take() }
}

const allowCallsOf = async (runId: string): Promise<unknown> => {
  const { spec } = await server.database.root('run_details').where({ run_id: runId }).first('spec')
  return JSON.parse(spec).allowCalls
}

/** The run that the resolved approval has led to. */
async function wokenRun(agentId: string): Promise<string> {
  const deadline = performance.now() + 5_000
  for (;;) {
    const { data } = await server.ok(`/runs?agent=${agentId}&triggerSource=approval_resolved`)
    if (data.length > 0) return data[0].id as string
    if (performance.now() > deadline) throw new Error('no run was woken')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('asking', () => {
  test('gives the approval and a sentinel, assigned to the owner of the agent, and the run stops', async () => {
    const { agent, runId, token } = await agentCaller()
    const reply = await ask(token, { gatedThing: { name: 'deploy', safeSummary: 'Deploy 17' } })
    expect(reply.status).toBe(201)
    const { approval, sentinel } = reply.body
    expect(sentinel).toContain(approval.id)
    expect(approval).toEqual({
      object: 'approval',
      id: expect.stringMatching(/^apr_\w{16}$/),
      workspaceId: member.workspaceId,
      taskId: null,
      sessionId: null,
      runId,
      trigger: 'connection_action',
      status: 'open',
      prompt: 'Deploy build 17?',
      gatedThing: {
        kind: 'connection_action',
        name: 'deploy',
        inputDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
        safeSummary: 'Deploy 17',
        scope: 'once',
      },
      requestedBy: { type: 'agent', id: agent.id },
      assignedTo: { type: 'user', id: member.userId },
      result: null,
      appliedScope: null,
      resolvedBy: null,
      resolvedAt: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    const run = await server.ok(`/runs/${runId}`)
    expect(run).toMatchObject({ status: 'succeeded', exitReason: 'approval_requested' })
    expect(run.waitingOn).toMatchObject({ kind: 'approval', id: approval.id, label: 'Deploy build 17?' })
    expect(outcomeOf(await ask(token))).toBe('401 auth_revoked')
  })

  test('is for agents within a run only, in their own name, about their own run', async () => {
    const { agent, token, runId } = await agentCaller()
    const stranger = await agentCaller()
    expect(outcomeOf(await ask(member.token))).toBe('403 user_cannot_create_approval')
    for (const requestedBy of [{ type: 'agent', id: stranger.agent.id }, { type: 'system' }])
      expect(outcomeOf(await ask(token, { requestedBy }))).toBe('403 author_must_be_self')
    for (const id of [stranger.runId, 'run_0000000000000000'])
      expect(outcomeOf(await ask(token, { runId: id }))).toBe('404 run_not_found')
    const self = { requestedBy: { type: 'agent', id: agent.id }, runId }
    expect(outcomeOf(await ask(token, { taskId: 'tsk_0000000000000000' }))).toBe('404 task_not_found')
    expect(outcomeOf(await ask(token, self))).toBe('201')
  })

  test('takes what an agent may raise, and its own form of it', async () => {
    const { token } = await agentCaller()
    for (const body of [{ trigger: 'platform_change' }, { gatedThing: { kind: 'platform_change' } }])
      expect(outcomeOf(await ask(token, body))).toBe('403 platform_change_not_raisable')
    for (const body of [
      { trigger: 'budget_breach' },
      { trigger: 'learning_review' },
      { trigger: 'nothing' },
      { prompt: ' ' },
      { gatedThing: { kind: 'tool_call' } },
      { gatedThing: { toolArgs: {} } },
      { trigger: 'instruction_publish' },
      { gatedThing: { instructions: { agentMd: 'x' } } },
      {
        trigger: 'tool_permission',
        gatedThing: { name: 'Bash', toolArgs: { command: 'ls' }, inputDigest: 'a'.repeat(64) },
      },
    ])
      expect([body, outcomeOf(await ask(token, body))]).toEqual([body, '400 validation_error'])
    const unknown = {
      trigger: 'instruction_publish',
      gatedThing: { instructions: { agentId: '@nobody', agentMd: 'x' } },
    }
    expect(outcomeOf(await ask(token, unknown))).toBe('404 resource_not_found')
  })

  test('needs an Idempotency-Key, and with the same one is the same approval', async () => {
    const { token, runId } = await agentCaller()
    const body = { prompt: 'Once?' }
    expect(outcomeOf(await server.call('/approvals', { body, token }))).toBe('400 idempotency_invalid_key')
    const headers = { 'Idempotency-Key': 'the-same' }
    const first = await server.call('/approvals', { body, token, headers })
    // The run has ended, and with it its token: the key is of no more use than the token.
    expect(outcomeOf(await server.call('/approvals', { body, token, headers }))).toBe('401 auth_revoked')
    const { data } = await server.ok(`/approvals?runId=${runId}`)
    expect(data).toMatchObject([{ id: first.body.approval.id }])
    const { id } = first.body.approval
    const approve = () => server.call(`/approvals/${id}/approve`, { body: {}, token: member.token, headers })
    expect(outcomeOf(await server.call(`/approvals/${id}/approve`, { body: {}, token: member.token }))).toBe(
      '400 idempotency_invalid_key',
    )
    const done = await approve()
    const replay = await approve()
    expect([replay.status, replay.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
    expect(replay.body).toEqual(done.body)
  })

  test('is refused once the run is being ended for another reason', async () => {
    const { work, device, person } = await working()
    await server.ok(`/runs/${work.runId}/cancel`, { body: {}, token: person.token })
    expect(outcomeOf(await ask(work.token))).toBe('409 hitl_stop_failed')
    expect((await server.ok(`/approvals?runId=${work.runId}`)).data).toEqual([])
    await work.end('interrupted')
    await device.disconnect()
  })

  test('ends a run that a device executes through the device, with the reason', async () => {
    const { work, device, runId } = await working()
    await work.events({ kind: 'session', data: { sessionId: 'session-1' } })
    const reply = await ask(work.token)
    expect(reply.body.approval.sessionId).toBe('session-1')
    expect((await device.next('run.cancel')).exitReason).toBe('approval_requested')
    await work.end('approval_requested', { sessionId: 'session-1' })
    expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'succeeded', exitReason: 'approval_requested' })
    expect((await server.ok(`/approvals/${reply.body.approval.id}`)).status).toBe('open')
    await device.disconnect()
  })

  test('masks what looks like a secret', async () => {
    const secret = ['ghp', 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3hJ6'].join('_')
    const { approval } = await raised({
      prompt: `Use ${secret}?`,
      gatedThing: { name: 'x', safeSummary: `PASSWORD=hunter22 ${secret}` },
    })
    expect(JSON.stringify(approval)).not.toContain(secret)
    expect(JSON.stringify(approval)).not.toContain('hunter22')
    expect(approval.prompt).toBe('Use [masked]?')
  })
})

describe('resolving', () => {
  test('is for the assigned person alone: no other member, no admin, no agent', async () => {
    const { id } = await raised()
    for (const [token, expected] of [
      [other.token, '403 approval_assignee_mismatch'],
      [admin.token, '403 approval_assignee_mismatch'],
      [server.owner.token, '403 approval_assignee_mismatch'],
      [(await agentCaller()).token, '403 agent_cannot_resolve_approval'],
    ] as const)
      for (const verb of ['approve', 'reject'])
        expect(outcomeOf(await post(`/approvals/${id}/${verb}`, {}, token))).toBe(expected)
    expect(outcomeOf(await post(`/approvals/${id}/approve`, { reason: 'go' }))).toBe('200')
    for (const verb of ['approve', 'reject'])
      expect(outcomeOf(await post(`/approvals/${id}/${verb}`, {}))).toBe('409 approval_resolved')
    for (const verb of ['approve', 'reject'])
      expect(outcomeOf(await post(`/approvals/apr_0000000000000000/${verb}`, {}))).toBe('404 approval_not_found')
    expect(outcomeOf(await post('/approvals/nonsense/approve', {}))).toBe('400 invalid_id_format')
  })

  test('without an assignee any person may', async () => {
    const { id } = await raised()
    await server.database.root('approvals').where({ id }).update({ assigned_type: null, assigned_id: null })
    const reply = await post(`/approvals/${id}/reject`, { reason: 'not now' }, other.token)
    expect(reply.body).toMatchObject({
      status: 'resolved',
      assignedTo: null,
      result: { outcome: 'reject', reason: 'not now' },
      resolvedBy: { type: 'user', id: other.userId },
      appliedScope: null,
    })
  })

  test.each(['approve', 'reject'] as const)(
    '%s wakes the agent in the same session, with the words of the person',
    async (verb) => {
      const { id, agent, runId } = await raised({ prompt: 'May I paint it red?' })
      await post(`/approvals/${id}/${verb}`, { reason: 'as you like' })
      const woken = await wokenRun(agent.id)
      expect(await server.ok(`/runs/${woken}`)).toMatchObject({
        parentRunId: runId,
        triggerSource: 'approval_resolved',
      })
      expect((await server.ok(`/runs/${runId}`)).successorRunId).toBe(woken)
      const { prompt } = await server.ok(`/runs/${woken}/context`)
      for (const words of ['May I paint it red?', 'as you like', verb === 'approve' ? 'approved' : 'rejected'])
        expect(prompt).toContain(words)
      expect(prompt).toContain(verb === 'approve' ? 'Do it now' : 'Do not do it')
    },
  )

  test('of two people at once only one resolves', async () => {
    const { id, agent } = await raised()
    const replies = await Promise.all(
      Array.from({ length: 4 }, async () => outcomeOf(await post(`/approvals/${id}/approve`, {}))),
    )
    expect(replies.filter((outcome) => outcome === '200')).toHaveLength(1)
    expect(new Set(replies)).toEqual(new Set(['200', '409 approval_resolved']))
    await wokenRun(agent.id)
    expect((await server.ok(`/runs?agent=${agent.id}`)).data).toHaveLength(2)
  })
})

describe('tool calls', () => {
  test('approved once: exactly that call is allowed in the woken run, and the permissions stay', async () => {
    const { id, agent, call } = await askedCall()
    const reply = await post(`/approvals/${id}/approve`, {})
    expect(reply.body).toMatchObject({
      trigger: 'tool_permission',
      appliedScope: 'once',
      result: { outcome: 'approve' },
    })
    const woken = await wokenRun(agent.id)
    expect(await allowCallsOf(woken)).toEqual([{ name: 'Bash', inputDigest: call.inputDigest, approvalId: id }])
    expect((await server.ok(`/agents/${agent.id}/config`)).config.permissions.tools.allow).toEqual([])
  })

  test('approved always: a rule is added by a revision of the settings', async () => {
    const { id, agent } = await askedCall('npm publish && git push')
    const ask = ['Bash', 'Bash(git push)']
    await server.ok(`/agents/${agent.id}/config`, {
      method: 'PUT',
      body: { config: { permissions: { tools: { ask } } } },
    })
    const reply = await post(`/approvals/${id}/approve`, { appliedScope: 'always' })
    expect(reply.body.appliedScope).toBe('always')
    const rules = [
      { tool: 'Bash', pattern: 'npm publish' },
      { tool: 'Bash', pattern: 'git push' },
    ]
    const { tools } = (await server.ok(`/agents/${agent.id}/config`)).config.permissions
    expect(tools).toMatchObject({ allow: rules, ask: ['Bash'] })
    const { data } = await server.ok(`/agents/${agent.id}/revisions`)
    expect(data[0]).toMatchObject({ changedKeys: ['permissions.tools.allow', 'permissions.tools.ask'] })
    expect(data[0].changeDescription).toContain(id)
  })

  test('a call that no rule says exactly is not allowed always, and stays open', async () => {
    const { id, agent } = await askedCall('rm -rf *')
    const reply = await post(`/approvals/${id}/approve`, { appliedScope: 'always' })
    expect([outcomeOf(reply), reply.body.error.param]).toEqual(['400 validation_error', 'appliedScope'])
    expect((await server.ok(`/approvals/${id}`)).status).toBe('open')
    expect((await server.ok(`/agents/${agent.id}/config`)).config.permissions.tools.allow).toEqual([])
    expect(outcomeOf(await post(`/approvals/${id}/approve`, { appliedScope: 'once' }))).toBe('200')
  })

  test('raised by the agent itself: what is allowed is what the person read', async () => {
    const toolArgs = { command: 'make' }
    const { id, agent } = await raised({ trigger: 'tool_permission', gatedThing: { name: 'Bash', toolArgs } })
    await post(`/approvals/${id}/approve`, {})
    const call = { name: 'Bash', inputDigest: digestOf('Bash', toolArgs), approvalId: id }
    expect(await allowCallsOf(await wokenRun(agent.id))).toEqual([call])
    const unread = { trigger: 'tool_permission', gatedThing: { name: 'Bash', inputDigest: 'a'.repeat(64) } }
    const blind = await raised(unread)
    await post(`/approvals/${blind.id}/approve`, {})
    expect(await allowCallsOf(await wokenRun(blind.agent.id))).toEqual([])
  })

  test('the scope of other triggers means nothing', async () => {
    const { id } = await raised()
    const reply = await post(`/approvals/${id}/approve`, { appliedScope: 'always' })
    expect([reply.status, reply.body.appliedScope]).toEqual([200, null])
  })
})

describe('instructions', () => {
  const propose = (agentMd: string, more: object = {}) =>
    raised({ trigger: 'instruction_publish', gatedThing: { instructions: { agentMd, ...more } } })

  test('are written when a person approves, in the name of the agent', async () => {
    const { id, agent, approval } = await propose('# Be kind')
    expect(approval.gatedThing).toMatchObject({
      kind: 'instruction_publish',
      name: 'AGENT.md',
      instructions: { agentId: agent.id, agentMd: '# Be kind' },
    })
    expect((await server.ok(`/agents/${agent.id}/identity`)).agentMd).toBe('')
    await post(`/approvals/${id}/approve`, {})
    expect((await server.ok(`/agents/${agent.id}/identity`)).agentMd).toBe('# Be kind')
    const row = await server.database.root('agent_history').where({ agent_id: agent.id }).first()
    expect([row.changed_by, row.changed_keys]).toEqual([agent.id, '["agentMd"]'])
  })

  test('are not written over a text the agent did not know, nor when they are rejected', async () => {
    const { id, agent } = await propose('new')
    const body = { agentMd: 'written meanwhile' }
    await server.ok(`/agents/${agent.id}/config`, { method: 'PUT', body, token: member.token })
    expect(outcomeOf(await post(`/approvals/${id}/approve`, {}))).toBe('409 agent_md_stale')
    expect((await server.ok(`/approvals/${id}`)).status).toBe('open')
    expect(outcomeOf(await post(`/approvals/${id}/reject`, {}))).toBe('200')
    expect((await server.ok(`/agents/${agent.id}/identity`)).agentMd).toBe('written meanwhile')
  })
})

describe('assigning', () => {
  const assign = (id: string, body: unknown, token = admin.token) => post(`/approvals/${id}/assign`, body, token)
  const to = (person: Person) => ({ assignedTo: { type: 'user', id: person.userId }, reason: 'on call' })

  test('is for admins; then only the new person resolves', async () => {
    const { id } = await raised()
    const { token } = await agentCaller()
    for (const caller of [member.token, token])
      expect(outcomeOf(await assign(id, to(other), caller))).toBe('403 not_authorized')
    const reply = await assign(id, to(other))
    expect(reply.body).toMatchObject({ id, status: 'open', assignedTo: { type: 'user', id: other.userId } })
    expect(outcomeOf(await post(`/approvals/${id}/approve`, {}, member.token))).toBe('403 approval_assignee_mismatch')
    expect(outcomeOf(await post(`/approvals/${id}/approve`, {}, other.token))).toBe('200')
    expect(outcomeOf(await assign(id, to(member)))).toBe('409 approval_resolved')
    const row = await server.database.root('approvals').where({ id }).first()
    expect([row.assigned_by, row.assign_reason]).toEqual([admin.userId, 'on call'])
  })

  test('needs a reason and a person of the workspace', async () => {
    const { id } = await raised()
    const stranger = await server.addPerson('owner', 'elsewhere')
    for (const body of [
      {},
      { assignedTo: { id: other.userId } },
      { ...to(other), reason: ' ' },
      { reason: 'x', assignedTo: { type: 'agent', id: 'x' } },
    ])
      expect(outcomeOf(await assign(id, body))).toBe('400 validation_error')
    expect(outcomeOf(await assign(id, to(stranger)))).toBe('404 assignee_not_found')
    expect(outcomeOf(await assign('apr_0000000000000000', to(other)))).toBe('404 approval_not_found')
  })

  test('somebody who does not see the agent sees what is assigned to them', async () => {
    const caller = await agentCaller({ visibility: 'private' })
    const { id } = (await ask(caller.token)).body.approval
    const read = (token: string) => server.call(`/approvals/${id}`, { token })
    expect(outcomeOf(await read(other.token))).toBe('404 approval_not_found')
    expect((await server.ok(`/approvals?runId=${caller.runId}`, { token: other.token })).data).toEqual([])
    await assign(id, to(other))
    expect(outcomeOf(await read(other.token))).toBe('200')
    expect((await server.ok(`/approvals?runId=${caller.runId}`, { token: other.token })).data).toHaveLength(1)
  })
})

describe('reading', () => {
  test('a list is newest first, without workspaceId and sessionId, and takes filters', async () => {
    const [one, two] = [await raised(), await raised()]
    await post(`/approvals/${one.id}/reject`, {})
    const ids = async (query: string) =>
      (await server.ok(`/approvals${query}`)).data.map((row: { id: string }) => row.id) as string[]
    expect((await ids('')).slice(0, 2)).toEqual([two.id, one.id])
    expect(await ids(`?runId=${one.runId}`)).toEqual([one.id])
    expect(await ids(`?runId=${one.runId}&status=open`)).toEqual([])
    expect(await ids(`?runId=${one.runId}&status=resolved`)).toEqual([one.id])
    expect(await ids(`?runId=${one.runId}&status=all`)).toEqual([one.id])
    expect(await ids(`?runId=${two.runId}&trigger=connection_action,budget_breach`)).toEqual([two.id])
    expect(await ids(`?runId=${two.runId}&trigger=platform_change`)).toEqual([])
    expect(await ids(`?runId=${two.runId}&assignedToUserId=${member.userId}`)).toEqual([two.id])
    expect(await ids(`?runId=${two.runId}&assignedToUserId=${other.userId}`)).toEqual([])
    expect(await ids('?taskId=tsk_0000000000000000')).toEqual([])
    expect(await ids('?conversationId=cnv_0000000000000000')).toEqual([])
    const [row] = (await server.ok(`/approvals?runId=${two.runId}`)).data
    expect(row).not.toHaveProperty('workspaceId')
    expect(row).not.toHaveProperty('sessionId')
    expect(outcomeOf(await server.call('/approvals?status=closed'))).toBe('400 validation_error')
  })

  test('a list pages in both directions by ids', async () => {
    const ids = [] as string[]
    for (let n = 0; n < 3; n++) ids.unshift((await raised()).id)
    const page = (query: string) => server.ok(`/approvals?limit=2&${query}`)
    const first = await page('')
    expect(first).toMatchObject({ hasMore: true, nextCursor: ids[1], data: [{ id: ids[0] }, { id: ids[1] }] })
    expect((await page(`startingAfter=${first.nextCursor}`)).data[0].id).toBe(ids[2])
    expect((await page(`endingBefore=${ids[2]}`)).data).toMatchObject([{ id: ids[0] }, { id: ids[1] }])
    expect(await server.ok(`/approvals?limit=1&endingBefore=${ids[2]}`)).toMatchObject({
      data: [{ id: ids[1] }],
      hasMore: true,
    })
    for (const query of [
      `startingAfter=${ids[0]}&endingBefore=${ids[1]}`,
      'startingAfter=apr_0000000000000000',
      'endingBefore=x',
    ])
      expect(outcomeOf(await server.call(`/approvals?${query}`))).toBe('400 invalid_cursor')
    expect(outcomeOf(await server.call('/approvals?limit=101'))).toBe('400 validation_error')
  })

  test('one is read with what is around it', async () => {
    const { id, runId } = await raised()
    expect(await server.ok(`/approvals/${id}`)).not.toHaveProperty('run')
    const full = await server.ok(`/approvals/${id}?include[]=task&include[]=run&include[]=session`)
    expect(full).toMatchObject({ id, task: null, run: { id: runId }, session: null })
    const wrong = await server.call(`/approvals/${id}?include[]=agent`)
    expect([outcomeOf(wrong), wrong.body.error.allowedValues]).toEqual([
      '400 invalid_include',
      ['task', 'run', 'session'],
    ])
    const stranger = await server.addPerson('owner', 'elsewhere')
    expect(outcomeOf(await server.call(`/approvals/${id}`, { token: stranger.token }))).toBe('404 approval_not_found')
    const { token } = await agentCaller()
    expect(outcomeOf(await server.call(`/approvals/${id}`, { token }))).toBe('200')
  })
})

describe('by time and by the ending of the run', () => {
  test('a run that ends otherwise takes its connection actions with it, and leaves tool calls open', async () => {
    const { work, device, runId } = await working()
    const { body } = await ask(work.token)
    const { root } = server.database
    const run = (await findRun(root, runId))!
    const call = {
      toolCallId: null,
      name: 'Bash',
      inputDigest: 'c'.repeat(64),
      safeSummary: 'ls',
      toolArgs: { command: 'ls' },
      prompt: 'Allow?',
    }
    const tool = await root.transaction(async (tx) => raiseToolApproval(tx, run, call, server.world))
    await work.end('error')
    expect(await server.ok(`/approvals/${body.approval.id}`)).toMatchObject({
      status: 'resolved',
      result: { outcome: 'reject', reason: 'run_terminated' },
      resolvedBy: { type: 'system', id: null },
    })
    expect((await server.ok(`/approvals/${tool}`)).status).toBe('open')
    expect((await server.ok(`/runs?agent=${run.agentId}&triggerSource=approval_resolved`)).data).toEqual([])
    await device.disconnect()
  })

  test('a tool call expires a day after its run ended, and no sooner', async () => {
    const { id, agent } = await askedCall()
    server.world.advance(24 * 3_600_000 - 60_000)
    await server.plane.sweeper.runAll()
    expect((await server.ok(`/approvals/${id}`)).status).toBe('open')
    server.world.advance(60_001)
    await server.plane.sweeper.runAll()
    expect(await server.ok(`/approvals/${id}`)).toMatchObject({
      status: 'resolved',
      result: { outcome: 'expired' },
      resolvedBy: { type: 'system', id: null },
    })
    expect(outcomeOf(await post(`/approvals/${id}/approve`, {}))).toBe('409 approval_resolved')
    expect((await server.ok(`/runs?agent=${agent.id}&triggerSource=approval_resolved`)).data).toEqual([])
  })
})
