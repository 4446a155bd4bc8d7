import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { raiseToolApproval } from '../../../control-plane/resources/approvals/steps/raise.ts'
import { findRun } from '../../../control-plane/resources/runs/store.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { approvalCalls, digestOf } from './approvals-kit.ts'
import { task as makeTask } from './tasks-kit.ts'

// Tests what people make of approvals, and what comes of it.

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller, post, working, wokenRun, ask, raised, askedCall, allowCallsOf } = approvalCalls(() => ({
  server,
  member,
}))

const change = async (taskId: string, what: string, body: object) =>
  expect(outcomeOf(await post(`/tasks/${taskId}/${what}`, body))).toBe('200')

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
    // A member may allow this call, and not change what is allowed from now on.
    const refused = await post(`/approvals/${id}/approve`, { appliedScope: 'always' })
    expect(outcomeOf(refused)).toBe('403 http_exception')
    expect((await server.ok(`/approvals/${id}`)).status).toBe('open')
    expect((await server.ok(`/agents/${agent.id}/config`)).config.permissions.tools.allow).toEqual([])
    expect(
      outcomeOf(
        await post(`/approvals/${id}/assign`, { assignedTo: { id: admin.userId }, reason: 'away' }, admin.token),
      ),
    ).toBe('200')
    const reply = await post(`/approvals/${id}/approve`, { appliedScope: 'always' }, admin.token)
    expect(reply.body.appliedScope).toBe('always')
    const rules = [
      { tool: 'Bash', pattern: 'npm publish' },
      { tool: 'Bash', pattern: 'git push' },
    ]
    const { tools } = (await server.ok(`/agents/${agent.id}/config`)).config.permissions
    expect(tools).toMatchObject({ allow: rules, ask: ['Bash'] })
    const { data } = await server.ok(`/agents/${agent.id}/revisions`)
    expect(data[0]).toMatchObject({ changedKeys: ['permissions.tools.allow', 'permissions.tools.ask'] })
    const history = await server.ok(`/agents/${agent.id}/history?kind=rule`)
    expect(history.data[0]).toMatchObject({ id: data[0].id, kind: 'rule', changedBy: admin.userId })
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
    const included = `/approvals/${id}?include[]=run&include[]=session`
    expect(await server.ok(included, { token: other.token })).toMatchObject({ run: null, session: null })
    expect(await server.ok(included)).toMatchObject({ run: { id: caller.runId } })
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
    expect((await server.ok(`/runs?agent=${run.agentRef}&triggerSource=approval_resolved`)).data).toEqual([])
    await device.disconnect()
  })

  test('a tool call expires a day after its run ended, and no sooner', async () => {
    const { id, agent, runId } = await askedCall()
    const causeOf = (id: string) => server.database.root('runs').where({ id }).first('caused_by_user_id', 'words_by')
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
    const woken = await wokenRun(agent.id)
    expect((await server.ok(`/runs/${woken}`)).parentRunId).toBe(runId)
    expect(await causeOf(woken)).toEqual(await causeOf(runId))
    const { prompt } = await server.ok(`/runs/${woken}/context`)
    expect(prompt).toMatch(/^Nobody answered within a day .*\n\n> Allow Bash: npm publish\?\n\nIt was not done\./)
    expect(prompt).not.toMatch(/rejected|refused what/)
    expect(await allowCallsOf(woken)).toEqual([])
  })

  test.each([
    ['is open', [1], async () => undefined],
    ['is closed', [], async (id: string) => change(id, 'transition', { status: 'cancelled' })],
    ['is archived', [], async (id: string) => change(id, 'archive', {})],
    [
      'went to another agent',
      [],
      async (id: string) => change(id, 'assign', { assignee: (await server.createAgent()).id }),
    ],
  ])('a tool call that expires while its task %s wakes its agent %j times', async (_, runs, act) => {
    const task = await makeTask(server, {}, member.token)
    const { id, agent } = await askedCall('npm publish', 'Bash', { taskId: task.id })
    await act(task.id)
    server.world.advance(24 * 3_600_000 + 1)
    await server.plane.sweeper.runAll()
    expect(await server.ok(`/approvals/${id}`)).toMatchObject({ result: { outcome: 'expired' } })
    await server.plane.sweeper.runAll()
    const woken = (await server.ok(`/runs?agent=${agent.id}&triggerSource=approval_resolved`)).data
    expect(woken.map(() => 1)).toEqual(runs)
  })
})
