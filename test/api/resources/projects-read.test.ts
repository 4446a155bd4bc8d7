import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { projectCalls, unknown } from './projects-kit.ts'

// Tests which projects are found, and by whom.

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { make, send } = projectCalls(() => ({ server, member }))

describe('read', () => {
  test('an id that is no UUID, unknown or of another workspace names nothing, on every route', async () => {
    const elsewhere = await server.addPerson('owner', 'elsewhere')
    const foreign = (await make({}, elsewhere.token)).id
    for (const id of ['prj_1234567890abcdef', 'x', unknown, foreign])
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', {}],
        ['DELETE', ''],
        ['POST', '/restore', {}],
        ['GET', '/config'],
        ['PATCH', '/config', {}],
        ['POST', '/transfer-owner', { newOwnerId: member.userId }],
      ] as const)
        expect([id, method, path, outcomeOf(await send(method, id + path, { body }))]).toEqual([
          id,
          method,
          path,
          '404 resource_not_found',
        ])
    const project = await make()
    expect((await send('GET', project.id.toUpperCase())).body.id).toBe(project.id)
  })

  test('a private project is its owner’s, the admins’ and its lead agent’s', async () => {
    const { agent, token: leadToken } = await server.agentCaller()
    const { token: strangerToken } = await server.agentCaller()
    const project = await make({ visibility: 'private', leadAgentId: agent.id, name: 'Hidden Away' })
    const listed = async (token: string) => (await server.ok('/projects?q=hidden%20away', { token })).data.length
    for (const token of [member.token, admin.token, leadToken, server.owner.token]) {
      expect((await send('GET', project.id, { token })).status).toBe(200)
      expect(await listed(token)).toBe(1)
    }
    for (const token of [other.token, strangerToken]) {
      for (const [method, path] of [
        ['GET', ''],
        ['PATCH', ''],
        ['DELETE', ''],
        ['GET', '/config'],
        ['PATCH', '/config'],
        ['POST', '/restore'],
      ] as const)
        expect(
          outcomeOf(await send(method, project.id + path, { token, ...(method === 'GET' ? {} : { body: {} }) })),
        ).toBe('404 resource_not_found')
      expect(await listed(token)).toBe(0)
      expect((await server.ok(`/agents/${agent.id}/projects`, { token })).data).toEqual([])
    }
    // Once it no longer leads, the agent is out again.
    await send('PATCH', `${project.id}/config`, { body: { leadAgentId: null } })
    expect(outcomeOf(await send('GET', project.id, { token: leadToken }))).toBe('404 resource_not_found')
  })
})

describe('list', () => {
  test('returns the short shape, newest first, in pages', async () => {
    const elsewhere = await server.addPerson('owner', 'lists')
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.unshift((await make({ name: `P${n}` }, elsewhere.token)).id)
    const call = (query: string) => server.ok(`/projects${query}`, { token: elsewhere.token })
    const first = await call('?limit=2')
    expect(first).toMatchObject({ object: 'list', hasMore: true, cursor: first.nextCursor })
    const second = await call(`?limit=2&after=${first.nextCursor}`)
    expect(second).toMatchObject({ hasMore: false, nextCursor: null })
    expect([...first.data, ...second.data].map((row: { id: string }) => row.id)).toEqual(ids)
    expect(Object.keys(first.data[0]).toSorted()).toEqual(
      [
        'object',
        'id',
        'name',
        'descriptionPreview',
        'status',
        'prefix',
        'leadAgentId',
        'createdAt',
        'updatedAt',
      ].toSorted(),
    )
    const refused = async (query: string) => outcomeOf(await server.call(`/projects${query}`))
    expect(await refused('?after=nonsense')).toBe('400 invalid_cursor')
    expect(await refused('?limit=101')).toBe('400 validation_error')
    expect(await refused(`?q=${'x'.repeat(101)}`)).toBe('400 validation_error')
    expect(await refused('?status=open')).toBe('400 validation_error')
  })

  test('filters by status, lead and text', async () => {
    const { agent, token } = await server.agentCaller({ name: 'Filter Lead' })
    const project = await make({ name: 'Find Me 100%', leadAgentId: agent.id })
    await send('PATCH', `${project.id}/config`, { body: { status: 'archived' } })
    const found = async (query: string, as = member.token) =>
      (await server.ok(`/projects?${query}`, { token: as })).data.map((row: { id: string }) => row.id)
    expect(await found('q=me%20100%25')).toEqual([project.id])
    expect(await found('q=me%20100%25&status=active')).toEqual([])
    expect(await found('status=archived,completed&q=find%20me')).toEqual([project.id])
    expect(await found('lead=@filter-lead')).toEqual([project.id])
    expect(await found('lead=me', token)).toEqual([project.id])
    expect(await found('lead=@nobody')).toEqual([])
  })

  test('deleted ones are listed for people only, when asked for', async () => {
    const project = await make({ name: 'Gone Soon' })
    await send('DELETE', project.id)
    const found = async (query: string) => (await server.ok(`/projects?q=gone%20soon${query}`)).data.length
    expect(await found('')).toBe(0)
    expect(await found('&status=deleted')).toBe(1)
    expect(await found('&status=active')).toBe(0)
    const { token } = await server.agentCaller()
    expect(outcomeOf(await server.call('/projects?status=deleted', { token }))).toBe('403 list_deleted_forbidden')
  })
})

test('the projects of an agent are those it leads or made, as far as the caller sees them', async () => {
  const { agent, token } = await server.agentCaller()
  const led = await make({ leadAgentId: agent.id })
  const made = await make({ visibility: 'private' }, token)
  const deleted = await make({ leadAgentId: agent.id })
  await send('DELETE', deleted.id)
  const ids = async (as: string, query = '') =>
    (await server.ok(`/agents/${agent.id}/projects${query}`, { token: as })).data.map((row: { id: string }) => row.id)
  expect(await ids(token)).toEqual([made.id, led.id])
  expect(await ids(admin.token)).toEqual([made.id, led.id])
  expect(await ids(other.token)).toEqual([led.id])
  expect(await ids(token, '?limit=1')).toEqual([made.id])
  expect(outcomeOf(await server.call('/agents/@nobody/projects'))).toBe('404 resource_not_found')
  expect(outcomeOf(await server.call(`/agents/${agent.id}/projects?cursor=x`))).toBe('400 invalid_cursor')
})
