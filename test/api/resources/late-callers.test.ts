import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { halfRequest } from '../../kit/half-request.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { makeDm } from '../../kit/talk.ts'

// Callers who lose their right between the headers and the body of a request: it does nothing any more.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const root = () => server.database.root

test.each<[string, string, (caller: { runId: string; agentId: string }) => Promise<unknown>]>([
  ['its run is cancelled', '401 auth_revoked', ({ runId }) => server.ok(`/runs/${runId}/cancel`, { body: {} })],
  [
    'its run goes to another device',
    '401 auth_revoked',
    ({ runId }) => root()('runs').where({ id: runId }).increment('fence', 1),
  ],
  ['it is deleted', '401 auth_revoked', ({ agentId }) => server.ok(`/agents/${agentId}`, { method: 'DELETE' })],
  [
    'its tokens are reset',
    '401 auth.agent_jwt_revoked',
    ({ agentId }) => root()('agents').where({ id: agentId }).increment('token_generation', 1),
  ],
])('an agent wakes nobody once %s', async (_what, outcome, change) => {
  const target = await server.createAgent()
  const { agent, runId, token } = await server.agentCaller()
  const between = async () => void (await change({ runId, agentId: agent.id }))
  const reply = await halfRequest(server, `/agents/${target.id}/runs`, { token, body: { prompt: 'Late' }, between })
  expect(outcomeOf(reply)).toBe(outcome)
  expect((await server.ok(`/runs?agent=${target.id}`)).data).toEqual([])
})

test('a route with an answer of its own for ended runs does nothing for them either', async () => {
  const { agent, runId, token } = await server.agentCaller()
  const agentMdHash = createHash('sha256').update('').digest('hex')
  const reply = await halfRequest(server, '/agents/me/config', {
    method: 'PUT',
    token,
    body: { agentMd: 'Late', agentMdHash },
    between: async () => void (await server.ok(`/runs/${runId}/cancel`, { body: {} })),
  })
  expect(outcomeOf(reply)).toBe('401 auth_revoked')
  expect((await server.ok(`/agents/${agent.id}/identity`)).agentMd).toBe('')
})

test('a run that went to another device records no output where it was', async () => {
  const { runId, token } = await server.agentCaller()
  const between = async () => void (await root()('runs').where({ id: runId }).increment('fence', 1))
  const reply = await halfRequest(server, '/runs/current/output', { token, body: { data: 1 }, between })
  expect(outcomeOf(reply)).toBe('401 auth_revoked')
  expect(outcomeOf(await server.call(`/runs/${runId}/output`))).toBe('404 resource_not_found')
})

test.each([
  ['asks for no change', '/agents', { name: 'Late' }, '403 platform_change_requires_run'],
  ['asks nobody for an approval', '/approvals', { trigger: 'tool_permission', prompt: 'May I?' }, '404 run_not_found'],
])('a run that went to another device %s where it was', async (_what, path, body, outcome) => {
  const { runId, token } = await server.agentCaller()
  const between = async () => void (await root()('runs').where({ id: runId }).increment('fence', 1))
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  expect(outcomeOf(await halfRequest(server, path, { token, body, headers, between }))).toBe(outcome)
  expect((await server.ok(`/approvals?runId=${runId}`)).data).toEqual([])
})

test('a person who left says nothing to an agent', async () => {
  const member = await server.addPerson('member')
  const agent = await server.createAgent()
  const { id } = await makeDm(server, agent.id, member.token)
  const leave = () => root()('members').where({ user_id: member.uuid, workspace_id: member.workspaceId }).delete()
  const reply = await halfRequest(server, `/conversations/${id}/send`, {
    token: member.token,
    body: { text: 'Late' },
    between: async () => void (await leave()),
  })
  expect(outcomeOf(reply)).toBe('403 not_permitted')
  expect((await server.ok(`/runs?agent=${agent.id}`)).data).toEqual([])
})

const demote = ({ uuid, workspaceId }: Person) =>
  root()('members').where({ user_id: uuid, workspace_id: workspaceId }).update({ role: 'member' })

test('a person who is no admin any more is told no secret', async () => {
  const admin = await server.addPerson('admin')
  const { id } = await server.ok('/secrets', { body: { name: 'Deploy', value: 'hunter2hunter2' }, token: admin.token })
  const reveal = (between: () => Promise<unknown>) =>
    halfRequest(server, `/secrets/${id}/reveal`, {
      token: admin.token,
      body: {},
      between: async () => void (await between()),
    })
  expect((await reveal(() => Promise.resolve())).body).toMatchObject({ value: 'hunter2hunter2' })
  const late = await reveal(() => demote(admin))
  expect(outcomeOf(late)).toBe('403 http_exception')
  expect(JSON.stringify(late.body)).not.toContain('hunter2')
})

test('a person who is no admin any more does what a member may', async () => {
  const admin = await server.addPerson('admin')
  const agent = await server.createAgent({}, admin.token)
  const put = (capabilities: string[], between: () => Promise<unknown>) =>
    halfRequest(server, `/agents/${agent.id}/config`, {
      method: 'PUT',
      token: admin.token,
      body: { config: { permissions: { capabilities } } },
      between: async () => void (await between()),
    })
  const capabilities = async () => (await server.ok(`/agents/${agent.id}/config`)).config.permissions.capabilities
  expect(outcomeOf(await put(['manage_agents'], () => Promise.resolve()))).toBe('200')
  expect(outcomeOf(await put([], () => demote(admin)))).toBe('403 http_exception')
  expect(await capabilities()).toEqual(['manage_agents'])
})
