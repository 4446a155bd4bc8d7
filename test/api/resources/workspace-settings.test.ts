import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { specOf } from '../../kit/rows.ts'
import { makePage } from '../facts/kit/wiki.ts'
import { makeLearning } from '../facts/kit/learnings.ts'
import { upload } from './files-kit.ts'
import { makeWorkflow } from './workflows-kit.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { workspaceCalls } from './workspaces-kit.ts'

let server: TestServer, agentToken: string
beforeAll(async () => {
  server = await TestServer.start()
  agentToken = (await server.agentCaller()).token
})
afterAll(() => server.stop())

const { home, slugOf, patch } = workspaceCalls(() => server)

describe('update', () => {
  test('writes the keys that are there', async () => {
    const person = await home('admin')
    const settings = {
      name: 'New Name',
      description: 'text',
      contextMd: '# Context',
      defaultModel: 'claude-opus-4-5',
      defaultReasoningEffort: 'high',
      defaultMaxTurns: 1000,
      backupModel: 'gpt-5',
      mcpServers: { files: { command: ['x'], deep: { er: [1] } } },
      sandboxSize: 'large',
      monthlyBudgetCents: 5,
      oomResume: true,
      sandboxEgress: ['api.example.com', '10.0.0.5'],
    }
    expect((await patch(person, settings)).body).toMatchObject(settings)
    expect((await patch(person, {}, '/companies')).body).toMatchObject(settings)
    const cleared = {
      description: null,
      contextMd: null,
      defaultModel: null,
      defaultReasoningEffort: null,
      defaultMaxTurns: null,
      backupModel: null,
      mcpServers: null,
      sandboxSize: null,
    }
    const reply = await patch(person, cleared)
    expect(reply.body).toMatchObject({ ...cleared, name: 'New Name', oomResume: true })
    expect(await server.ok('/workspaces', { token: person.token })).toEqual(reply.body)
  })

  test('takes the parts of idle compaction one by one', async () => {
    const person = await home()
    await patch(person, { idleCompaction: { enabled: true } })
    const { body } = await patch(person, { idleCompaction: { afterMinutes: 1, minTokens: 0 } })
    expect(body.idleCompaction).toEqual({ enabled: true, afterMinutes: 1, minTokens: 0 })
  })

  test('refuses unknown keys, keys of other routes and values out of range', async () => {
    const person = await home()
    for (const body of [
      { nonsense: 1 },
      { status: 'archived' },
      { agentsPaused: true },
      { issuePrefix: 'X' },
      { issueCounter: 5 },
      { id: person.workspaceId },
      { createdAt: '2026-01-01' },
      { name: '' },
      { name: null },
      { slug: 'A' },
      { defaultMaxTurns: 0 },
      { defaultMaxTurns: 1001 },
      { defaultReasoningEffort: 'huge' },
      { sandboxSize: 'tiny' },
      { monthlyBudgetCents: -1 },
      { monthlyBudgetCents: 0.5 },
      { oomResume: null },
      { sandboxEgress: ['*.example.com'] },
      { sandboxEgress: ['https://example.com'] },
      { sandboxEgress: ['example.com:443'] },
      { sandboxEgress: [''] },
      { sandboxEgress: Array.from({ length: 101 }, (_, n) => `h${n}.example`) },
      { mcpServers: [] },
      { idleCompaction: { afterMinutes: 0 } },
      { idleCompaction: { afterMinutes: 60 } },
      { idleCompaction: { afterMinutes: 1.5 } },
      { idleCompaction: { nonsense: 1 } },
    ])
      expect([body, outcomeOf(await patch(person, body))]).toEqual([body, '400 validation_error'])
  })

  test('is for admins', async () => {
    const member = await server.addPerson('member')
    for (const token of [member.token, agentToken])
      expect(
        outcomeOf(await server.call(`/workspaces/${member.workspaceId}`, { method: 'PATCH', body: {}, token })),
      ).toBe('403 http_exception')
  })

  test('defaults reach the next run', async () => {
    const person = await home()
    const run = async (agentId: string) => {
      const { runPublicId } = await server.ok(`/agents/${agentId}/runs`, { body: {}, token: person.token })
      return specOf(server, runPublicId)
    }
    const agent = await server.createAgent({ harness: null, model: null }, person.token)
    await patch(person, { defaultModel: 'gpt-5', defaultMaxTurns: 7, contextMd: 'Know this.' })
    await server.ok(`/companies/${person.workspaceId}/company-config`, {
      method: 'PATCH',
      body: { toolPermissionDefault: 'strict' },
      token: person.token,
    })
    const spec = await run(agent.id)
    expect(spec).toMatchObject({ model: 'gpt-5', maxTurns: 7, permissions: { defaultMode: 'strict' } })
    expect(JSON.stringify(spec)).toContain('Know this.')
  })
})

test('the company is renamed by owners and admins', async () => {
  const person = await home('admin')
  const rename = (name: unknown, prefix = 'workspaces') =>
    server.call(`/${prefix}/${person.workspaceId}/company`, { method: 'PATCH', body: { name }, token: person.token })
  const own = async () => (await server.ok('/user/workspaces', { token: person.token })).data[0]
  const { companyId } = await own()
  expect((await rename('  Acme Inc. ')).body).toEqual({ id: companyId, name: 'Acme Inc.' })
  expect((await rename('Acme Ltd.', 'companies')).body.name).toBe('Acme Ltd.')
  expect((await own()).companyName).toBe('Acme Ltd.')
  for (const name of ['', '   ', 'x'.repeat(101), null, undefined])
    expect(outcomeOf(await rename(name))).toBe('400 validation_error')
  expect((await rename(`  ${'x'.repeat(100)}  `)).status).toBe(200)
  const member = await server.addPerson('member')
  for (const token of [member.token, agentToken]) {
    const path = `/workspaces/${member.workspaceId}/company`
    expect(outcomeOf(await server.call(path, { method: 'PATCH', body: { name: 'x' }, token }))).toBe(
      '403 http_exception',
    )
  }
})

test('the company’s security defaults are read by all and written by admins', async () => {
  const person = await home('admin')
  const path = `/company-config`
  const at = (prefix: string) => `/${prefix}/${person.workspaceId}${path}`
  const write = (body: unknown, prefix = 'companies') =>
    server.call(at(prefix), { method: 'PATCH', body, token: person.token })
  expect(await server.ok(at('companies'), { token: person.token })).toEqual({
    toolPermissionDefault: null,
    maxTurns: null,
  })
  expect((await write({ toolPermissionDefault: 'ask' })).body).toEqual({ toolPermissionDefault: 'ask', maxTurns: null })
  expect((await write({ maxTurns: 40 }, 'workspaces')).body).toEqual({ toolPermissionDefault: 'ask', maxTurns: 40 })
  expect((await server.ok('/workspaces', { token: person.token })).defaultMaxTurns).toBe(40)
  await patch(person, { defaultMaxTurns: 50 })
  expect(await server.ok(at('workspaces'), { token: person.token })).toEqual({
    toolPermissionDefault: 'ask',
    maxTurns: 50,
  })
  expect((await write({ toolPermissionDefault: null, maxTurns: null })).body).toEqual({
    toolPermissionDefault: null,
    maxTurns: null,
  })
  for (const body of [{ toolPermissionDefault: 'never' }, { maxTurns: 0 }, { maxTurns: 1001 }])
    expect(outcomeOf(await write(body))).toBe('400 validation_error')
  const member = await server.addPerson('member')
  for (const token of [member.token, agentToken]) {
    const main = `/companies/${member.workspaceId}${path}`
    expect((await server.call(main, { token })).status).toBe(200)
    expect(outcomeOf(await server.call(main, { method: 'PATCH', body: {}, token }))).toBe('403 http_exception')
  }
})

test('stats count what the caller sees', async () => {
  const person = await home()
  const member = await server.addPerson('member', await slugOf(person))
  await server.createAgent({}, person.token)
  await server.createAgent({ visibility: 'private' }, person.token)
  await server.ok('/projects', { token: person.token, body: { name: 'a' } })
  await server.ok('/projects', { token: person.token, body: { name: 'b', visibility: 'private' } })
  const gone = await server.ok('/projects', { token: person.token, body: { name: 'c' } })
  await server.call(`/projects/${gone.id}`, { method: 'DELETE', token: person.token })
  await server.ok('/tasks', {
    token: person.token,
    headers: { 'idempotency-key': crypto.randomUUID() },
    body: { title: 'One' },
  })
  for (const body of ['return 1', 'return 2']) await makeWorkflow(server, body, { token: person.token })
  const retired = await makeWorkflow(server, 'return 3', { token: person.token })
  await server.ok(`/workflows/records/${retired}`, { method: 'DELETE', token: person.token })
  await upload(server, { token: person.token })
  await makePage({ server }, {}, person.token)
  const { id: old } = await makePage({ server }, {}, person.token)
  await server.ok(`/wiki/pages/${old}`, { method: 'PATCH', body: { archived: true }, token: person.token })
  await upload(server, { token: person.token, visibility: 'private' })
  await makeLearning({ server }, { token: person.token })
  const { token } = await server.agentCaller({ visibility: 'private' }, { token: person.token })
  await makeLearning({ server }, { token })
  for (const path of ['/workspaces/stats', '/companies/stats']) {
    expect(await server.ok(path, { token: person.token })).toEqual({
      agents: 3,
      tasks: 1,
      projects: 2,
      workflows: 2,
      files: 2,
      fileBytes: 22,
      wikiPages: 1,
      learnings: 2,
    })
    expect(await server.ok(path, { token: member.token })).toEqual({
      agents: 1,
      tasks: 1,
      projects: 1,
      workflows: 2,
      files: 1,
      fileBytes: 11,
      wikiPages: 1,
      learnings: 1,
    })
  }
})

describe('members', () => {
  test('admins get the pending invites beside them', async () => {
    const owner = await home()
    const member = await server.addPerson('member', await slugOf(owner))
    const path = `/workspaces/${owner.workspaceId}/members`
    const rows = (await server.ok('/members', { token: owner.token })).data
    expect(rows).toHaveLength(2)
    expect(await server.ok(path, { token: owner.token })).toMatchObject({ data: rows, invites: [] })
    const seen = await server.ok(path, { token: member.token })
    expect(seen.data).toEqual(rows)
    expect(seen).not.toHaveProperty('invites')
    expect(outcomeOf(await server.call(`/companies/${owner.workspaceId}/members`, { token: owner.token }))).toBe(
      '404 route_not_found',
    )
  })

  test('inviting, changing a role, removing and accepting answer 501 with a plain sentence; agents are refused', async () => {
    const id = server.owner.workspaceId
    for (const [method, path] of [
      ['POST', `/workspaces/${id}/invites`],
      ['POST', `/workspaces/${id}/members`],
      ['PATCH', `/workspaces/${id}/members/${server.owner.userId}`],
      ['DELETE', `/workspaces/${id}/members/${server.owner.userId}`],
      ['POST', '/invites/some-token/accept'],
    ] as const) {
      const headers = { 'Idempotency-Key': crypto.randomUUID() }
      for (let again = 0; again < 2; again++) {
        const reply = await server.call(path, {
          method,
          headers,
          ...(method === 'DELETE' ? {} : { body: { role: 'admin' } }),
        })
        expect([path, reply.status, reply.body]).toEqual([
          path,
          501,
          { error: 'Multi-user workspaces are unavailable' },
        ])
      }
      expect(outcomeOf(await server.call(path, { method, token: agentToken }))).toBe('403 agent_no_workspace_access')
    }
    for (const method of ['PATCH', 'DELETE'])
      expect(outcomeOf(await server.call(`/workspaces/${id}/members/somebody`, { method }))).toBe(
        '400 invalid_id_format',
      )
    expect((await server.ok('/members')).data.length).toBeGreaterThan(0)
  })
})
