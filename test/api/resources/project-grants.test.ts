import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { projectCalls, unknown } from './projects-kit.ts'

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { make, send } = projectCalls(() => ({ server, member }))

test('a private project is opened to an agent by its owner and by admins, and closed again', async () => {
  const project = await make({ visibility: 'private' })
  const { agent, token } = await server.agentCaller({}, { token: other.token })
  const reads = async () => outcomeOf(await send('GET', project.id, { token }))
  const add = (by: Person, agentId: string = agent.id) =>
    send('POST', `${project.id}/grants`, { body: { agentId }, token: by.token })
  const remove = (by: Person) => send('DELETE', `${project.id}/grants/${agent.id}`, { token: by.token })
  expect(await reads()).toBe('404 resource_not_found')
  // A colleague does not even see it.
  expect(outcomeOf(await add(other))).toBe('404 resource_not_found')
  for (const by of [member, admin]) {
    const added = await add(by)
    expect(added.body.data).toMatchObject([{ object: 'project_grant', agent: { id: agent.id, name: agent.name } }])
    expect((await add(by)).body).toEqual(added.body)
    expect((await send('GET', `${project.id}/grants`)).body).toEqual(added.body)
    expect(await reads()).toBe('200')
    expect((await server.ok('/agents/me/projects', { token })).data).toHaveLength(1)
    expect(outcomeOf(await remove(other))).toBe('404 resource_not_found')
    expect((await remove(by)).status).toBe(204)
    expect(await reads()).toBe('404 resource_not_found')
  }
  expect(outcomeOf(await add(member, 'agt_0000000000000000'))).toBe('404 agent_not_found')
  expect(outcomeOf(await send('GET', `${unknown}/grants`))).toBe('404 resource_not_found')
  expect(outcomeOf(await add({ ...member, token }))).toBe('403 http_exception')
})

test('of a project that all see, only its owner and admins say so; a hidden agent is not named', async () => {
  const project = await make()
  const hidden = await server.createAgent({ visibility: 'private' }, member.token)
  const add = (by: Person) => send('POST', `${project.id}/grants`, { body: { agentId: hidden.id }, token: by.token })
  expect(outcomeOf(await add(member))).toBe('200')
  const shared = await server.createAgent({}, other.token)
  const body = { agentId: shared.id }
  expect(outcomeOf(await send('POST', `${project.id}/grants`, { body, token: other.token }))).toBe('403 http_exception')
  const seen = async (by: Person) => (await send('GET', `${project.id}/grants`, { token: by.token })).body.data.length
  expect([await seen(member), await seen(other)]).toEqual([1, 0])
})

test('an agent that was let into a private project opens it to nobody else', async () => {
  const project = await make({ visibility: 'private' })
  const { agent, token } = await server.agentCaller({}, { token: other.token })
  const second = await server.createAgent({}, other.token)
  await send('POST', `${project.id}/grants`, { body: { agentId: agent.id } })
  const outcome = async (path: string, body: unknown, by: string = token) =>
    outcomeOf(await send('PATCH', `${project.id}${path}`, { body, token: by }))
  expect(await outcome('', { visibility: 'company' })).toBe('403 http_exception')
  expect(await outcome('/config', { leadAgentId: second.id })).toBe('403 http_exception')
  expect(await outcome('', { visibility: 'private', description: 'Told by the agent.' })).toBe('200')
  expect(await outcome('/config', { status: 'completed', leadAgentId: null })).toBe('200')
  expect(await outcome('/config', { leadAgentId: second.id }, member.token)).toBe('200')
  expect(await outcome('/config', { leadAgentId: null })).toBe('403 http_exception')
  expect(await outcome('', { visibility: 'company' }, admin.token)).toBe('200')
  const own = await server.ok('/projects', { body: { name: 'Of the agent', visibility: 'private' }, token })
  expect(outcomeOf(await send('PATCH', own.id, { body: { visibility: 'company' }, token }))).toBe('200')
})
