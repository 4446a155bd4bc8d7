import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../../shared/api/index.ts'
import { outcomeOf, type AgentCaller, type CallOptions, type Person, type TestServer } from '../../kit/server.ts'
import { makeTask } from '../facts/kit/tasks.ts'
import { as, base64, startFilesServer, upload } from './files-kit.ts'
import { isLong } from '../../kit/forms.ts'
import { isTriedHere } from '../../kit/replicas.ts'

// One private file, and everybody who asks for it by every route.

let server: TestServer
let people: Record<string, string>
let uploader: AgentCaller
let owner: Person
beforeAll(async () => {
  ;({ server } = await startFilesServer())
  owner = await server.addPerson('member')
  uploader = await server.agentCaller()
  people = {
    owner: owner.token,
    admin: (await server.addPerson('admin')).token,
    member: (await server.addPerson('member')).token,
    uploader: uploader.token,
    agent: (await server.agentCaller()).token,
    stranger: (await server.addPerson('owner', 'elsewhere')).token,
  }
})
afterAll(() => server.stop())

interface Private {
  id: string
  revisionId: string
  relationId: string
}

/** A private file, with a version and a relation to a task that the workspace sees. */
async function privateFile(token: string, isOwners: boolean): Promise<Private> {
  const task = await makeTask({ server })
  const relations = [{ entityType: 'task', entityId: task.id, role: 'spec' }]
  const { id } = await upload(server, { token, relations, ...(isOwners && { visibility: 'private' }) })
  if (!isOwners) await server.ok(`/files/${id}`, { method: 'PATCH', body: { visibility: 'private' } })
  const [revision] = (await server.ok(`/files/${id}/revisions`)).data
  const [relation] = (await server.ok(`/files/${id}/relations`)).data
  return { id, revisionId: revision.id, relationId: relation.id }
}

type Ask = (file: Private, options: CallOptions) => Promise<boolean>
const answers =
  (path: (file: Private) => string, more: CallOptions = {}): Ask =>
  async (file, options) => {
    const reply = await server.call(path(file), { ...more, ...options })
    if (reply.status === 404 && /resource_not_found|relation_not_found/.test(outcomeOf(reply))) return false
    if (reply.status < 300 || /owner_transfer|restore_forbidden|not_deleted/.test(outcomeOf(reply))) return true
    throw new Error(`${path(file)}: ${outcomeOf(reply)}`)
  }
const isIn = (list: unknown, id: string) => JSON.stringify(list).includes(id)

/** Whether the caller learns by this route that there is such a file. */
const asks: Record<string, Ask> = {
  'files.list': async ({ id }, options) => {
    const lists = [
      await server.ok('/files?limit=100', options),
      await server.ok('/files?q=notes&limit=100', options),
      await server.ok(`/files?ids=${id}`, options),
    ]
    const seen = lists.map((list) => isIn(list, id))
    expect(new Set(seen).size).toBe(1)
    return seen[0]!
  },
  'files.create': async () => true,
  'files.get': answers(({ id }) => `/files/${id}?expand[]=content&expand[]=relations`),
  'files.update': answers(({ id }) => `/files/${id}`, { method: 'PATCH', body: { description: 'x' } }),
  'files.download': answers(({ id }) => `/files/${id}/download`),
  'files.revisions.list': answers(({ id }) => `/files/${id}/revisions`),
  'files.revisions.download': answers(({ id, revisionId }) => `/files/${id}/revisions/${revisionId}/download`),
  'files.replace': answers(({ id }) => `/files/${id}/replace`, { body: { contentBase64: base64('x') } }),
  'files.restore': answers(({ id }) => `/files/${id}/restore`, { method: 'POST' }),
  'files.transferOwner': answers(({ id }) => `/files/${id}/transfer-owner`, {
    body: { newOwnerId: 'usr_0000000000000000' },
  }),
  'files.relations.list': answers(({ id }) => `/files/${id}/relations`),
  'files.relations.get': answers(({ id, relationId }) => `/files/${id}/relations/${relationId}`),
  'files.relations.add': async (file, options) => {
    const task = await makeTask({ server, ...(options.token == null ? {} : { token: options.token }) })
    return answers(({ id }) => `/files/${id}/relations`, {
      body: { entityType: 'task', entityId: task.id, role: 'more' },
    })(file, options)
  },
  'files.bulkRelate': async ({ id }, options) => {
    const task = await makeTask({ server, ...(options.token == null ? {} : { token: options.token }) })
    const body = { fileIds: [id], entityType: 'task', entityId: task.id, role: 'many' }
    const { results } = await server.ok('/files/bulk-relate', { body, ...options })
    return results[0].code !== 'file_not_found'
  },
  'files.relations.remove': answers(({ id, relationId }) => `/files/${id}/relations/${relationId}`, {
    method: 'DELETE',
  }),
  'files.bulkDelete': async ({ id }, options) => {
    const { results } = await server.ok('/files/bulk-delete', { body: { fileIds: [id] }, ...options })
    if (results[0].ok) await server.ok(`/files/${id}/restore`, { method: 'POST' })
    return results[0].code !== 'file_not_found'
  },
  'files.delete': answers(({ id }) => `/files/${id}`, { method: 'DELETE' }),
}

test('every route of files is asked', () => {
  const routes = contract.filter(({ id }) => id.startsWith('files.')).map(({ id }) => id)
  expect(Object.keys(asks).toSorted()).toEqual(routes.toSorted())
})

const seers: readonly [file: string, who: readonly string[]][] = [
  ["a person's", ['owner', 'admin']],
  ["an agent's", ['uploader', 'admin']],
]
const some = ['files.list', 'files.get', 'files.bulkDelete']
// One of them on replicas: what a query of files finds is the same for the other.
test.each(isTriedHere ? seers : seers.slice(0, 1))(
  '%s private file is there for %j and nobody else',
  async (kind, who) => {
    const made = () => (kind === "a person's" ? privateFile(owner.token, true) : privateFile(uploader.token, false))
    const others = Object.keys(people).filter((name) => !who.includes(name))
    // All routes ask one query for the file, so some of them show in the short form whom it knows of the other kind.
    const isAsked = (route: string) => isLong || kind === seers[0]![0] || some.includes(route)
    for (const [route, ask] of Object.entries(asks)) {
      if (route === 'files.create' || !isAsked(route)) continue
      // Whoever does not see it changes nothing, so they may all have the same, and the first who sees it after them.
      const hidden = await made()
      for (const name of others)
        expect([route, name, await ask(hidden, as(people[name]!))]).toEqual([route, name, false])
      for (const name of who)
        expect([route, name, await ask(name === who[0] ? hidden : await made(), as(people[name]!))]).toEqual([
          route,
          name,
          true,
        ])
    }
  },
)

test('who makes a file private or open is its owner or an admin, and an agent owns none', async () => {
  const flip = async (id: string, token: string, visibility: string) =>
    outcomeOf(await server.call(`/files/${id}`, { method: 'PATCH', body: { visibility }, token }))
  const mine = await upload(server, { token: owner.token })
  expect(await flip(mine.id, people['member']!, 'private')).toBe('403 visibility_flip_forbidden')
  expect(await flip(mine.id, people['owner']!, 'private')).toBe('200')
  expect(await flip(mine.id, people['admin']!, 'company')).toBe('200')
  const theirs = await upload(server, { token: uploader.token })
  expect(theirs.ownerUserId).toBeNull()
  expect(theirs.createdBy).toMatchObject({ type: 'agent', id: uploader.agent.id })
  expect(await flip(theirs.id, uploader.token, 'private')).toBe('403 visibility_flip_forbidden')
  expect(await flip(theirs.id, people['admin']!, 'private')).toBe('200')
  expect(await flip(theirs.id, uploader.token, 'company')).toBe('403 visibility_flip_forbidden')
})

test('a file that is given away is private to its new owner', async () => {
  const heir = await server.addPerson('member')
  const { id } = await upload(server, { token: owner.token, visibility: 'private' })
  const body = { newOwnerId: heir.userId }
  const given = await server.ok(`/files/${id}/transfer-owner`, { body, token: owner.token })
  expect(given.ownerUserId).toBe(heir.userId)
  expect((await server.call(`/files/${id}`, as(owner.token))).status).toBe(404)
  expect((await server.call(`/files/${id}`, as(heir.token))).status).toBe(200)
  const again = await server.call(`/files/${id}/transfer-owner`, { body, token: heir.token })
  expect(outcomeOf(again)).toBe('409 owner_transfer.same_owner')
})

test('a thing that somebody does not see does not tell them that files belong to it', async () => {
  const { id: projectId } = await server.ok('/projects', { body: { name: 'Secret', visibility: 'private' } })
  const task = await makeTask({ server }, { projectId })
  const { id } = await upload(server, {})
  for (const [entityType, entityId] of [
    ['project', projectId],
    ['task', task.key],
  ])
    await server.ok(`/files/${id}/relations`, { body: { entityType, entityId, role: 'spec' } })
  const { data } = await server.ok(`/files/${id}/relations`)
  expect(data).toMatchObject([
    { entityType: 'task', entityId: task.id, fileId: id },
    { entityType: 'project', entityId: expect.stringMatching(/^prj_/) },
  ])
  const other = as(people['member']!)
  expect((await server.ok(`/files/${id}/relations`, other)).data).toEqual([])
  expect((await server.ok(`/files/${id}?expand[]=relations`, other)).relations).toEqual([])
  expect((await server.call(`/files/${id}/relations/${data[0].id}`, other)).status).toBe(404)
  expect((await server.ok(`/files?entityType=task&entityId=${task.key}`)).data).toHaveLength(1)
  expect((await server.ok(`/files?entityType=task&entityId=${task.key}`, other)).data).toEqual([])
  const body = { entityType: 'task', entityId: task.key, role: 'other' }
  expect(outcomeOf(await server.call(`/files/${id}/relations`, { body, ...other }))).toBe('404 resource_not_found')
})

test('a page of relations is full of those that its reader sees', async () => {
  const { id: projectId } = await server.ok('/projects', { body: { name: 'Hidden', visibility: 'private' } })
  const [hidden, open] = [await makeTask({ server }, { projectId }), await makeTask({ server })]
  const { id } = await upload(server, {})
  const relate = (task: { id: string }, role: string) =>
    server.ok(`/files/${id}/relations`, { body: { entityType: 'task', entityId: task.id, role } })
  for (const each of [1, 2, 3]) {
    await relate(open, `open ${each}`)
    await relate(hidden, `hidden ${each}`)
  }
  // The newest ones, and more than are read at once.
  const many = Array.from({ length: 150 }, (_, each) => ({
    id: crypto.randomUUID(),
    file_id: id,
    entity_type: 'task',
    entity_id: hidden.id,
    role: `${each}`,
    created_at: server.world.now() + 60_000,
  }))
  await server.database.root('file_relations').insert(many)
  const other = as(people['member']!)
  const page = async (query: string) => {
    const { data, hasMore, nextCursor } = await server.ok(`/files/${id}/relations?${query}`, other)
    return { roles: data.map(({ role }: { role: string }) => role), hasMore, nextCursor }
  }
  const first = await page('limit=2')
  expect(first).toMatchObject({ roles: ['open 3', 'open 2'], hasMore: true })
  // The cursor names what was shown, and none of what is hidden.
  const shown = (await server.ok(`/files/${id}/relations`, other)).data
  expect(Buffer.from(first.nextCursor, 'base64url').toString()).toContain(shown[1].id)
  expect(await page(`limit=2&after=${first.nextCursor}`)).toEqual({
    roles: ['open 1'],
    hasMore: false,
    nextCursor: null,
  })
  expect((await server.ok(`/files/${id}?expand[]=relations`, other)).relations).toEqual(shown)
  expect(await page('limit=3')).toMatchObject({ roles: ['open 3', 'open 2', 'open 1'], hasMore: false })
})

test('a run names its own task and itself as current', async () => {
  const task = await makeTask({ server })
  await server.database.root('runs').where({ id: uploader.runId }).update({ task_id: task.id })
  const relations = [
    { entityType: 'task', entityId: 'current', role: 'attachment' },
    { entityType: 'run', entityId: 'current', role: 'attachment' },
    { entityType: 'run', entityId: 'current', role: 'attachment' },
  ]
  const { id } = await upload(server, { token: uploader.token, relations })
  const { data } = await server.ok(`/files/${id}/relations`)
  const named = data.map((relation: { entityId: string }) => relation.entityId)
  expect(named).toHaveLength(2)
  expect(new Set(named)).toEqual(new Set([uploader.runId, task.id]))
  await server.database.root('runs').where({ id: uploader.runId }).update({ task_id: null })
})
