import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { call, made, move, outcome, task } from './tasks-kit.ts'

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

describe('checklists', () => {
  test('items are added, ticked off, moved, put away and brought back', async () => {
    const one = await task(server, { checklist: ['a', 'b'] })
    const texts = async () =>
      (await server.ok(`/tasks/${one.id}`)).checklist.map((item: { text: string; done: boolean }) => item.text)
    const added = await call(server, `/tasks/${one.id}/checklist`, { text: ' c ' }, member.token)
    expect([added.status, added.body]).toEqual([
      201,
      { id: expect.stringMatching(/^chk_/), text: 'c', done: false, completedAt: null, completedBy: null },
    ])
    const item = (body: unknown, token?: string) =>
      made(server, `/tasks/${one.id}/checklist/${added.body.id}`, body, token)
    const { agent, token } = await server.agentCaller()
    const done = await item({ done: true }, token)
    expect(done).toMatchObject({ completedAt: expect.any(String), completedBy: { type: 'agent', id: agent.id } })
    // Ticked off once, it stays whose it was.
    expect(await item({ done: true, text: 'C' }, member.token)).toEqual({ ...done, text: 'C' })
    expect(await item({ done: false })).toMatchObject({ done: false, completedAt: null, completedBy: null })
    await item({ position: 0 })
    expect(await texts()).toEqual(['C', 'a', 'b'])
    await item({ position: 99 })
    expect(await texts()).toEqual(['a', 'b', 'C'])
    await item({ position: 1 })
    await item({ archived: true })
    expect(await texts()).toEqual(['a', 'b'])
    await made(server, `/tasks/${one.id}/checklist`, { text: 'd' })
    await item({ archived: false })
    expect(await texts()).toEqual(['a', 'b', 'd', 'C'])
  })

  test('no text is no item, and another task’s item is not there', async () => {
    const one = await task(server, { checklist: ['a'] })
    const other = await task(server, { checklist: ['b'] })
    const add = (body: unknown) => outcome(call(server, `/tasks/${one.id}/checklist`, body))
    for (const body of [{}, { text: '' }, { text: ' \n' }, { text: null }])
      expect([body, await add(body)]).toEqual([body, '400 invalid_checklist_item'])
    expect(await add({ text: 1 })).toBe('400 validation_error')
    const change = (id: string, body: unknown) => outcome(call(server, `/tasks/${one.id}/checklist/${id}`, body))
    expect(await change(one.checklist[0].id, { text: ' ' })).toBe('400 invalid_checklist_item')
    for (const id of [other.checklist[0].id, 'chk_0000000000000000', 'x'])
      expect(await change(id, { done: true })).toBe('404 checklist_item_not_found')
    expect(await change(one.checklist[0].id, { position: -1 })).toBe('400 validation_error')
  })

  test('of more than 200 items the first 200 are shown', async () => {
    const one = await task(server, { checklist: Array.from({ length: 200 }, (_, n) => `Item ${n}`) })
    const last = await made(server, `/tasks/${one.id}/checklist`, { text: 'One more' })
    const shown = (await server.ok(`/tasks/${one.id}`)).checklist
    expect([shown.length, shown.at(-1).text]).toEqual([200, 'Item 199'])
    await made(server, `/tasks/${one.id}/checklist/${last.id}`, { position: 0 })
    expect((await server.ok(`/tasks/${one.id}`)).checklist[0].text).toBe('One more')
  })

  test('have a thousand items at most, of which a page of tasks shows the first of each', async () => {
    const full = await task(server, { checklist: ['first'] })
    const row = await server.database.root('task_checklist_items').where({ task_id: full.id }).first()
    const rows = Array.from({ length: 999 }, (_, n) => ({ ...row, id: `chk_full${n}`, position: n + 1, text: `${n}` }))
    for (let at = 0; at < rows.length; at += 333)
      await server.database.root('task_checklist_items').insert(rows.slice(at, at + 333))
    expect(await outcome(call(server, `/tasks/${full.id}/checklist`, { text: 'x' }))).toBe('400 validation_error')
    const writes: string[] = []
    const listen = ({ sql }: { sql: string }) => void (/^update .?task_checklist_items/.test(sql) && writes.push(sql))
    for (const root of server.roots) root.on('query', listen)
    const change = (id: string, body: unknown) => made(server, `/tasks/${full.id}/checklist/${id}`, body)
    await change('chk_full998', { position: 0 })
    for (const root of server.roots) root.off('query', listen)
    // To write the place of each of 10,000 items held up the server for two seconds.
    expect(writes).toHaveLength(2)
    const { checklist } = await server.ok(`/tasks/${full.id}`)
    expect(checklist.map((item: { text: string }) => item.text).slice(0, 3)).toEqual(['998', 'first', '0'])
    await change('chk_full998', { archived: true })
    await made(server, `/tasks/${full.id}/checklist`, { text: 'in its place' })
    expect(await outcome(call(server, `/tasks/${full.id}/checklist/chk_full998`, { archived: false }))).toBe(
      '400 validation_error',
    )
    const long = Array.from({ length: 12 }, (_, n) => ({
      title: `Long list ${n}`,
      force: true,
      checklist: Array.from({ length: 200 }, (_, item) => `${item}`),
    }))
    const { data: many } = await made(server, '/tasks/batch', { tasks: long })
    const shown = many.map((one: { checklist: unknown[] }) => one.checklist.length)
    expect(shown.reduce((sum: number, one: number) => sum + one, 0)).toBe(2_000)
    expect(Math.min(...shown)).toBe(166)
  })

  test('many added at once keep places of their own', async () => {
    const one = await task(server)
    await Promise.all(Array.from({ length: 8 }, (_, n) => made(server, `/tasks/${one.id}/checklist`, { text: `${n}` })))
    const { checklist } = await server.ok(`/tasks/${one.id}`)
    expect(new Set(checklist.map((item: { text: string }) => item.text)).size).toBe(8)
    await made(server, `/tasks/${one.id}/checklist/${checklist[7].id}`, { position: 0 })
    expect((await server.ok(`/tasks/${one.id}`)).checklist[0].id).toBe(checklist[7].id)
  })
})

describe('dependencies', () => {
  const depend = (id: string, dependsOnTaskId: string, type?: string) =>
    call(server, `/tasks/${id}/dependencies`, { dependsOnTaskId, ...(type === undefined ? {} : { type }) })

  test('are read from both ends; related ones hold nothing up', async () => {
    const [a, b, c] = [await task(server), await task(server), await task(server)]
    const added = await depend(a.id, b.key)
    expect([added.status, added.body]).toEqual([
      201,
      { taskId: a.id, dependsOnTaskId: b.id, type: 'blocks', createdAt: expect.any(String) },
    ])
    expect((await depend(a.id, c.id, 'related')).body.type).toBe('related')
    const again = await depend(a.id, b.id)
    expect([again.status, again.body]).toEqual([200, added.body])
    const ofA = await server.ok(`/tasks/${a.id}/dependencies`)
    expect(ofA.blockedBy.map((each: { key: string; type: string }) => [each.key, each.type])).toEqual([
      [b.key, 'blocks'],
      [c.key, 'related'],
    ])
    expect(ofA.blocking).toEqual([])
    expect((await server.ok(`/tasks/${b.id}/dependencies`)).blocking).toMatchObject([{ id: a.id, title: a.title }])
    expect((await server.ok(`/tasks/${a.id}`)).conditions).toEqual([{ type: 'blocked', reason: 'dependency' }])
    // The type can be changed.
    const changed = await depend(a.id, b.id, 'related')
    expect([changed.status, changed.body.type]).toEqual([200, 'related'])
    expect((await server.ok(`/tasks/${a.id}`)).conditions).toEqual([])
    const remove = (id: string) => call(server, `/tasks/${a.id}/dependencies/${id}/remove`)
    // Asked for with a type, it goes only when it is of that one.
    const blocking = call(server, `/tasks/${a.id}/dependencies/${b.id}/remove`, { type: 'blocks' })
    expect(outcomeOf(await blocking)).toBe('404 dependency_not_found')
    expect((await remove(b.key)).body).toMatchObject({ taskId: a.id, dependsOnTaskId: b.id, type: 'related' })
    for (const id of [b.id, 'MAI-99999']) expect(outcomeOf(await remove(id))).toBe('404 dependency_not_found')
  })

  test('make no loops', async () => {
    const [a, b, c] = [await task(server), await task(server), await task(server)]
    expect(outcomeOf(await depend(a.id, a.key))).toBe('400 dependency_cycle')
    expect(outcomeOf(await depend(a.id, a.id, 'related'))).toBe('400 dependency_cycle')
    await depend(a.id, b.id)
    await depend(b.id, c.id)
    expect(outcomeOf(await depend(c.id, a.id))).toBe('400 dependency_cycle')
    expect((await depend(c.id, a.id, 'related')).status).toBe(201)
    expect(outcomeOf(await depend(c.id, a.id, 'blocks'))).toBe('400 dependency_cycle')
  })

  test('there are five hundred of a task at most, in either direction', async () => {
    const [blocker, waiting] = [await task(server), await task(server)]
    const others: { id: string }[] = []
    for (let batch = 0; batch < 5; batch++) {
      const tasks = Array.from({ length: 100 }, (_, n) => ({
        title: `Waits ${batch} ${n}`,
        force: true,
        dependsOn: [blocker.id],
      }))
      others.push(...(await made(server, '/tasks/batch', { tasks })).data)
    }
    const add = (from: { id: string }, to: { id: string }) =>
      outcome(call(server, `/tasks/${from.id}/dependencies`, { dependsOnTaskId: to.id }))
    expect(await add(waiting, blocker)).toBe('400 validation_error')
    expect(await outcome(call(server, '/tasks', { title: 'One more', dependsOn: [blocker.id] }))).toBe(
      '400 validation_error',
    )
    // What is there already stays.
    expect(await add(others[0]!, blocker)).toBe('200')
    const link = { task_id: waiting.id, type: 'related', created_at: 1 }
    await server.database
      .root('task_dependencies')
      .insert(others.map(({ id }) => ({ ...link, depends_on_task_id: id })))
    expect(await add(waiting, await task(server))).toBe('400 validation_error')
    const asked: string[] = []
    const listen = ({ sql }: { sql: string }) => void asked.push(sql)
    for (const root of server.roots) root.on('query', listen)
    expect((await move(server, blocker.id, 'done')).status).toBe(200)
    for (const root of server.roots) root.off('query', listen)
    // Each of 5,000 tasks by itself held up who else wrote for a minute and more.
    expect(asked.length).toBeLessThan(200)
  })

  test('two that would close a loop together are not both made', async () => {
    for (let n = 0; n < 5; n++) {
      const [a, b] = [await task(server), await task(server)]
      const replies = await Promise.all([depend(a.id, b.id), depend(b.id, a.id)])
      expect(replies.map(outcomeOf).toSorted()).toEqual(['201', '400 dependency_cycle'])
    }
  })

  test('are on tasks of the own workspace that can be seen', async () => {
    const elsewhere = await server.addPerson('owner', 'elsewhere')
    const foreign = await task(server, {}, elsewhere.token)
    const one = await task(server)
    expect(outcomeOf(await depend(one.id, foreign.id))).toBe('400 cross_company_dependency')
    expect(outcomeOf(await depend(one.id, 'tsk_0000000000000000'))).toBe('404 dependency_task_not_found')
    expect(outcomeOf(await depend(one.id, 'MAI-99999'))).toBe('404 dependency_task_not_found')
    expect(outcomeOf(await depend(one.id, one.id, 'follows'))).toBe('400 validation_error')
    const project = await server.ok('/projects', { body: { name: 'Mine', visibility: 'private' } })
    const hidden = await task(server, { projectId: project.id })
    await depend(one.id, hidden.id)
    const seen = await server.ok(`/tasks/${one.id}/dependencies`, { token: member.token })
    expect(seen.blockedBy).toEqual([])
    const shown = await server.ok(`/tasks/${one.id}`, { token: member.token })
    expect(shown.conditions).toEqual([{ type: 'blocked', reason: 'dependency' }])
  })
})

describe('watchers', () => {
  const watch = (id: string, body: unknown, token?: string) => call(server, `/tasks/${id}/watchers`, body, token)
  const unwatch = (id: string, body: unknown) => call(server, `/tasks/${id}/watchers/remove`, body)

  test('who makes a task watches it; others are added and removed', async () => {
    const agent = await server.createAgent({ name: 'Watchful' })
    const one = await task(server)
    const added = await watch(one.id, { type: 'user', id: member.userId })
    expect([added.status, added.body]).toEqual([
      201,
      {
        subject: { type: 'user', id: member.userId },
        addedBy: 'manual',
        origin: null,
        createdAt: expect.any(String),
      },
    ])
    expect((await watch(one.id, { type: 'user', id: member.uuid })).status).toBe(200)
    // Without an agent's own run, it is woken at the task.
    expect((await watch(one.id, { type: 'agent', id: '@watchful' })).body).toMatchObject({
      subject: { type: 'agent', id: agent.id },
      origin: one.id,
    })
    const { data } = await server.ok(`/tasks/${one.id}/watchers`)
    expect(data.map((each: { subject: { id: string }; addedBy: string }) => [each.subject.id, each.addedBy])).toEqual(
      expect.arrayContaining([
        [server.owner.userId, 'auto'],
        [member.userId, 'manual'],
        [agent.id, 'manual'],
      ]),
    )
    // Said by hand, an automatic watcher is one by hand.
    const own = await watch(one.id, { type: 'user', id: 'me' })
    expect([own.status, own.body.addedBy]).toEqual([200, 'manual'])
    expect((await unwatch(one.id, { type: 'user', id: 'me' })).body.subject.id).toBe(server.owner.userId)
    expect(outcomeOf(await unwatch(one.id, { type: 'user', id: 'me' }))).toBe('404 watcher_not_found')
    expect((await server.ok(`/tasks/${one.id}/watchers`)).data).toHaveLength(2)
  })

  test('who comments watches from then on', async () => {
    const one = await task(server)
    await server.ok(`/tasks/${one.id}/comments`, { body: { content: 'I see' }, token: member.token })
    const { data } = await server.ok(`/tasks/${one.id}/watchers`)
    expect(data).toHaveLength(2)
    expect(data).toContainEqual(
      expect.objectContaining({ subject: { type: 'user', id: member.userId }, addedBy: 'auto', origin: null }),
    )
  })

  test('need no key, and must exist', async () => {
    const one = await task(server)
    const plain = await server.call(`/tasks/${one.id}/watchers`, { body: { type: 'user', id: 'me' } })
    expect(plain.status).toBe(200)
    const elsewhere = await server.addPerson('owner', 'elsewhere')
    for (const body of [
      { type: 'user', id: elsewhere.userId },
      { type: 'user', id: 'usr_0000000000000000' },
      { type: 'agent', id: '@nobody' },
      { type: 'agent', id: 'me' },
    ])
      expect([body, outcomeOf(await watch(one.id, body))]).toEqual([body, '404 watcher_not_found'])
    for (const body of [{}, { type: 'team', id: 'x' }, { type: 'user' }])
      expect(outcomeOf(await watch(one.id, body))).toBe('400 validation_error')
  })
})

describe('the tree', () => {
  const put = (id: string, parentTaskId: string | null) => call(server, `/tasks/${id}/move`, { parentTaskId })

  test('is four levels deep at most, without loops', async () => {
    const chain = [await task(server)]
    while (chain.length < 4) chain.push(await task(server, { parentTaskId: chain.at(-1).id }))
    const [a, b, c, d] = chain
    expect(await outcome(call(server, '/tasks', { title: 'Fifth', parentTaskId: d.id }))).toBe(
      '400 parent_task_depth_exceeded',
    )
    for (const below of [a, b, d]) expect(outcomeOf(await put(a.id, below.id))).toBe('400 parent_task_cycle')
    const pair = await task(server)
    await task(server, { parentTaskId: pair.id })
    expect(outcomeOf(await put(pair.id, c.id))).toBe('400 parent_task_depth_exceeded')
    expect((await put(pair.id, b.key)).body.parentTaskId).toBe(b.id)
    expect((await put(pair.id, b.key)).status).toBe(200)
    expect((await put(pair.id, null)).body.parentTaskId).toBeNull()
    for (const id of ['MAI-99999', 'tsk_0000000000000000'])
      expect(outcomeOf(await put(pair.id, id))).toBe('404 parent_task_not_found')
    expect(await outcome(call(server, `/tasks/${pair.id}/move`, {}))).toBe('400 validation_error')
  })

  test('a subtask belongs to the project of its parent unless it says otherwise', async () => {
    const project = await server.ok('/projects', { body: { name: 'Tree' } })
    const parent = await task(server, { projectId: project.id })
    expect((await task(server, { parentTaskId: parent.id })).projectId).toBe(parent.projectId)
    expect((await task(server, { parentTaskId: parent.id, projectId: null })).projectId).toBeNull()
  })
})

test('the activity log pages, newest first, and says who did what', async () => {
  const one = await task(server)
  await server.call(`/tasks/${one.id}`, { method: 'POST', body: { title: 'Renamed', description: 'long' } })
  await made(server, `/tasks/${one.id}/archive`, undefined, member.token)
  const first = await server.ok(`/tasks/${one.id}/activity?limit=1`)
  expect(first).toMatchObject({
    data: [{ kind: 'task.archived', actor: { type: 'user', id: member.userId } }],
    hasMore: true,
  })
  const second = await server.ok(`/tasks/${one.id}/activity?after=${first.nextCursor}`)
  expect(second.data.map((entry: { kind: string }) => entry.kind)).toEqual(['task.updated', 'task.created'])
  expect(second.data[0].data).toEqual({
    fields: ['title', 'description'],
    changes: { title: { from: one.title, to: 'Renamed' } },
  })
  expect(outcomeOf(await server.call(`/tasks/${one.id}/activity?after=x`))).toBe('400 invalid_cursor')
})
