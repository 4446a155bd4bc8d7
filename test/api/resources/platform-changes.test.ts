import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type Reply, type TestServer } from '../../kit/server.ts'
import { agentCalls } from './agent-calls-kit.ts'

// Writes that agents ask for, from the 202 to what the approving person's yes has done.

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller, post } = agentCalls(() => ({ server, member }))

const resolve = (id: string, verb: 'approve' | 'reject', person = member, body: unknown = {}): Promise<Reply> =>
  post(`/approvals/${id}/${verb}`, body, person.token)

/** Asks for a write of the agent; returns the id of the approval. */
async function wanted(token: string, path: string, options: { method?: string; body?: unknown } = {}): Promise<string> {
  const reply = await server.call(path, { ...options, token })
  expect([reply.status, reply.body.object, reply.body.status]).toEqual([202, 'platform_change', 'pending'])
  return reply.body.approvalId as string
}

const resultOf = (reply: Reply) => reply.body.gatedThing.platformChange.result

describe('a change that an agent asks for', () => {
  test('is an approval that shows the write, and holds no run', async () => {
    const { agent, token, runId } = await agentCaller()
    const id = await wanted(token, '/agents', {
      body: { name: 'Helper', command: 'PASSWORD=hunter22 x', harness: 'command' },
    })
    const approval = await server.ok(`/approvals/${id}`)
    expect(approval).toMatchObject({
      trigger: 'platform_change',
      status: 'open',
      runId,
      requestedBy: { type: 'agent', id: agent.id },
      assignedTo: { type: 'user', id: member.userId },
      gatedThing: {
        kind: 'platform_change',
        name: 'agents.create',
        platformChange: { method: 'POST', path: '/api/v1/agents', body: { name: 'Helper' }, result: null },
      },
    })
    const { expiresAt, body, commands } = approval.gatedThing.platformChange
    expect(Date.parse(expiresAt) - Date.parse(approval.createdAt)).toBe(7 * 24 * 3_600_000)
    expect(JSON.stringify(body)).not.toContain('hunter22')
    expect(commands).toEqual([
      "svc agent create --name Helper --role agent --harness command --environment device --command 'PASSWORD=[masked] x' --visibility company --wake-on-assignment --wake-on-hook",
    ])
    expect(await server.ok(`/runs/${runId}`)).toMatchObject({ status: 'queued', waitingOn: null })
    const listed = await server.ok('/approvals?trigger=platform_change')
    expect(listed.data[0].gatedThing.platformChange).toEqual(approval.gatedThing.platformChange)
  })

  test('shows the command of svc with all that was sent, as a shell reads it, or none', async () => {
    const { token } = await agentCaller()
    const target = await server.createAgent({}, member.token)
    const commandsOf = async (id: string) => (await server.ok(`/approvals/${id}`)).gatedThing.platformChange
    const config = { runtime: { maxTurns: 3, model: null, triggers: { wakeOnHook: false } } }
    for (const [path, options, command] of [
      [
        `/agents/${target.id}`,
        { method: 'PATCH', body: { name: "Ada's helper", description: null, reportingTo: target.id } },
        `svc agent update ${target.id} --name 'Ada'\\''s helper' --description none --reporting-to ${target.id}`,
      ],
      [
        '/agents/me/config',
        { method: 'PUT', body: { config } },
        expect.stringMatching(/ --model none --max-turns 3 --no-wake-on-hook$/),
      ],
      [`/agents/${target.id}`, { method: 'DELETE' }, `svc agent delete ${target.id}`],
    ] as const) {
      const reply = await server.call(path, { ...options, token, headers: { 'User-Agent': 'svc/1.2.3' } })
      const { source, commands } = await commandsOf(reply.body.approvalId)
      expect([source, commands]).toEqual(['cli', [command]])
    }
    const { source } = await commandsOf(await wanted(token, '/agents', { body: { name: 'Other' } }))
    expect(source).toBe('api')
  })

  test('shows a long AGENT.md where it is read alone, and not in a list', async () => {
    const { token } = await agentCaller()
    const identityMd = 'Paint. '.repeat(3_000)
    const id = await wanted(token, '/agents', {
      body: { name: 'Painter', harness: 'command', command: 'true', identityMd },
    })
    const listed = await server.ok('/approvals?trigger=platform_change')
    expect(listed.data[0]).toMatchObject({ id, gatedThing: { platformChange: { method: 'POST', body: null } } })
    expect(await server.ok(`/approvals/${id}`)).toMatchObject({
      gatedThing: { platformChange: { body: { identityMd } } },
    })
  })

  test('is done when a person approves: with their rights, in the name of the agent', async () => {
    const { agent, token } = await agentCaller()
    const target = await server.createAgent({}, member.token)
    const id = await wanted(token, `/agents/${target.id}`, { method: 'PATCH', body: { role: 'reviewer' } })
    expect((await server.ok(`/agents/${target.id}`)).role).toBe('agent')
    const reply = await resolve(id, 'approve', member, { reason: 'fine' })
    expect(reply.body).toMatchObject({
      status: 'resolved',
      result: { outcome: 'approve', reason: 'fine' },
      appliedScope: null,
    })
    expect(resultOf(reply)).toMatchObject({ status: 200, body: { id: target.id, role: 'reviewer' } })
    expect((await server.ok(`/agents/${target.id}`)).role).toBe('reviewer')
    const again = await wanted(token, '/agents/me/config', {
      method: 'PUT',
      body: { config: { runtime: { monthlyBudgetCents: 500 } } },
    })
    await resolve(again, 'approve')
    const row = await server.database.root('agent_history').where({ agent_id: agent.id }).first()
    expect(row.changed_by).toBe(agent.id)
  })

  test('creates, and the new agent is the approving person’s', async () => {
    const { token } = await agentCaller()
    const reply = await resolve(await wanted(token, '/agents', { body: { name: 'Made By One' } }), 'approve')
    expect(resultOf(reply).status).toBe(201)
    const made = await server.ok(`/agents/${resultOf(reply).body.id}`)
    expect(made).toMatchObject({ name: 'Made By One', handle: '@made-by-one', ownerUserId: member.uuid })
  })

  test('that the person may not do leaves its refusal as the result, and nothing else', async () => {
    const { agent, token } = await agentCaller()
    const body = { config: { permissions: { capabilities: ['manage_agents'] } } }
    const id = await wanted(token, '/agents/me/config', { method: 'PUT', body })
    const reply = await resolve(id, 'approve')
    expect(reply.body).toMatchObject({ status: 'resolved', result: { outcome: 'approve' } })
    expect(resultOf(reply)).toMatchObject({ status: 403, body: { error: { code: 'http_exception' } } })
    expect((await server.ok(`/agents/${agent.id}/config`)).config.permissions.capabilities).toEqual([])
    const second = await wanted(token, '/agents/me/config', { method: 'PUT', body })
    await server.call(`/approvals/${second}/assign`, {
      body: { assignedTo: { type: 'user', id: admin.userId }, reason: 'needs an admin' },
      token: admin.token,
      headers: { 'Idempotency-Key': 'assign' },
    })
    expect(resultOf(await resolve(second, 'approve', admin)).status).toBe(200)
    expect((await server.ok(`/agents/${agent.id}/config`)).config.permissions.capabilities).toEqual(['manage_agents'])
  })

  test('that makes no sense any more is answered so, with 200', async () => {
    const { token } = await agentCaller()
    const target = await server.createAgent({}, member.token)
    const id = await wanted(token, `/agents/${target.id}`, { method: 'DELETE' })
    await server.ok(`/agents/${target.id}`, { method: 'DELETE', token: member.token })
    const reply = await resolve(id, 'approve')
    expect([reply.status, resultOf(reply).status]).toEqual([200, 404])
    expect((await server.ok(`/approvals/${id}`)).gatedThing.platformChange.result).toEqual(resultOf(reply))
  })

  test('names as manager the agent that the reference named when it was asked for', async () => {
    const { agent, token } = await agentCaller()
    const target = await server.createAgent({}, member.token)
    const boss = await server.createAgent({ name: 'Boss' }, member.token)
    const uuidOf = async (manager: string) =>
      (await server.ok(`/agents/${target.id}`, { method: 'PATCH', body: { reportingTo: manager } }))
        .reportingTo as string
    const [own, ofBoss] = [await uuidOf(agent.id), await uuidOf(boss.id)]
    const created = await wanted(token, '/agents', { body: { name: 'Helper of mine', reportingTo: 'me' } })
    const moved = await wanted(token, `/agents/${target.id}`, { method: 'PATCH', body: { reportingTo: 'me' } })
    const named = await wanted(token, '/agents/me', { method: 'PATCH', body: { reportingTo: boss.handle } })
    await server.ok(`/agents/${boss.id}`, { method: 'PATCH', body: { name: 'Worker' } })
    await server.createAgent({ name: 'Boss' }, other.token)
    for (const [id, status, manager] of [
      [created, 201, own],
      [moved, 200, own],
      [named, 200, ofBoss],
    ] as const)
      expect(resultOf(await resolve(id, 'approve'))).toMatchObject({ status, body: { reportingTo: manager } })
    const unknown = { method: 'PATCH', token, body: { reportingTo: '@nobody' } }
    expect(outcomeOf(await server.call('/agents/me', unknown))).toBe('404 resource_not_found')
  })

  test('ends what it must when it is approved: deleting an agent cancels its runs', async () => {
    const { token } = await agentCaller()
    const victim = await agentCaller({}, { owner: other })
    const id = await wanted(token, `/agents/${victim.agent.id}`, { method: 'DELETE' })
    expect(resultOf(await resolve(id, 'approve'))).toMatchObject({ status: 200, body: { unassignedTasks: [] } })
    expect(await server.ok(`/runs/${victim.runId}`)).toMatchObject({ exitReason: 'agent_deleted' })
  })

  test('is not done when it is rejected, nor by anybody but the assigned person, nor twice', async () => {
    const { token } = await agentCaller()
    const target = await server.createAgent({}, member.token)
    const change = () => wanted(token, `/agents/${target.id}`, { method: 'PATCH', body: { role: 'boss' } })
    const id = await change()
    expect(outcomeOf(await resolve(id, 'approve', other))).toBe('403 approval_assignee_mismatch')
    const reply = await resolve(id, 'reject')
    expect([reply.status, resultOf(reply)]).toEqual([200, null])
    expect(outcomeOf(await resolve(id, 'approve'))).toBe('409 approval_resolved')
    expect((await server.ok(`/agents/${target.id}`)).role).toBe('agent')
    const twice = await change()
    const outcomes = await Promise.all([resolve(twice, 'approve'), resolve(twice, 'approve')])
    expect(outcomes.map(outcomeOf).toSorted()).toEqual(['200', '409 approval_resolved'])
    expect((await server.ok(`/agents/${target.id}`)).role).toBe('boss')
  })

  test('wakes nobody: its run did not stop for it', async () => {
    const { agent, token, runId } = await agentCaller()
    const id = await wanted(token, '/agents', { body: { name: 'Quiet' } })
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    // Cancelled runs take no platform change with them.
    expect((await server.ok(`/approvals/${id}`)).status).toBe('open')
    await resolve(id, 'approve')
    await server.plane.sweeper.runAll()
    expect((await server.ok(`/runs?agent=${agent.id}`)).data).toHaveLength(1)
  })

  test('is over a week after it was raised', async () => {
    const { token } = await agentCaller()
    const id = await wanted(token, '/agents', { body: { name: 'Late' } })
    server.world.advance(7 * 24 * 3_600_000 - 60_000)
    await server.plane.sweeper.runAll()
    expect((await server.ok(`/approvals/${id}`)).status).toBe('open')
    server.world.advance(60_001)
    // Nobody needs to wait for the sweep.
    expect(outcomeOf(await resolve(id, 'approve'))).toBe('409 approval_resolved')
    await server.plane.sweeper.runAll()
    const approval = await server.ok(`/approvals/${id}`)
    expect(approval).toMatchObject({
      status: 'resolved',
      result: { outcome: 'expired' },
      resolvedBy: { type: 'system' },
    })
    expect((await server.ok('/agents?q=Late')).data).toEqual([])
    const row = await server.database.root('platform_changes').where({ id }).first()
    expect(row.status).toBe('expired')
  })
})
