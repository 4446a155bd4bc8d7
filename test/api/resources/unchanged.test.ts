import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { enrol } from '../../kit/fake-device.ts'
import { type TestServer } from '../../kit/server.ts'
import { makeConversation } from '../../kit/talk.ts'
import { makeLearning, newLearning } from '../facts/kit/learnings.ts'
import { makeTask } from '../facts/kit/tasks.ts'
import { createAutomation } from './automations-kit.ts'
import { upload } from './files-kit.ts'
import { makeWorkflow, programOf } from './workflows-kit.ts'

// Requests that change nothing leave a thing as it was, with the time of its last change.

let server: TestServer
beforeAll(async () => {
  ;({ server } = await startWithPeople())
})
afterAll(() => server.stop())

interface Thing {
  /** Where it is read. */
  path: string
  /** Where it is changed, and how; default: by PATCH where it is read. */
  change?: { path?: string; method?: string }
  /** Bodies that change nothing of it. */
  same: readonly Record<string, unknown>[]
}

const things: Record<string, () => Promise<Thing>> = {
  async project() {
    const { id } = await server.ok('/projects', { body: { name: 'One', description: 'Old' } })
    return { path: `/projects/${id}`, same: [{}, { name: 'One', description: 'Old' }, { unknown: 1 }] }
  },
  async 'settings of a project'() {
    const { id } = await server.ok('/projects', { body: { name: 'Two' } })
    const change = { path: `/projects/${id}/config` }
    return { path: `/projects/${id}`, change, same: [{}, { status: 'active', leadAgentId: null, repoUrl: null }] }
  },
  async agent() {
    const { id } = await server.createAgent({ name: 'Same Agent', description: 'Old' })
    return { path: `/agents/${id}`, same: [{}, { name: 'Same Agent', description: 'Old', status: 'active' }] }
  },
  async workspace() {
    const path = `/workspaces/${server.owner.workspaceId}`
    const { name, idleCompaction } = await server.ok(path)
    return { path, same: [{}, { name, idleCompaction }] }
  },
  async 'defaults of a workspace'() {
    const { workspaceId } = server.owner
    const path = `/companies/${workspaceId}/company-config`
    const { maxTurns } = await server.ok(path)
    return { path: `/workspaces/${workspaceId}`, change: { path }, same: [{}, { maxTurns: maxTurns ?? null }] }
  },
  async conversation() {
    const { id } = await makeConversation(server, { title: 'Plans' })
    return { path: `/conversations/${id}`, change: { method: 'POST' }, same: [{ title: 'Plans' }] }
  },
  async 'runtime of a conversation'() {
    const { id } = await makeConversation(server, { title: 'Runtime' })
    const change = { path: `/conversations/${id}/runtime` }
    const path = `/conversations/${id}?include=runtime`
    return { path, change, same: [{ modelId: null }, { speed: null, harness: null }] }
  },
  async file() {
    const { id } = await upload(server, { name: 'same.txt', description: 'Old' })
    return { path: `/files/${id}`, same: [{}, { name: 'same.txt', description: 'Old' }] }
  },
  async learning() {
    const { id } = await makeLearning({ server }, { topic: 'Same', token: (await server.agentCaller()).token })
    return { path: `/learnings/${id}`, same: [{ topic: 'Same' }, { bullets: newLearning.bullets }] }
  },
  async automation() {
    const { id } = await createAutomation(server, (await server.createAgent()).id, { name: 'same' })
    const change = { method: 'POST' }
    const trigger = { type: 'webhook' }
    return {
      path: `/automations/${id}`,
      change,
      same: [{}, { name: 'same', prompt: 'Look.', trigger, status: 'active' }],
    }
  },
  async workflow() {
    const name = await makeWorkflow(server, 'return 1')
    return { path: `/workflows/records/${name}`, same: [{ source: programOf('return 1', { name }) }] }
  },
  async task() {
    const { id } = await makeTask({ server }, { title: 'Same' })
    return {
      path: `/tasks/${id}?include=description`,
      change: { path: `/tasks/${id}`, method: 'POST' },
      same: [{}, { title: 'Same' }],
    }
  },
}

test.each(Object.keys(things))('nothing of it changes: %s', async (name) => {
  const { path, change = {}, same } = await things[name]!()
  const before = await server.ok(path)
  for (const body of same) {
    server.world.advance(10)
    const to = { method: change.method ?? 'PATCH', body, headers: { 'Idempotency-Key': crypto.randomUUID() } }
    await server.ok(change.path ?? path, to)
    expect(await server.ok(path)).toEqual(before)
  }
})

test('an item of a checklist, and the history of its task', async () => {
  const { id } = await makeTask({ server }, { title: 'List', checklist: ['a', 'b'] })
  const { checklist } = await server.ok(`/tasks/${id}`)
  const history = await server.ok(`/tasks/${id}/history`)
  const [item] = checklist
  for (const body of [{}, { text: 'a', done: false, position: 0 }]) {
    server.world.advance(10)
    const to = { body, headers: { 'Idempotency-Key': crypto.randomUUID() } }
    expect(await server.ok(`/tasks/${id}/checklist/${item.id}`, to)).toEqual(item)
  }
  expect(await server.ok(`/tasks/${id}/history`)).toEqual(history)
})

test('a device, the default of the workspace', async () => {
  const { deviceId } = await enrol(server)
  const patch = (body: object) => server.ok(`/devices/${deviceId}`, { method: 'PATCH', body })
  const before = await patch({ isWorkspaceDefault: true, displayName: 'Tower' })
  const told = async () => (await server.database.root('outbox').where({ topic: 'device.changed' })).length
  const earlier = await told()
  for (const body of [{}, { displayName: 'Tower', isWorkspaceDefault: true, remoteControlRevoked: false }]) {
    server.world.advance(10)
    expect(await patch(body)).toEqual(before)
  }
  expect(await told()).toBe(earlier)
})

test('an agent that asks for what is so already gets the agent, and nobody is asked to approve it', async () => {
  const { agent, token } = await server.agentCaller({ name: 'Asks', description: 'Old' })
  const path = `/agents/${agent.id}`
  const boss = await server.createAgent({ name: 'Boss' })
  await server.ok(path, { method: 'PATCH', body: { reportingTo: boss.id } })
  const before = await server.ok(path)
  for (const body of [{}, { unknown: 1 }, { name: 'Asks', description: 'Old', reportingTo: '@boss' }]) {
    const reply = await server.call(path, { method: 'PATCH', body, token })
    expect([reply.status, reply.body]).toMatchObject([200, before])
  }
  expect((await server.ok('/approvals?trigger=platform_change')).data).toEqual([])
  const other = await server.call(path, { method: 'PATCH', body: { reportingTo: null }, token })
  expect(other.status).toBe(202)
})
