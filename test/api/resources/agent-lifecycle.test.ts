import { idFrom } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPlatformChange } from '../../../control-plane/resources/platform-changes/store.ts'
import { findAgent, insertAgent } from '../../../control-plane/resources/agents/store.ts'
import { hasPostgres } from '../../kit/database.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { halfRequest } from '../../kit/half-request.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { endRun } from '../../kit/end-run.ts'

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const send = (method: string, path: string, { body, token }: { body?: unknown; token?: string } = {}) =>
  server.call(`/agents/${path}`, { method, token: token ?? member.token, ...(body === undefined ? {} : { body }) })

describe('delete', () => {
  test('sets deletedAt, ends its runs and kills its tokens; wakes get agent_tombstoned', async () => {
    const agent = await server.createAgent({ name: 'Mayfly' }, member.token)
    const device = await FakeDevice.connect(server, { token: member.token })
    const running = await server.startRun(agent.id)
    const work = await device.take()
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { maxConcurrentRuns: 1 },
      token: member.token,
    })
    const queued = await server.startRun(agent.id)
    const reply = await send('DELETE', agent.id)
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({
      agent: { ...agent, audit: undefined, deletedAt: expect.any(String), updatedAt: expect.any(String) },
      unassignedTasks: [],
    })
    expect((await device.next('run.cancel')).exitReason).toBe('agent_deleted')
    expect(outcomeOf(await server.call('/agents/me', { token: work.token }))).toBe('401 auth_revoked')
    await work.end('agent_deleted')
    for (const id of [running, queued])
      expect(await server.ok(`/runs/${id}`)).toMatchObject({ status: 'failed', exitReason: 'agent_deleted' })
    expect(await server.ok(`/agents/${agent.id}/runs`, { body: {} })).toMatchObject({
      kind: 'not_dispatched',
      reason: 'agent_tombstoned',
    })
    expect((await server.ok('/agents?q=mayfly')).data).toEqual([])
    expect((await server.ok('/agents?q=mayfly&status=deleted')).data).toHaveLength(1)
    expect(outcomeOf(await send('DELETE', agent.id))).toBe('404 resource_not_found')
    await device.disconnect()
  })

  test('by an agent waits for approval, also of itself', async () => {
    const { agent, token } = await server.agentCaller()
    const target = await server.createAgent()
    for (const [reference, id] of [
      [target.id, target.id],
      ['me', agent.id],
    ]) {
      const reply = await send('DELETE', reference, { token })
      expect([reply.status, reply.body.object]).toEqual([202, 'platform_change'])
      const stored = await findPlatformChange(server.database.root, server.owner.workspaceId, reply.body.approvalId)
      expect(stored).toMatchObject({ routeId: 'agents.delete', params: { agentId: id } })
      expect((await server.ok(`/agents/${id}`)).deletedAt).toBeNull()
    }
  })

  test('an agent that the caller does not see is not there', async () => {
    const hidden = await server.createAgent({ visibility: 'private' }, other.token)
    for (const [method, path, body] of [
      ['DELETE', ''],
      ['POST', '/restore'],
      ['POST', '/clones', { name: 'x' }],
      ['POST', '/transfer-owner', { newOwnerId: member.userId }],
    ] as const)
      expect(outcomeOf(await send(method, hidden.id + path, { body }))).toBe('404 resource_not_found')
  })
})

describe('restore', () => {
  test('by the owner or an admin, with the status it had', async () => {
    for (const person of [member, admin]) {
      const agent = await server.createAgent({ name: 'Phoenix' }, member.token)
      await send('PATCH', agent.id, { body: { status: 'terminated' } })
      await send('DELETE', agent.id)
      expect(outcomeOf(await send('POST', `${agent.id}/restore`, { token: other.token }))).toBe('403 restore_forbidden')
      const { token } = await server.agentCaller()
      expect(outcomeOf(await send('POST', `${agent.id}/restore`, { token }))).toBe('403 restore_forbidden')
      const reply = await send('POST', `${agent.id}/restore`, { token: person.token })
      expect(reply.body).toMatchObject({ id: agent.id, handle: agent.handle, status: 'terminated', deletedAt: null })
      expect(outcomeOf(await send('POST', `${agent.id}/restore`))).toBe('409 not_deleted')
    }
  })
})

describe('clone', () => {
  test('copies everything but what is its own, under a new name', async () => {
    const device = await enrol(server, { token: member.token })
    const folder = await server.ok('/folders', {
      token: member.token,
      body: { displayName: 'code', rootPath: '/home/x/code', deviceId: device.publicId },
    })
    const boss = await server.createAgent()
    const source = await server.createAgent(
      {
        role: 'builder',
        description: 'Builds',
        model: 'gpt-5',
        harness: null,
        command: null,
        maxTurns: 9,
        identityMd: '# Instructions',
        reportingTo: boss.id,
        defaultFolderId: folder.shortId,
      },
      member.token,
    )
    await send('PATCH', source.id, { body: { status: 'running' } })
    const reply = await send('POST', `${source.id}/clones`, { body: { name: 'The Copy' } })
    expect(reply.status).toBe(201)
    const { audit, ...copy } = reply.body
    expect(Array.isArray(audit)).toBe(true)
    expect(copy).toMatchObject({
      handle: '@the-copy',
      name: 'The Copy',
      role: 'builder',
      description: 'Builds',
      model: 'gpt-5',
      status: 'active',
      reportingTo: source.reportingTo,
      defaultFolderId: folder.shortId,
      ownerUserId: member.uuid,
      lastRunAt: null,
    })
    expect(copy.id).not.toBe(source.id)
    const [settings, original] = [copy, source].map(({ id }) =>
      server.ok(`/agents/${id}/config`, { token: member.token }),
    )
    expect((await settings).config).toEqual((await original).config)
    expect((await settings).agentMd).toBe('# Instructions')
    const twin = await send('POST', `${source.id}/clones`, { body: { name: 'The Copy' }, token: other.token })
    // Somebody else's folder is not given away with the copy.
    expect(twin.body).toMatchObject({ handle: '@the-copy-2', ownerUserId: other.uuid, defaultFolderId: null })
    for (const body of [{}, { name: '' }, { name: 'x'.repeat(101) }])
      expect(outcomeOf(await send('POST', `${source.id}/clones`, { body }))).toBe('400 validation_error')
  })

  test('nobody but an admin copies themselves more permissions', async () => {
    const source = await server.createAgent()
    const permissions = {
      tools: { allow: ['Bash'], ask: ['Write'], deny: ['WebFetch'] },
      capabilities: ['manage_secrets'],
    }
    await server.ok(`/agents/${source.id}/config`, { method: 'PUT', body: { config: { permissions } } })
    const copied = async (token: string) => {
      const { body } = await send('POST', `${source.id}/clones`, { body: { name: 'Copy' }, token })
      return (await server.ok(`/agents/${body.id}/config`)).config.permissions
    }
    expect(await copied(admin.token)).toMatchObject(permissions)
    expect(await copied(member.token)).toMatchObject({
      tools: { allow: [], ask: ['Write'], deny: ['WebFetch'] },
      capabilities: [],
    })
  })

  test('by an agent waits for approval; two copies at once never share a handle', async () => {
    const { agent, token } = await server.agentCaller()
    const reply = await send('POST', 'me/clones', { body: { name: 'Mini' }, token })
    expect(reply.status).toBe(202)
    const stored = await findPlatformChange(server.database.root, server.owner.workspaceId, reply.body.approvalId)
    expect(stored).toMatchObject({ routeId: 'agents.clone', params: { agentId: agent.id }, body: { name: 'Mini' } })
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => send('POST', `${agent.id}/clones`, { body: { name: 'Racing Copy' } })),
    )
    expect(replies.map(outcomeOf)).toEqual(replies.map(() => '201'))
    expect(new Set(replies.map(({ body }) => body.handle as string)).size).toBe(replies.length)
  })
})

test('a change asked for by a run that has just ended is refused', async () => {
  const { agent, runId, token } = await server.agentCaller()
  const target = await server.createAgent()
  const ending = { fence: null, exitReason: 'interrupted', errorMessage: null } as const
  const between = async () => {
    await endRun(server.database.root, { runId, ...ending, at: server.world.now() })
  }
  const clone = await halfRequest(server, `/agents/${agent.id}/clones`, { token, body: { name: 'Late' }, between })
  expect(outcomeOf(clone)).toBe('403 platform_change_requires_run')
  const second = await server.agentCaller()
  const remove = await halfRequest(server, `/agents/${target.id}`, {
    method: 'DELETE',
    token: second.token,
    body: {},
    between: async () => {
      await endRun(server.database.root, { runId: second.runId, ...ending, at: server.world.now() })
    },
  })
  expect(outcomeOf(remove)).toBe('403 platform_change_requires_run')
})

test('an agent is given to another member by its owner or an admin', async () => {
  const agent = await server.createAgent({}, member.token)
  const transfer = (newOwnerId: unknown, token: string) =>
    send('POST', `${agent.id}/transfer-owner`, { body: { newOwnerId }, token })
  const { token } = await server.agentCaller()
  for (const refused of [other.token, token])
    expect(outcomeOf(await transfer(other.userId, refused))).toBe('403 owner_transfer.forbidden')
  const stranger = await server.addPerson('owner', 'elsewhere')
  for (const id of ['usr_0000000000000000', 'nobody', stranger.userId, stranger.uuid])
    expect(outcomeOf(await transfer(id, member.token))).toBe('404 owner_transfer.user_not_found')
  expect(outcomeOf(await transfer(member.uuid, member.token))).toBe('409 owner_transfer.same_owner')
  expect((await transfer(other.userId, member.token)).body.ownerUserId).toBe(other.uuid)
  expect((await transfer(admin.uuid, admin.token)).body.ownerUserId).toBe(admin.uuid)
  expect(outcomeOf(await transfer(undefined, admin.token))).toBe('400 validation_error')
  await send('DELETE', agent.id, { token: admin.token })
  expect(outcomeOf(await transfer(member.userId, admin.token))).toBe('404 resource_not_found')
})

test.skipIf(!hasPostgres())(
  'a handle that another write takes meanwhile is that of another, for a copy and for a new agent',
  async () => {
    const replica = await TestServer.start({ database: 'postgres' })
    try {
      const { root } = replica.database
      const source = await replica.createAgent()
      const row = (await findAgent(root, source.id))!
      for (const [path, name] of [
        [`/agents/${source.id}/clones`, 'Taken Copy'],
        ['/agents', 'Taken Name'],
      ] as const) {
        const held = await root.transaction()
        const handle = name.toLowerCase().replace(' ', '-')
        await insertAgent(held, {
          ...row,
          id: replica.world.id('agt_'),
          uuid: idFrom(crypto.randomUUID()),
          handle,
          name,
        })
        const reply = replica.call(path, { body: { name } })
        // The request has seen that the handle is free, and waits for the transaction that is taking it.
        await expect
          .poll(async () => {
            const waiting: unknown = await root('pg_stat_activity')
              .whereRaw("datname = current_database() and wait_event_type = 'Lock'")
              .count({ n: '*' })
              .first()
            return Number((waiting as { n: unknown }).n)
          })
          .toBe(1)
        await held.commit()
        expect(await reply).toMatchObject({ status: 201, body: { handle: `@${handle}-2` } })
      }
    } finally {
      await replica.stop()
    }
  },
)
