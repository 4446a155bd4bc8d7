import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { call, made, outcome, task } from './tasks-kit.ts'

let server: TestServer
let member: Person
beforeAll(async () => {
  server = await TestServer.start()
  member = await server.addPerson('member')
})
afterAll(() => server.stop())

const unknown = 'tsk_0000000000000000'
const get = (id: string, query = '') => server.ok(`/tasks/${id}${query}`)
const update = (id: string, body: unknown) => server.call(`/tasks/${id}`, { method: 'POST', body })

describe('create', () => {
  test('gives the task with all its fields', async () => {
    const agent = await server.createAgent({ name: 'Builder One' })
    const project = await server.ok('/projects', { body: { name: 'Site' } })
    const repo = await server.ok('/repos', { body: { gitRemote: 'git@github.com:acme/full.git' } })
    const parent = await task(server)
    const body = {
      title: ' Build the page ',
      description: '# Markdown',
      projectId: project.id,
      parentTaskId: parent.key.toLowerCase(),
      goalId: 'goal_abc',
      priority: 'high',
      dueAt: '2030-01-02T03:04:05+01:00',
      startAt: '2030-01-01',
      assignee: { type: 'agent', id: '@builder-one' },
      checklist: ['One', { text: 'Two' }],
      branchName: 'feature/page',
      repoId: repo.id,
      baseBranch: 'develop',
      environment: 'device',
      harness: 'claude',
      modelId: 'claude-opus-4-6',
      reasoningEffort: 'high',
      sandboxSize: 'small',
      notAField: 1,
    }
    const reply = await call(server, '/tasks', body, member.token)
    expect(reply.status).toBe(201)
    const item = (text: string) => ({
      id: expect.stringMatching(/^chk_[0-9A-Za-z]{16}$/),
      text,
      done: false,
      completedAt: null,
      completedBy: null,
    })
    expect(reply.body).toEqual({
      object: 'task',
      id: expect.stringMatching(/^tsk_[0-9A-Za-z]{16}$/),
      key: expect.stringMatching(/^MAI-\d+$/),
      workspaceId: member.workspaceId,
      projectId: expect.stringMatching(/^prj_[0-9A-Za-z]{22}$/),
      parentTaskId: parent.id,
      goalId: 'goal_abc',
      workflowRef: null,
      title: 'Build the page',
      description: '# Markdown',
      checklist: [item('One'), item('Two')],
      status: 'open',
      conditions: [{ type: 'scheduled', startAt: '2030-01-01T00:00:00.000Z' }],
      assignee: { type: 'agent', id: agent.id },
      priority: 'high',
      dueAt: '2030-01-02T02:04:05.000Z',
      startAt: '2030-01-01T00:00:00.000Z',
      createdBy: { type: 'user', id: member.userId },
      startedAt: null,
      completedAt: null,
      cancelledAt: null,
      archivedAt: null,
      branchName: 'feature/page',
      repoId: repo.id,
      baseBranch: 'develop',
      pullRequest: null,
      environment: 'device',
      harness: 'claude',
      modelId: 'claude-opus-4-6',
      reasoningEffort: 'high',
      sandboxSize: 'small',
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    for (const reference of [reply.body.id, reply.body.key]) expect(await get(reference)).toEqual(reply.body)
    // The project goes by either id.
    const listed = await server.ok(`/tasks?projectId=${reply.body.projectId}`)
    expect(listed.data.map((each: { id: string }) => each.id)).toEqual([reply.body.id])
  })

  test('needs only a title; the rest has its defaults', async () => {
    const created = await task(server)
    expect(created).toMatchObject({
      projectId: null,
      parentTaskId: null,
      description: null,
      checklist: [],
      conditions: [],
      assignee: null,
      priority: 'normal',
      startAt: null,
      environment: null,
    })
    for (const body of [
      {},
      { title: ' ' },
      { title: 'x', priority: 'top' },
      { title: 'x', assignee: { type: 'user', id: member.userId } },
      { title: 'x', dueAt: 'soon' },
      ...['a..b', '/a', 'a/', 'a//b', '-a', '.a', 'a/.b', 'a.lock', 'a.', 'a b', 'a~b', 'a:b', 'a\\b', 'a@{b'].map(
        (branchName) => ({
          title: 'x',
          branchName,
        }),
      ),
      { title: 'x', branchName: 'x'.repeat(256) },
      { title: 'x', dependsOn: Array.from({ length: 51 }, () => unknown) },
      { title: 'x', checklist: [''] },
    ])
      expect([body, await outcome(call(server, '/tasks', body))]).toEqual([body, '400 validation_error'])
  })

  test('asks for a key and answers a repeated one with the first task', async () => {
    const body = { title: 'Once only' }
    expect(outcomeOf(await server.call('/tasks', { body }))).toBe('400 idempotency_invalid_key')
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const first = await server.call('/tasks', { body, headers })
    const again = await server.call('/tasks', { body, headers })
    expect([again.status, again.body]).toEqual([201, first.body])
  })

  test('by an agent names it, and it may assign itself as `me`', async () => {
    const { agent, token } = await server.agentCaller()
    const own = await task(server, { assignee: 'me' }, token)
    expect(own).toMatchObject({ createdBy: { type: 'agent', id: agent.id }, assignee: { type: 'agent', id: agent.id } })
    const watchers = await server.ok(`/tasks/${own.id}/watchers`)
    expect(watchers.data).toMatchObject([{ subject: { type: 'agent', id: agent.id }, addedBy: 'auto', origin: null }])
  })

  test('refuses what does not exist or does not fit, each with its code', async () => {
    const elsewhere = await server.addPerson('owner', 'elsewhere')
    const foreignAgent = await server.createAgent({}, elsewhere.token)
    const foreignTask = await task(server, {}, elsewhere.token)
    const foreignProject = await server.ok('/projects', { body: { name: 'x' }, token: elsewhere.token })
    const hidden = await server.ok('/projects', { body: { name: 'Hidden', visibility: 'private' } })
    const agent = await server.createAgent()
    const outcomes: [Record<string, unknown>, string][] = [
      [{ assignee: '@nobody' }, '404 assignee_not_found'],
      [{ assignee: foreignAgent.id }, '404 assignee_not_found'],
      [{ assignee: agent.id, projectId: hidden.id }, '403 assignee_lacks_access'],
      [{ projectId: foreignProject.id }, '404 resource_not_found'],
      [{ projectId: 'prj_1' }, '404 resource_not_found'],
      [{ parentTaskId: 'MAI-99999' }, '404 parent_task_not_found'],
      [{ parentTaskId: foreignTask.id }, '404 parent_task_not_found'],
      [{ dependsOn: ['MAI-99999'] }, '404 dependency_task_not_found'],
      [{ dependsOn: [foreignTask.id] }, '400 cross_company_dependency'],
      // Keys are those of the own workspace.
      [{ dependsOn: [foreignTask.key] }, '404 dependency_task_not_found'],
      [{ baseBranch: 'main' }, '400 base_branch_without_repo'],
      [{ repoId: crypto.randomUUID() }, '404 repo_not_found'],
      [{ repoId: 'acme' }, '404 repo_not_found'],
      [{ modelId: 'gpt-0' }, '400 model_not_found'],
      [{ modelId: 'claude-opus-4-6', reasoningEffort: 'xhigh' }, '400 reasoning_effort_unsupported'],
      [{ modelId: 'claude-opus-4-6', harness: 'codex' }, '422 harness_model_unsupported'],
    ]
    for (const [body, expected] of outcomes)
      expect([body, await outcome(call(server, '/tasks', { title: 'Refused', ...body }))]).toEqual([body, expected])
    // Nothing of it was kept, and no key was used up.
    const [before, after] = [await task(server), await task(server)]
    expect(Number(after.key.slice(4)) - Number(before.key.slice(4))).toBe(1)
    expect((await server.ok('/tasks?q=Refused')).data).toEqual([])
  })

  test('a task of a private project is there only for whom the project is', async () => {
    const project = await server.ok('/projects', { body: { name: 'Mine', visibility: 'private' }, token: member.token })
    const hidden = await task(server, { projectId: project.id }, member.token)
    const other = await server.addPerson('member')
    const { token } = await server.agentCaller()
    for (const stranger of [other.token, token]) {
      const reply = await server.call(`/tasks/${hidden.id}`, { token: stranger })
      expect(outcomeOf(reply)).toBe('404 task_not_found')
      const { data } = await server.ok(`/tasks?ids=${hidden.id}`, { token: stranger })
      expect(data).toEqual([null])
    }
    expect((await server.ok(`/tasks/${hidden.id}`, { token: member.token })).id).toBe(hidden.id)
    expect((await get(hidden.id)).id).toBe(hidden.id)
  })
})

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

describe('update', () => {
  test('is POST, changes what is sent, and null clears', async () => {
    const one = await task(server, { description: 'd', goalId: 'goal_1', dueAt: '2030-01-01', priority: 'low' })
    expect((await update(one.id, { title: 'New title', priority: 'urgent' })).body).toMatchObject({
      title: 'New title',
      priority: 'urgent',
      description: 'd',
      goalId: 'goal_1',
    })
    const cleared = await update(one.id, { description: null, goalId: null, dueAt: null })
    expect(cleared.body).toMatchObject({ description: null, goalId: null, dueAt: null, title: 'New title' })
    expect(outcomeOf(await server.call(`/tasks/${one.id}`, { method: 'PATCH', body: {} }))).toBe('404 route_not_found')
    expect((await update(one.id, {})).body).toEqual(cleared.body)
  })

  test('leaves status, assignee and parent to their own routes', async () => {
    const one = await task(server)
    for (const body of [
      { status: 'done' },
      { assignee: null },
      { parentTaskId: null },
      { title: '' },
      { priority: null },
    ])
      expect([body, outcomeOf(await update(one.id, body))]).toEqual([body, '400 validation_error'])
  })

  test('a branch stays once it is set', async () => {
    const one = await task(server)
    expect((await update(one.id, { branchName: 'a/b' })).body.branchName).toBe('a/b')
    expect((await update(one.id, { branchName: 'a/b' })).status).toBe(200)
    for (const branchName of ['a/c', null])
      expect(outcomeOf(await update(one.id, { branchName }))).toBe('409 task_branch_immutable')
  })

  test('repo, base branch, model, effort and harness must go together, also with what is there', async () => {
    const repo = await server.ok('/repos', { body: { gitRemote: 'https://github.com/acme/update' } })
    const one = await task(server)
    expect(outcomeOf(await update(one.id, { baseBranch: 'main' }))).toBe('400 base_branch_without_repo')
    expect(outcomeOf(await update(one.id, { repoId: crypto.randomUUID() }))).toBe('404 repo_not_found')
    expect((await update(one.id, { repoId: repo.id, baseBranch: 'main' })).status).toBe(200)
    expect(outcomeOf(await update(one.id, { repoId: null }))).toBe('400 base_branch_without_repo')
    expect((await update(one.id, { repoId: null, baseBranch: null })).body).toMatchObject({ repoId: null })
    expect(outcomeOf(await update(one.id, { modelId: 'no-model' }))).toBe('400 model_not_found')
    expect((await update(one.id, { modelId: 'gpt-5', reasoningEffort: 'minimal' })).status).toBe(200)
    expect(outcomeOf(await update(one.id, { reasoningEffort: 'max' }))).toBe('400 reasoning_effort_unsupported')
    expect(outcomeOf(await update(one.id, { harness: 'claude' }))).toBe('422 harness_model_unsupported')
    expect((await update(one.id, { harness: 'opencode' })).body.harness).toBe('opencode')
  })

  test('a task is not moved to a project that its agent cannot see', async () => {
    const agent = await server.createAgent()
    const one = await task(server, { assignee: agent.id })
    const hidden = await server.ok('/projects', { body: { name: 'Hidden', visibility: 'private' } })
    expect(outcomeOf(await update(one.id, { projectId: hidden.id }))).toBe('403 assignee_lacks_access')
    await server.ok(`/projects/${hidden.id}`, { method: 'PATCH', body: { visibility: 'company' } })
    expect((await update(one.id, { projectId: hidden.id })).body.projectId).toMatch(/^prj_/)
    expect((await update(one.id, { projectId: null })).body.projectId).toBeNull()
  })
})

test('archive and unarchive, each also twice', async () => {
  const one = await task(server)
  const archived = await made(server, `/tasks/${one.id}/archive`)
  expect(archived.archivedAt).not.toBeNull()
  expect((await made(server, `/tasks/${one.id}/archive`)).archivedAt).toBe(archived.archivedAt)
  expect((await made(server, `/tasks/${one.id}/unarchive`)).archivedAt).toBeNull()
  expect((await made(server, `/tasks/${one.id}/unarchive`)).archivedAt).toBeNull()
})
