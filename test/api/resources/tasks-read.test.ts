import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { call, made, outcome, task } from './tasks-kit.ts'

// Tasks as they are read: one, several, lists and their filters.

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

const unknown = 'tsk_0000000000000000'
const get = (id: string, query = '') => server.ok(`/tasks/${id}${query}`)

describe('read', () => {
  test('several by ids or keys come as asked, with null for what is not there', async () => {
    const [a, b] = [await task(server, { description: 'x' }), await task(server)]
    const { object, data } = await server.ok(`/tasks?ids=${b.key},nothing,${a.id},${unknown},${a.id}`)
    expect(object).toBe('list')
    expect(data.map((each: { id: string } | null) => each?.id ?? null)).toEqual([b.id, null, a.id, null, a.id])
    expect(data[2]).not.toHaveProperty('description')
    const full = await server.ok(`/tasks?ids=${a.id}&include=description`)
    expect(full.data[0].description).toBe('x')
    const many = Array.from({ length: 101 }, () => a.id).join(',')
    expect(outcomeOf(await server.call(`/tasks?ids=${many}`))).toBe('400 too_many_ids')
    expect(outcomeOf(await server.call(`/tasks?ids=${a.id}&q=x`))).toBe('400 ids_exclusive')
    expect(outcomeOf(await server.call(`/tasks?ids=${a.id}&limit=1`))).toBe('400 ids_exclusive')
  })

  test('a list pages by task id in both directions, newest first', async () => {
    const person = await server.addPerson('owner', 'paged')
    const tasks: { id: string; key: string }[] = []
    for (let n = 0; n < 5; n++) {
      tasks.push(await task(server, {}, person.token))
      server.world.advance(1)
    }
    const keys = async (query: string) => {
      const page = await server.ok(`/tasks${query}`, { token: person.token })
      return [page.data.map((each: { key: string }) => each.key), page.hasMore, page.nextCursor]
    }
    const key = (n: number) => tasks[n]!.key
    expect(await keys('?limit=2')).toEqual([[key(4), key(3)], true, tasks[3]!.id])
    expect(await keys(`?limit=2&startingAfter=${tasks[3]!.id}`)).toEqual([[key(2), key(1)], true, tasks[1]!.id])
    expect(await keys(`?limit=2&startingAfter=${tasks[1]!.id}`)).toEqual([[key(0)], false, null])
    expect((await keys(`?limit=2&endingBefore=${tasks[0]!.id}`))[0]).toEqual([key(2), key(1)])
    const failed = async (query: string) => outcomeOf(await server.call(`/tasks${query}`, { token: person.token }))
    expect(await failed(`?startingAfter=${unknown}`)).toBe('400 invalid_cursor')
    expect(await failed(`?startingAfter=${tasks[0]!.id}&endingBefore=${tasks[1]!.id}`)).toBe('400 invalid_cursor')
    for (const query of ['?limit=0', '?limit=101', '?status=blocked', `?q=${'x'.repeat(101)}`])
      expect(await failed(query)).toBe('400 validation_error')
    expect(await failed('?include=everything')).toBe('400 invalid_include')
  })

  test('a list filters, and hides archived ones unless asked', async () => {
    const person = await server.addPerson('owner', 'filtered')
    const of = (body: Record<string, unknown>) => task(server, body, person.token)
    const agent = await server.createAgent({}, person.token)
    const parent = await of({ title: 'The parent', priority: 'urgent' })
    const child = await of({ title: 'Part of it', parentTaskId: parent.id, description: 'with a Needle' })
    const given = await of({ title: 'Given away', assignee: agent.id, startAt: '2040-01-01' })
    const stale = await of({ title: 'Stale' })
    await made(server, `/tasks/${stale.id}/archive`, undefined, person.token)
    const ids = async (query: string) =>
      (await server.ok(`/tasks?${query}`, { token: person.token })).data
        .map((each: { id: string }) => each.id)
        .toSorted()
    const sorted = (...tasks: { id: string }[]) => tasks.map(({ id }) => id).toSorted()
    expect(await ids('')).toEqual(sorted(parent, child, given))
    expect(await ids('archived=true')).toEqual(sorted(parent, child, given, stale))
    expect(await ids('priority=urgent,low')).toEqual(sorted(parent))
    expect(await ids(`assignee=${agent.id}`)).toEqual(sorted(given))
    expect(await ids('assignee=none')).toEqual(sorted(parent, child))
    expect(await ids('assignee=@nobody')).toEqual([])
    expect(await ids(`parentTaskId=${parent.key}`)).toEqual(sorted(child))
    expect(await ids('parentTaskId=none')).toEqual(sorted(parent, given))
    expect(await ids('parentTaskId=NO-1')).toEqual([])
    expect(await ids('q=needle')).toEqual(sorted(child))
    expect(await ids('status=done')).toEqual([])
    expect(await ids('projectId=none')).toEqual(sorted(parent, child, given))
    expect(await ids('projectId=nothing')).toEqual([])
  })

  test('related records are put in when asked for', async () => {
    const { agent } = await server.agentCaller()
    const parent = await task(server)
    const blocker = await task(server)
    const one = await task(server, { parentTaskId: parent.id, dependsOn: [blocker.key], assignee: agent.id })
    const full = await get(one.id, '?include=dependencies,watchers,parent,subtasks,runs,comments,conversation')
    expect(full).toMatchObject({
      parent: { id: parent.id, key: parent.key, title: parent.title, status: 'open', assignee: null },
      dependencies: { blockedBy: [{ id: blocker.id, key: blocker.key, type: 'blocks' }], blocking: [] },
      watchers: [{ subject: { type: 'user', id: server.owner.userId }, addedBy: 'auto' }],
      subtasks: [],
      runs: [],
      comments: [],
      conversation: null,
    })
    await made(server, `/tasks/${one.id}/comments`, { content: 'Seen.' })
    const talked = await get(one.id, '?include=comments&include=conversation')
    expect(talked.comments).toMatchObject([{ body: 'Seen.', taskId: one.key }])
    expect(talked.conversation).toMatchObject({ object: 'conversation', taskId: one.id, messageCount: 1 })
    expect((await get(parent.id, '?include=subtasks')).subtasks).toMatchObject([{ id: one.id }])
    expect(outcomeOf(await server.call(`/tasks/${one.id}?include=nothing`))).toBe('400 invalid_include')
  })

  test('an unknown task, and `current` outside a run of a task, is not found on every route', async () => {
    const { token } = await server.agentCaller()
    for (const id of [unknown, 'MAI-99999', 'current', 'x'])
      for (const path of ['', '/history', '/activity', '/dependencies', '/watchers'])
        expect(outcomeOf(await server.call(`/tasks/${id}${path}`, { token }))).toBe('404 task_not_found')
    const writes: [string, unknown][] = [
      ['', { title: 'x' }],
      ['/transition', { status: 'done' }],
      ['/assign', { assignee: null }],
      ['/move', { parentTaskId: null }],
      ['/archive', undefined],
      ['/unarchive', undefined],
      ['/read', undefined],
      ['/checklist', { text: 'x' }],
      ['/checklist/chk_1', { done: true }],
      ['/dependencies', { dependsOnTaskId: 'x' }],
      ['/dependencies/x/remove', undefined],
      ['/watchers', { type: 'user', id: 'x' }],
      ['/watchers/remove', { type: 'user', id: 'x' }],
    ]
    for (const [path, body] of writes)
      expect([path, await outcome(call(server, `/tasks/${unknown}${path}`, body))]).toEqual([
        path,
        '404 task_not_found',
      ])
  })

  test('a read mark says when', async () => {
    const one = await task(server)
    const { lastReadAt } = await server.ok(`/tasks/${one.id}/read`, { method: 'POST' })
    expect(Math.abs(Date.parse(lastReadAt) - server.world.now())).toBeLessThan(5_000)
    // It is the one of its comments, too.
    await made(server, `/tasks/${one.id}/comments`, { content: 'News' }, member.token)
    const unread = async () => (await get(one.id, '?include=conversation')).conversation.unreadCount
    expect(await unread()).toBe(1)
    await server.ok(`/tasks/${one.id}/read`, { method: 'POST' })
    expect(await unread()).toBe(0)
  })
})
