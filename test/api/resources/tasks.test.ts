import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { call, made, outcome, task } from './tasks-kit.ts'

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

const unknown = 'tsk_0000000000000000'
const get = (id: string, query = '') => server.ok(`/tasks/${id}${query}`)
const update = (id: string, body: unknown) => server.call(`/tasks/${id}`, { method: 'POST', body })

describe('create', () => {
  test('returns the task with all its fields', async () => {
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
