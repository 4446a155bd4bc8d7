import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { agentUuid, setDeleted } from '../../kit/rows.ts'
import { codeOf, outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { projectCalls, unknown } from './projects-kit.ts'

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { make, send } = projectCalls(() => ({ server, member }))

describe('create', () => {
  test('returns the project with all its fields', async () => {
    const lead = await server.createAgent({ name: 'Lead One' })
    const reply = await server.call('/projects', {
      token: member.token,
      body: {
        name: ' Website ',
        description: 'x'.repeat(300),
        prefix: 'WEB',
        leadAgentId: '@lead-one',
        visibility: 'private',
        repoUrl: 'git@example.com:acme/web.git',
        notAField: 1,
      },
    })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      object: 'project',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      workspaceId: member.workspaceId,
      name: 'Website',
      description: 'x'.repeat(300),
      descriptionPreview: 'x'.repeat(220),
      status: 'active',
      prefix: 'WEB',
      leadAgentId: await agentUuid(server, lead.id),
      ownerUserId: member.uuid,
      visibility: 'private',
      repoUrl: 'git@example.com:acme/web.git',
      deletedAt: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    expect(await server.ok(`/projects/${reply.body.id}`, { token: member.token })).toEqual(reply.body)
  })

  test('needs only a name', async () => {
    const project = await make()
    expect(project).toMatchObject({
      description: '',
      descriptionPreview: null,
      prefix: null,
      leadAgentId: null,
      visibility: 'company',
      repoUrl: null,
    })
    for (const body of [
      {},
      { name: '' },
      { name: 'x', prefix: 'A' },
      { name: 'x', prefix: 'ABCDEF' },
      { name: 'x', prefix: 'ab' },
      { name: 'x', prefix: 'A1' },
      { name: 'x', visibility: 'public' },
      { name: 'x', repoUrl: 'https://somebody:secret@example.com/x.git' },
    ])
      expect([body, outcomeOf(await server.call('/projects', { body }))]).toEqual([body, '400 validation_error'])
  })

  test('a preview cuts no character in two', async () => {
    const { descriptionPreview } = await make({ description: '💥'.repeat(221) })
    expect(descriptionPreview).toBe('💥'.repeat(220))
  })

  test('by an agent has no owner and is open to that agent, also when it is private', async () => {
    const { token } = await server.agentCaller()
    const project = await make({ visibility: 'private' }, token)
    expect(project.ownerUserId).toBeNull()
    expect((await server.ok(`/projects/${project.id}`, { token })).id).toBe(project.id)
    expect((await server.ok('/agents/me/projects', { token })).data).toMatchObject([{ id: project.id }])
    expect(outcomeOf(await send('GET', project.id))).toBe('404 resource_not_found')
    expect((await send('GET', project.id, { token: admin.token })).status).toBe(200)
  })

  test('a prefix is not that of the task keys, and no other project’s, deleted or not', async () => {
    const post = (prefix: string) => server.call('/projects', { body: { name: 'x', prefix } })
    const reserved = await post('MAI')
    expect(outcomeOf(reserved)).toBe('422 prefix_reserved')
    expect(reserved.body.error.param).toBe('prefix')
    const { body } = await post('ONCE')
    expect(outcomeOf(await post('ONCE'))).toBe('409 duplicate_prefix')
    await send('DELETE', body.id)
    expect(outcomeOf(await post('ONCE'))).toBe('409 duplicate_prefix')
    const elsewhere = await server.addPerson('owner', 'elsewhere')
    expect((await make({ prefix: 'ONCE' }, elsewhere.token)).prefix).toBe('ONCE')
  })

  test('of several at once with one prefix, one is made', async () => {
    const body = { name: 'x', prefix: 'RACE' }
    const replies = await Promise.all(Array.from({ length: 5 }, () => server.call('/projects', { body })))
    expect(replies.map(outcomeOf).toSorted()).toEqual([
      '201',
      ...Array.from({ length: 4 }, () => '409 duplicate_prefix'),
    ])
  })

  test('the lead must be an agent that lives in the workspace and that the caller sees', async () => {
    const elsewhere = await server.addPerson('owner', 'elsewhere')
    const foreign = await server.createAgent({}, elsewhere.token)
    const hidden = await server.createAgent({ visibility: 'private' }, other.token)
    const gone = await server.createAgent()
    await setDeleted(server, gone.id, 1)
    for (const leadAgentId of ['@nobody', 'agt_0000000000000000', foreign.id, hidden.id, gone.id]) {
      const reply = await server.call('/projects', { body: { name: 'x', leadAgentId }, token: member.token })
      expect(outcomeOf(reply)).toBe('404 agent_not_found')
      expect(reply.body.error.param).toBe('leadAgentId')
    }
  })
})

describe('update', () => {
  test('any person and any agent changes name, description and visibility; other keys are ignored', async () => {
    const project = await make({ description: 'before', prefix: 'KEEP' })
    const { token } = await server.agentCaller()
    const reply = await send('PATCH', project.id, {
      token,
      body: { name: 'By Agent', prefix: 'NEW', status: 'completed' },
    })
    expect(reply.body).toMatchObject({ name: 'By Agent', description: 'before', prefix: 'KEEP', status: 'active' })
    const second = await send('PATCH', project.id, {
      token: other.token,
      body: { description: null, visibility: 'private' },
    })
    expect(second.body).toMatchObject({ description: '', descriptionPreview: null, visibility: 'private' })
    for (const body of [{ name: '' }, { visibility: 'secret' }, { name: null }])
      expect(outcomeOf(await send('PATCH', project.id, { body }))).toBe('400 validation_error')
  })

  test('the configuration: any status follows any, null clears', async () => {
    const lead = await server.createAgent()
    const project = await make({ prefix: 'CONF' })
    const patch = (body: unknown, token?: string) =>
      send('PATCH', `${project.id}/config`, { body, ...(token === undefined ? {} : { token }) })
    const statuses = ['active', 'archived', 'completed']
    for (const from of statuses)
      for (const to of statuses) {
        await patch({ status: from })
        expect((await patch({ status: to })).body.status).toBe(to)
      }
    const repoUrl = 'https://example.com/acme/web'
    const set = await patch({ leadAgentId: lead.id, repoUrl, prefix: 'OTHER' })
    const config = { status: 'completed', leadAgentId: await agentUuid(server, lead.id), repoUrl, prefix: 'CONF' }
    expect(set.body).toEqual(config)
    expect((await send('GET', `${project.id}/config`)).body).toEqual(config)
    expect((await patch({ leadAgentId: null, repoUrl: null })).body).toMatchObject({ leadAgentId: null, repoUrl: null })
    const { token } = await server.agentCaller()
    expect((await patch({ leadAgentId: 'me' }, token)).status).toBe(200)
    expect(outcomeOf(await patch({ leadAgentId: 'me' }))).toBe('404 agent_not_found')
    expect(outcomeOf(await patch({ status: null }))).toBe('400 validation_error')
    expect(outcomeOf(await patch({ status: 'deleted' }))).toBe('400 validation_error')
  })

  test('what several write at once is kept of each of them', async () => {
    const project = await make()
    const changes = [{ name: 'Renamed' }, { description: 'Told anew.' }, { visibility: 'private' }]
    const replies = await Promise.all(changes.map((body) => send('PATCH', project.id, { body })))
    expect(replies.map(outcomeOf)).toEqual(replies.map(() => '200'))
    expect((await send('GET', project.id)).body).toMatchObject(Object.assign({}, ...changes))
  })
})

describe('delete and restore', () => {
  test('a deleted project is read only by people that ask for it, and is not changed', async () => {
    const project = await make()
    const { token } = await server.agentCaller()
    const deleted = await send('DELETE', project.id)
    expect([deleted.status, deleted.body]).toEqual([204, null])
    expect((await send('GET', `${project.id}?includeDeleted=true`)).body.deletedAt).not.toBeNull()
    for (const reply of [
      await send('GET', project.id),
      await send('GET', `${project.id}?includeDeleted=false`),
      await send('GET', `${project.id}?includeDeleted=true`, { token }),
      await send('PATCH', project.id, { body: { name: 'x' } }),
      await send('GET', `${project.id}/config`),
      await send('PATCH', `${project.id}/config`, { body: {} }),
      await send('POST', `${project.id}/transfer-owner`, { body: { newOwnerId: other.userId } }),
      await send('DELETE', project.id),
    ])
      expect(outcomeOf(reply)).toBe('404 resource_not_found')
    expect(outcomeOf(await send('GET', `${project.id}?includeDeleted=maybe`))).toBe('400 validation_error')
  })

  test('its owner or an admin restores it, nobody else', async () => {
    const { token } = await server.agentCaller()
    for (const person of [member, admin]) {
      const project = await make({ prefix: null, name: 'Back' })
      await send('DELETE', project.id, { token: other.token })
      for (const refused of [other.token, token])
        expect(outcomeOf(await send('POST', `${project.id}/restore`, { token: refused, body: {} }))).toBe(
          '403 restore_forbidden',
        )
      const restored = await send('POST', `${project.id}/restore`, { token: person.token })
      expect(restored.status).toBe(200)
      expect(restored.body).toMatchObject({ id: project.id, deletedAt: null })
      expect(outcomeOf(await send('POST', `${project.id}/restore`))).toBe('409 not_deleted')
    }
  })
})

describe('transfer of the owner', () => {
  test('by the owner or an admin, to a member, by either id', async () => {
    const { token } = await server.agentCaller()
    const project = await make()
    const transfer = (newOwnerId: string, as: string) =>
      send('POST', `${project.id}/transfer-owner`, { body: { newOwnerId }, token: as })
    for (const refused of [other.token, token])
      expect(outcomeOf(await transfer(other.userId, refused))).toBe('403 owner_transfer.forbidden')
    const stranger = await server.addPerson('owner', 'elsewhere')
    for (const id of ['usr_0000000000000000', 'nobody', unknown, stranger.userId, stranger.uuid])
      expect(outcomeOf(await transfer(id, member.token))).toBe('404 owner_transfer.user_not_found')
    expect(outcomeOf(await transfer(member.userId, member.token))).toBe('409 owner_transfer.same_owner')
    expect((await transfer(other.userId, member.token)).body.ownerUserId).toBe(other.uuid)
    expect(codeOf(await transfer(member.uuid, member.token))).toBe('owner_transfer.forbidden')
    expect((await transfer(admin.uuid, admin.token)).body.ownerUserId).toBe(admin.uuid)
    expect(outcomeOf(await send('POST', `${project.id}/transfer-owner`, { body: {}, token: admin.token }))).toBe(
      '400 validation_error',
    )
  })
})
