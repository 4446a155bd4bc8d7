import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { call, expectWakes, made, move, outcome, task } from './tasks-kit.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const numberOf = (key: string) => Number(key.slice(key.lastIndexOf('-') + 1))

describe('keys', () => {
  test('fifty at once get fifty in a row, and the workspace knows the last', async () => {
    const first = await task(server)
    const many = await Promise.all(Array.from({ length: 50 }, (_, n) => task(server, { title: `Load ${n}` })))
    const numbers = many.map(({ key }) => numberOf(key)).toSorted((a, b) => a - b)
    expect(numbers).toEqual(Array.from({ length: 50 }, (_, n) => numberOf(first.key) + 1 + n))
    const workspace = await server.ok(`/workspaces/${server.owner.workspaceId}`)
    expect([workspace.issuePrefix, workspace.issueCounter]).toEqual(['MAI', numberOf(first.key) + 50])
  })

  test('a key that is another task’s already is contention', async () => {
    const last = await task(server)
    const { root } = server.database
    const where = { id: server.owner.workspaceId }
    await root('workspaces')
      .where(where)
      .update({ issue_counter: numberOf(last.key) - 1 })
    expect(await outcome(call(server, '/tasks', { title: 'In between' }))).toBe('409 task_key_contention')
    await root('workspaces')
      .where(where)
      .update({ issue_counter: numberOf(last.key) })
    expect(numberOf((await task(server)).key)).toBe(numberOf(last.key) + 1)
  })

  test('the prefix of a project names no keys', async () => {
    const project = await server.ok('/projects', { body: { name: 'Shop', prefix: 'SHOP' } })
    expect((await task(server, { projectId: project.id })).key).toMatch(/^MAI-\d+$/)
  })
})

describe('duplicates', () => {
  const description = 'The page stays white on a phone when the name in the header is longer than the screen is wide'

  test('an open task that looks like the same work is named; force creates it all the same', async () => {
    const first = await task(server, { title: 'Fix the white login page' })
    for (const title of ['fix the WHITE login page!', 'Fix white login pages', 'White login page: fixing']) {
      const reply = await call(server, '/tasks', { title })
      expect([title, outcomeOf(reply)]).toEqual([title, '409 task_duplicate'])
      expect(reply.body.error.details.match).toEqual({
        id: first.id,
        key: first.key,
        title: first.title,
        status: 'open',
      })
    }
    const forced = await made(server, '/tasks', { title: 'Fix the white login page', force: true })
    expect(forced.id).not.toBe(first.id)
  })

  test('a like description makes likely titles the same work, another one does not', async () => {
    await task(server, { title: 'Header breaks on phones', description })
    const alike = { title: 'Phones: header broken', description: `${description}.` }
    expect(await outcome(call(server, '/tasks', alike))).toBe('409 task_duplicate')
    const other = 'Invoices of the last year are to be exported as one archive for the accountant by the end of May'
    expect((await call(server, '/tasks', { ...alike, description: other })).status).toBe(201)
  })

  test('what is finished, archived, of another project or parent, or another step, is no duplicate', async () => {
    const title = 'Write the release notes'
    const first = await task(server, { title })
    expect(await outcome(call(server, '/tasks', { title }))).toBe('409 task_duplicate')
    const project = await server.ok('/projects', { body: { name: 'Other' } })
    const parent = await task(server)
    await task(server, { title, projectId: project.id })
    await task(server, { title, parentTaskId: parent.id })
    expect(await outcome(call(server, '/tasks', { title, parentTaskId: parent.id }))).toBe('409 task_duplicate')
    await move(server, first.id, 'cancelled')
    const second = await task(server, { title })
    await made(server, `/tasks/${second.id}/archive`)
    await task(server, { title })
    await task(server, { title: 'Step 1 of the move' })
    await task(server, { title: 'Step 2 of the move' })
  })

  test('of two that come at once one is made', async () => {
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => call(server, '/tasks', { title: 'Race to be made' })),
    )
    expect(replies.map(outcomeOf).toSorted()).toEqual(['201', ...Array.from({ length: 4 }, () => '409 task_duplicate')])
  })
})

describe('batches', () => {
  const batch = (body: unknown) => call(server, '/tasks/batch', body)
  const counter = async () => (await server.ok(`/workspaces/${server.owner.workspaceId}`)).issueCounter as number

  test('are made in order, with defaults, parents and dependencies within the batch', async () => {
    const project = await server.ok('/projects', { body: { name: 'Batch' } })
    const agent = await server.createAgent()
    const reply = await batch({
      defaults: { projectId: project.id, priority: 'high', assignee: agent.id },
      tasks: [
        { title: 'Whole', ref: 'whole' },
        { title: 'Part one', parentTaskId: 'whole' },
        { title: 'Part two', parentTaskId: 0, dependsOn: [1, 'last'], priority: 'low' },
        { title: 'Last', ref: 'last', assignee: null },
      ],
    })
    expect([reply.status, reply.body.object]).toEqual([201, 'list'])
    const [whole, one, two, last] = reply.body.data
    expect(reply.body.data.map((each: { title: string }) => each.title)).toEqual([
      'Whole',
      'Part one',
      'Part two',
      'Last',
    ])
    expect(numberOf(last.key) - numberOf(whole.key)).toBe(3)
    for (const each of reply.body.data) expect(each.projectId).toBe(whole.projectId)
    expect([one.parentTaskId, two.parentTaskId, last.parentTaskId]).toEqual([whole.id, whole.id, null])
    expect([whole.priority, two.priority]).toEqual(['high', 'low'])
    expect([one.assignee?.id, last.assignee]).toEqual([agent.id, null])
    expect(two.conditions).toEqual([{ type: 'blocked', reason: 'dependency' }])
    const { blockedBy } = await server.ok(`/tasks/${two.id}/dependencies`)
    expect(new Set(blockedBy.map((each: { id: string }) => each.id))).toEqual(new Set([one.id, last.id]))
    await expectWakes(server, one.id, ['assignment'])
    expect((await batch([{ title: 'A bare list' }])).body.data).toHaveLength(1)
  })

  test('that wait for many tasks do not search the database for a circle', async () => {
    const blocker = await task(server)
    const searches: string[] = []
    const listen = ({ sql }: { sql: string }) => void (/waits_for/.test(sql) && searches.push(sql))
    server.database.root.on('query', listen)
    const tasks = ['One', 'Two'].map((title) => ({ title: `${title} waits`, dependsOn: [blocker.id] }))
    expect((await batch(tasks)).status).toBe(201)
    server.database.root.off('query', listen)
    // It took 170 seconds for a hundred tasks which waited for fifty each, in a workspace with 30,000 dependencies.
    expect(searches).toEqual([])
  })

  test('are all or nothing, and say which task was wrong', async () => {
    const before = await counter()
    const reply = await batch({ tasks: [{ title: 'Good one' }, { title: 'Bad one', assignee: '@nobody' }] })
    expect(outcomeOf(reply)).toBe('404 assignee_not_found')
    expect(reply.body.error).toMatchObject({ param: 'tasks.1.assignee', details: { index: 1 } })
    expect((await server.ok('/tasks?q=Good one')).data).toEqual([])
    expect(await counter()).toBe(before)
  })

  test('that hold the same work twice say so by its place, as its key is that of no task', async () => {
    const reply = await batch([{ title: 'Lay the table' }, { title: 'Boil the eggs' }, { title: 'lay the table!' }])
    expect(outcomeOf(reply)).toBe('409 task_duplicate')
    const { message, details } = reply.body.error
    expect(details).toEqual({ match: { index: 0, title: 'Lay the table', status: 'open' }, index: 2 })
    expect(message).toMatch(/^Task 0 of the batch looks like the same work: Lay the table\./)
    const first = await task(server, { title: 'Lay the table' })
    const { error } = (await batch([{ title: 'Lay the table' }])).body
    expect(error.details.match).toMatchObject({ id: first.id, key: first.key })
  })

  test('refuse what each task may be refused for', async () => {
    const elsewhere = await server.addPerson('owner', 'elsewhere')
    const foreign = await task(server, {}, elsewhere.token)
    const hidden = await server.ok('/projects', { body: { name: 'Hidden', visibility: 'private' } })
    const agent = await server.createAgent()
    const deep = await chain(4)
    const one = (item: Record<string, unknown>) => ({ tasks: [{ title: 'Something else', ...item }] })
    const outcomes: [unknown, string][] = [
      [{ tasks: [{ title: 'Twice over' }, { title: 'twice over' }] }, '409 task_duplicate'],
      [one({ assignee: agent.id, projectId: hidden.id }), '403 assignee_lacks_access'],
      [one({ parentTaskId: 'MAI-99999' }), '404 parent_task_not_found'],
      [one({ parentTaskId: deep.at(-1) }), '400 parent_task_depth_exceeded'],
      [one({ dependsOn: [0] }), '400 dependency_cycle'],
      [one({ dependsOn: ['MAI-99999'] }), '404 dependency_task_not_found'],
      [one({ dependsOn: [foreign.id] }), '400 cross_company_dependency'],
      [one({ baseBranch: 'main' }), '400 base_branch_without_repo'],
      [one({ repoId: crypto.randomUUID() }), '404 repo_not_found'],
      [one({ modelId: 'gpt-0' }), '400 model_not_found'],
      [one({ modelId: 'gpt-5', reasoningEffort: 'max' }), '400 reasoning_effort_unsupported'],
      [one({ modelId: 'gpt-5', harness: 'claude' }), '422 harness_model_unsupported'],
      [
        {
          tasks: [
            { title: 'Hen', ref: 'hen', dependsOn: ['egg'] },
            { title: 'Egg', ref: 'egg', dependsOn: ['hen'] },
          ],
        },
        '400 dependency_cycle',
      ],
      [{ tasks: [] }, '400 validation_error'],
      [{ tasks: Array.from({ length: 101 }, (_, n) => ({ title: `Step ${n}` })) }, '400 validation_error'],
      [{}, '400 validation_error'],
    ]
    for (const [body, expected] of outcomes) expect([body, await outcome(batch(body))]).toEqual([body, expected])
  })

  test('a lagging counter is contention there, too', async () => {
    const last = await task(server)
    const { root } = server.database
    const where = { id: server.owner.workspaceId }
    await root('workspaces')
      .where(where)
      .update({ issue_counter: numberOf(last.key) - 1 })
    expect(await outcome(batch([{ title: 'In between' }]))).toBe('409 task_key_contention')
    await root('workspaces')
      .where(where)
      .update({ issue_counter: numberOf(last.key) })
  })

  test('are invalid by their defaults, their names or their depth', async () => {
    const item = { title: 'Never made' }
    const level = (n: number) => ({ title: `Level ${n}`, ...(n === 0 ? {} : { parentTaskId: n - 1 }) })
    const deep = await chain(4)
    const bodies: unknown[] = [
      { defaults: { assignee: '@nobody' }, tasks: [item] },
      { defaults: { projectId: crypto.randomUUID() }, tasks: [item] },
      { defaults: { parentTaskId: 'MAI-99999' }, tasks: [item] },
      { defaults: { modelId: 'gpt-5', harness: 'claude' }, tasks: [item] },
      { defaults: { repoId: crypto.randomUUID() }, tasks: [item] },
      { defaults: { parentTaskId: deep.at(-1) }, tasks: [item] },
      {
        tasks: [
          { ...item, ref: 'a' },
          { title: 'Another', ref: 'a' },
        ],
      },
      { tasks: [{ ...item, parentTaskId: 1 }, { title: 'Another' }] },
      { tasks: [{ ...item, dependsOn: [7] }] },
      { tasks: [0, 1, 2, 3, 4].map(level) },
    ]
    for (const body of bodies) expect([body, await outcome(batch(body))]).toEqual([body, '400 invalid_batch'])
    expect((await batch({ tasks: [0, 1, 2, 3].map(level) })).status).toBe(201)
  })

  /** Ids of tasks each below the one before. */
  async function chain(levels: number, person?: Person): Promise<string[]> {
    const ids: string[] = []
    while (ids.length < levels)
      ids.push((await task(server, ids.length === 0 ? {} : { parentTaskId: ids.at(-1) }, person?.token)).id)
    return ids
  }
})
