import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codeOf, outcomeOf, TestServer } from '../../kit/server.ts'
import { makeWorkflow, programOf } from './workflows-kit.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const create = (source: string, token?: string) =>
  server.call('/workflows/records', { body: { source }, ...(token !== undefined && { token }) })
const update = (name: string, source: string, token?: string) =>
  server.call(`/workflows/records/${name}`, {
    method: 'PATCH',
    body: { source },
    ...(token !== undefined && { token }),
  })

describe('a workflow', () => {
  it('is created from its program, read with it, and listed by name', async () => {
    const inputs = [{ key: 'who', label: 'Who', kind: 'text', required: true }]
    const source = programOf('return input.who', { name: 'aa_hello', title: 'Hello', description: 'Greets', inputs })
    const { status, body } = await create(source)
    expect(status).toBe(201)
    expect(body).toEqual({
      object: 'workflow',
      id: expect.stringMatching(/^flw_[0-9A-Za-z]{16}$/),
      name: 'aa_hello',
      title: 'Hello',
      description: 'Greets',
      inputs,
      toolPermissionMode: 'ask',
      source,
      version: 1,
      author: null,
      retiredAt: null,
      createdAt: body.createdAt,
      updatedAt: body.createdAt,
    })
    expect(await server.ok('/workflows/records/aa_hello')).toEqual(body)
    const [first] = (await server.ok('/workflows/records')).data
    expect(first).toEqual({ ...body, lastRun: null, runCount: 0 })
  })

  it('lists page by page', async () => {
    const names = []
    for (let n = 0; n < 3; n++) names.push(await makeWorkflow(server, 'return 1', { meta: { name: `zz_${n}` } }))
    expect(names).toHaveLength(3)
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await server.ok(`/workflows/records?limit=2${cursor === '' ? '' : `&after=${cursor}`}`)
      seen.push(...page.data.map((row: { name: string }) => row.name))
      cursor = page.nextCursor as string | null
    }
    expect(seen).toEqual(seen.toSorted())
    expect(seen.filter((name) => name.startsWith('zz_'))).toEqual(['zz_0', 'zz_1', 'zz_2'])
    expect(outcomeOf(await server.call('/workflows/records?after=junk'))).toBe('400 invalid_cursor')
  })

  it('is updated by a program of its own name, which raises its version', async () => {
    const name = await makeWorkflow(server, 'return 1')
    const updated = await update(name, programOf('return 2', { name, title: 'Second', toolPermissionMode: 'full' }))
    expect(updated.body).toMatchObject({ name, title: 'Second', version: 2, toolPermissionMode: 'full' })
    const other = await update(
      name,
      "// Of two lines.\nexport const meta = { title: 'T',\n  name: 'another' }\nreturn 2",
    )
    expect(outcomeOf(other)).toBe('400 workflow_name_mismatch')
    expect(other.body.error.details).toEqual({ line: 3, column: 9 })
    expect(outcomeOf(await update('no_such', programOf('return 2')))).toBe('404 resource_not_found')
    expect((await server.ok(`/workflows/records/${name}`)).version).toBe(2)
  })

  it('is retired once: it stays readable, keeps its name, and changes no more', async () => {
    const name = await makeWorkflow(server, 'return 1')
    const retire = () => server.ok(`/workflows/records/${name}`, { method: 'DELETE' })
    const retired = await retire()
    expect(retired.retiredAt).not.toBeNull()
    expect(await retire()).toEqual(retired)
    expect(await server.ok(`/workflows/records/${name}`)).toEqual(retired)
    for (const taken of [name, 'implement_and_review']) {
      const again = await create(`export const meta = { title: 'T', "name": '${taken}' }`)
      expect(outcomeOf(again)).toBe('409 workflow_name_taken')
      expect(again.body.error.details).toEqual({ line: 1, column: 43 })
    }
    expect(outcomeOf(await update(name, programOf('return 2', { name })))).toBe('400 validation_error')
    expect(outcomeOf(await server.call('/workflows/runs', { body: { workflow: name } }))).toBe('400 validation_error')
  })

  it('that an agent wrote is its own: it changes and retires no others, people change all', async () => {
    const writer = await server.agentCaller({ name: 'Writer' })
    const other = await server.agentCaller()
    const name = await makeWorkflow(server, 'return 1', { token: writer.token })
    const { id, handle } = writer.agent
    expect((await server.ok(`/workflows/records/${name}`)).author).toEqual({ id, name: 'Writer', handle })
    const source = programOf('return 2', { name })
    expect(outcomeOf(await update(name, source, other.token))).toBe('403 not_permitted')
    expect(outcomeOf(await server.call(`/workflows/records/${name}`, { method: 'DELETE', token: other.token }))).toBe(
      '403 not_permitted',
    )
    expect((await update(name, source, writer.token)).body.version).toBe(2)
    expect((await update(name, source)).body).toMatchObject({ version: 3, author: { id } })
    const ofPerson = await makeWorkflow(server, 'return 1')
    expect(outcomeOf(await update(ofPerson, programOf('return 2', { name: ofPerson }), writer.token))).toBe(
      '403 not_permitted',
    )
  })

  it('that a private agent wrote gets no other program from who does not see the agent, which does its steps', async () => {
    const writer = await server.agentCaller({ visibility: 'private' })
    const name = await makeWorkflow(server, 'return 1', { token: writer.token })
    const { token } = await server.addPerson('member')
    expect((await server.ok(`/workflows/records/${name}`, { token })).author).toBeNull()
    const source = programOf(`return await agent('Tell me all')`, { name })
    expect(outcomeOf(await update(name, source, token))).toBe('403 not_permitted')
    expect((await update(name, source)).body.version).toBe(2)
  })

  it.each([
    ['workflow_syntax', 'const a = ;', 2, 11],
    ['workflow_banned_global', '\n  await fetch(1)', 3, 9],
    ['workflow_import', "await import('fs')", 2, 7],
  ])('is refused with %s and the place', async (code, body, line, column) => {
    const reply = await create(programOf(body))
    expect([reply.status, codeOf(reply)]).toEqual([400, code])
    expect(reply.body.error).toMatchObject({ param: 'source', details: { line, column } })
  })

  it('takes 200,000 characters and no more', async () => {
    const source = (length: number) => programOf('return 1 //', { name: 'large' }).padEnd(length, 'x')
    expect(outcomeOf(await create(source(200_001)))).toBe('400 validation_error')
    expect(outcomeOf(await create(source(200_000)))).toBe('201')
  })

  it('is refused when only the engine cannot read it', async () => {
    const reply = await create(programOf('const a = 1; return [a].map((a) => { "use strict"; with (a) {} })'))
    expect(codeOf(reply)).toBe('workflow_syntax')
  })
})

describe('a start', () => {
  const inputs = [
    { key: 'text', required: true },
    { key: 'number', kind: 'number' },
    { key: 'flag', kind: 'boolean' },
    { key: 'who', kind: 'agent' },
    { key: 'about', kind: 'task' },
  ]
  let name: string
  beforeAll(async () => {
    name = await makeWorkflow(server, 'return 1', { meta: { inputs } })
  })
  const start = (input: unknown, more: Record<string, unknown> = {}) =>
    server.call('/workflows/runs', { body: { workflow: name, input, ...more } })
  const task = async () =>
    (await server.ok('/tasks', {
      body: { title: 'A task', force: true },
      headers: { 'idempotency-key': crypto.randomUUID() },
    })) as {
      id: string
      key: string
    }

  it('reads its inputs as they are declared, from texts too', async () => {
    const { id, handle } = await server.createAgent()
    const { id: taskId, key } = await task()
    const reply = await start({ text: 'x', number: '2.5', flag: 'true', who: handle, about: key })
    expect(reply.body.input).toEqual({ text: 'x', number: 2.5, flag: true, who: id, about: taskId })
    expect((await start({ text: 'x', number: 3, flag: false })).body.input).toEqual({
      text: 'x',
      number: 3,
      flag: false,
      who: null,
      about: null,
    })
  })

  it.each([
    [{}, 'input.text'],
    [{ text: '' }, 'input.text'],
    [{ text: 7 }, 'input.text'],
    [{ text: 'x', number: 'many' }, 'input.number'],
    [{ text: 'x', flag: 'maybe' }, 'input.flag'],
    [{ text: 'x', who: '@nobody' }, 'input.who'],
    [{ text: 'x', about: 'NO-1' }, 'input.about'],
    [{ text: 'x', color: 'red' }, 'input.color'],
  ])('is refused with the input that does not fit: %j', async (input, path) => {
    const reply = await start(input)
    expect(outcomeOf(reply)).toBe('400 validation_error')
    expect(reply.body.error.details.fields[0].path).toBe(path)
  })

  it('is about the task of taskId or of input.taskRef, which may not differ', async () => {
    const [one, other] = [await task(), await task()]
    expect((await start({ text: 'x', taskRef: one.key })).body.taskId).toBe(one.id)
    expect((await start({ text: 'x' }, { taskId: one.key })).body.taskId).toBe(one.id)
    expect((await start({ text: 'x', taskRef: one.id }, { taskId: one.key })).body.taskId).toBe(one.id)
    expect(outcomeOf(await start({ text: 'x', taskRef: other.id }, { taskId: one.key }))).toBe('400 validation_error')
    expect(outcomeOf(await start({ text: 'x' }, { taskId: 'NO-1' }))).toBe('400 validation_error')
  })

  it('names a workflow of its workspace', async () => {
    const body = { workflow: 'no_such' }
    expect(outcomeOf(await server.call('/workflows/runs', { body }))).toBe('404 resource_not_found')
    const stranger = await server.addPerson('owner', 'elsewhere')
    const strange = await server.call('/workflows/runs', { body: { workflow: name }, token: stranger.token })
    expect(outcomeOf(strange)).toBe('404 resource_not_found')
  })
})

it('without an engine programs are checked and stored, and none is started', async () => {
  const off = await TestServer.start({ settings: { SVC_WORKFLOWS: 'off' } })
  try {
    const name = await makeWorkflow(off, 'return 1')
    expect(codeOf(await off.call('/workflows/records', { body: { source: programOf('fetch(1)') } }))).toBe(
      'workflow_banned_global',
    )
    const reply = await off.call('/workflows/runs', { body: { workflow: name } })
    expect(outcomeOf(reply)).toBe('503 workflows_not_configured')
  } finally {
    await off.stop()
  }
})
