import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { approvalCalls } from './approvals-kit.ts'

let server: TestServer, member: Person, other: Person
beforeAll(async () => {
  ;({ server, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller, post, working, ask, raised } = approvalCalls(() => ({ server, member }))

describe('asking', () => {
  test('returns the approval and a sentinel, assigned to the owner of the agent, and the run stops', async () => {
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

  test('masks no program that a command runs', async () => {
    const command = 'x=token: /tmp/evil.sh'
    const gatedThing = { name: 'Bash', safeSummary: command, toolArgs: { command } }
    const { approval } = await raised({ trigger: 'tool_permission', prompt: `Allow ${command}?`, gatedThing })
    expect(approval).toMatchObject({
      prompt: `Allow ${command}?`,
      gatedThing: { safeSummary: command, toolArgs: { command } },
    })
  })

  test('masks what looks like a secret', async () => {
    const secret = ['ghp', 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3hJ6'].join('_')
    const { approval } = await raised({
      prompt: `Use ${secret}?`,
      gatedThing: { name: `x ${secret}`, safeSummary: `PASSWORD=hunter22 ${secret}` },
    })
    expect(JSON.stringify(approval)).not.toContain(secret)
    expect(JSON.stringify(approval)).not.toContain('hunter22')
    expect(approval.prompt).toBe('Use [masked]?')
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
      ['task', 'run', 'session', 'files'],
    ])
    const stranger = await server.addPerson('owner', 'elsewhere')
    expect(outcomeOf(await server.call(`/approvals/${id}`, { token: stranger.token }))).toBe('404 approval_not_found')
    const { token } = await agentCaller()
    expect(outcomeOf(await server.call(`/approvals/${id}`, { token }))).toBe('200')
  })
})
