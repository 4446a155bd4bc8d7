import { idFrom, type AgentRef, type RunId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { defineRoute, peopleOnly } from '../../../shared/api/route.ts'
import { hashToken } from '../../../control-plane/http/token-hash.ts'
import { implement } from '../../../control-plane/http/implement.ts'
import { mintRunToken, runTokenClaims } from '../../../control-plane/http/run-token.ts'
import { runTokenKey } from './seed.ts'
import { call, codeOf, refusal, startServer, type TestServer } from './server.ts'

const who = z.object({ kind: z.string(), workspaceId: z.string(), role: z.string().nullable() })
const routes = {
  me: defineRoute({ id: 'test.me', endpoint: 'GET /me', summary: 'Who calls', reply: who }),
  change: defineRoute({ id: 'test.change', endpoint: 'POST /me', summary: 'Change', reply: who }),
  people: defineRoute({
    id: 'test.people',
    endpoint: 'GET /people',
    summary: 'For people',
    callers: peopleOnly,
    reply: who,
  }),
  admins: defineRoute({
    id: 'test.admins',
    endpoint: 'GET /admins',
    summary: 'For admins',
    callers: { person: 'admin', agent: { refused: 'agent_no_workspace_access' } },
    reply: who,
  }),
  runs: defineRoute({
    id: 'test.runs',
    endpoint: 'GET /own-run',
    summary: 'For runs',
    callers: { person: { refused: 'run_output.not_this_run' }, agent: 'allowed' },
    reply: who,
  }),
  open: defineRoute({
    id: 'test.open',
    endpoint: 'GET /open',
    summary: 'For all',
    callers: 'none',
    reply: z.object({ caller: z.null() }),
  }),
}

const show = (caller: { kind: string; workspaceId: string; role?: string }) =>
  Promise.resolve({ kind: caller.kind, workspaceId: caller.workspaceId, role: caller.role ?? null })

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    routes: implement(routes, {
      me: ({ caller }) => show(caller),
      change: ({ caller }) => show(caller),
      people: ({ caller }) => show(caller),
      admins: ({ caller }) => show(caller),
      runs: ({ caller }) => show(caller),
      open: ({ caller }) => Promise.resolve({ caller }),
    }),
  })
})
afterAll(() => server.close())

test('a request without a token, with another scheme or with an unknown token is not let in', async () => {
  expect(await refusal(server, '/me', { token: null })).toEqual([401, 'auth_missing'])
  expect(await refusal(server, '/me', { token: null, headers: { authorization: 'Basic abc' } })).toEqual([
    401,
    'auth_invalid',
  ])
  expect(await refusal(server, '/me', { token: 'svc_pat_unknown' })).toEqual([401, 'auth_invalid'])
  expect(await refusal(server, '/me', { token: 'svc_dev_some-device-token' })).toEqual([401, 'auth_invalid'])
  const reply = await call(server, '/me', { token: null })
  expect(reply.headers.get('www-authenticate')).toBe('Bearer')
  expect((await call(server, '/open', { token: null })).body).toEqual({ caller: null })
})

test('a login token is its person in its workspace, and in no other', async () => {
  const { workspaceId, otherWorkspaceId, ownerToken, memberToken } = server.seed
  expect((await call(server, '/me')).body).toEqual({ kind: 'person', workspaceId, role: 'owner' })
  expect((await call(server, '/me', { token: memberToken })).body.role).toBe('member')
  const own = { 'svc-workspace-id': workspaceId.toUpperCase() }
  expect((await call(server, '/me', { token: ownerToken, headers: own })).status).toBe(200)
  const other = { 'svc-workspace-id': otherWorkspaceId }
  expect(await refusal(server, '/me', { token: ownerToken, headers: other })).toEqual([403, 'not_permitted'])
  // The person may be a member there, so it is not told that it is none.
  const { body } = await call(server, '/me', { token: ownerToken, headers: other })
  expect(body.error.message).toContain('its own workspace')
})

test('a revoked or expired login token, or one whose person left, stops working with the next request', async () => {
  const { database, world, seed } = server
  const token = `svc_pat_${world.uuid()}`
  const user = world.uuid()
  const row = { id: world.uuid(), user_id: user, workspace_id: seed.workspaceId, token_hash: hashToken(token) }
  const now = world.now()
  await database
    .root('users')
    .insert({ id: user, public_id: world.id('usr_'), name: 'N', email: user, created_at: now })
  await database.root('login_tokens').insert({ ...row, name: 'n', created_at: now })
  expect(await refusal(server, '/me', { token })).toEqual([403, 'not_permitted'])
  await database
    .root('members')
    .insert({ workspace_id: seed.workspaceId, user_id: user, role: 'member', created_at: now })
  expect((await call(server, '/me', { token })).status).toBe(200)
  await database
    .root('login_tokens')
    .where({ id: row.id })
    .update({ expires_at: now - 1 })
  expect(await refusal(server, '/me', { token })).toEqual([401, 'auth_invalid'])
  await database.root('login_tokens').where({ id: row.id }).update({ expires_at: null, revoked_at: now })
  expect(await refusal(server, '/me', { token })).toEqual([401, 'auth_invalid'])
})

test('the use of a login token is noted', async () => {
  await call(server, '/me', { token: server.seed.adminToken })
  const used = await server.database.root('login_tokens').whereNotNull('last_used_at').count({ n: '*' }).first()
  expect(Number(used?.['n'])).toBeGreaterThan(0)
})

test('a dashboard session acts in the workspace of the header, else in the first one joined', async () => {
  const { sessionCookie, workspaceId, otherWorkspaceId } = server.seed
  const cookie = `theme=dark; svc_session=${sessionCookie}`
  const session = (headers: Record<string, string>) =>
    call(server, '/me', { token: null, headers: { cookie, ...headers } })
  expect((await session({})).body).toEqual({ kind: 'person', workspaceId, role: 'owner' })
  const other = await session({ 'svc-workspace-id': otherWorkspaceId })
  expect(other.body).toEqual({ kind: 'person', workspaceId: otherWorkspaceId, role: 'member' })
  const foreign = { cookie, 'svc-workspace-id': server.world.uuid() }
  expect(await refusal(server, '/me', { token: null, headers: foreign })).toEqual([403, 'not_permitted'])
  expect(await refusal(server, '/me', { token: null, headers: { cookie: 'svc_session=nope' } })).toEqual([
    401,
    'auth_invalid',
  ])
})

test('another site cannot write with the cookie of a person', async () => {
  const cookie = `svc_session=${server.seed.sessionCookie}`
  const write = (headers: Record<string, string>) =>
    call(server, '/me', { method: 'POST', token: null, headers: { cookie, ...headers } })
  expect((await write({ origin: server.url })).status).toBe(200)
  const foreign = await write({ origin: 'https://evil.example' })
  expect([foreign.status, codeOf(foreign)]).toEqual([403, 'http_exception'])
  // A bearer token is never sent by a browser on its own.
  const bearer = await call(server, '/me', { method: 'POST', headers: { origin: 'https://evil.example' } })
  expect(bearer.status).toBe(200)
})

test("a run's token is its agent, until the run ends, its lease moves on, or the agent's tokens are reset", async () => {
  const { agentToken: token, runId, agentId, workspaceId } = server.seed
  const { root } = server.database
  expect((await call(server, '/me', { token })).body).toEqual({ kind: 'agent', workspaceId, role: null })
  const other = { 'svc-workspace-id': server.seed.otherWorkspaceId }
  expect(await refusal(server, '/me', { token, headers: other })).toEqual([403, 'not_permitted'])

  await root('runs').where({ id: runId }).update({ fence: 2 })
  expect(await refusal(server, '/me', { token })).toEqual([401, 'auth_revoked'])
  await root('runs').where({ id: runId }).update({ fence: 1, ended_at: 1 })
  expect(await refusal(server, '/me', { token })).toEqual([401, 'auth_revoked'])
  await root('runs').where({ id: runId }).update({ ended_at: null })
  await root('agents').where({ id: agentId }).update({ deleted_at: 1 })
  expect(await refusal(server, '/me', { token })).toEqual([401, 'auth_revoked'])
  await root('agents').where({ id: agentId }).update({ deleted_at: null, token_generation: 2 })
  expect(await refusal(server, '/me', { token })).toEqual([401, 'auth.agent_jwt_revoked'])
  await root('agents').where({ id: agentId }).update({ token_generation: 1 })
  expect((await call(server, '/me', { token })).status).toBe(200)
})

test('an agent token that we did not sign, of another kind, or past its time is invalid', async () => {
  const { runId, agentId, workspaceId } = server.seed
  const subject = {
    runId: idFrom<RunId>(runId),
    fence: 1,
    agentRef: idFrom<AgentRef>(agentId),
    workspaceId: idFrom<WorkspaceUuid>(workspaceId),
    tokenGeneration: 1,
  }
  const now = server.world.now()
  const otherKey = new TextEncoder().encode('another key, also of at least 32 bytes')
  const forged = mintRunToken(otherKey, subject, now)
  const old = mintRunToken(runTokenKey, subject, now - 25 * 3_600_000)
  const ofOtherKind = await new SignJWT({ run: runId, fence: 1, ws: workspaceId, gen: 1 })
    .setProtectedHeader({ alg: 'HS256', typ: 'other+jwt' })
    .setSubject(agentId)
    .setIssuer(runTokenClaims.issuer)
    .setAudience(runTokenClaims.audience)
    .setExpirationTime('1h')
    .sign(runTokenKey)
  const [header, payload] = mintRunToken(runTokenKey, subject, now).split('.') as [string, string]
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`
  for (const token of [forged, old, ofOtherKind, unsigned, `${header}.${payload}.AAAA`]) {
    expect(await refusal(server, '/me', { token })).toEqual([401, 'auth_invalid'])
  }
})

test('a token that was good expires', async () => {
  const { runId, agentId, workspaceId } = server.seed
  const token = mintRunToken(
    runTokenKey,
    { runId: idFrom(runId), fence: 1, agentRef: idFrom(agentId), workspaceId: idFrom(workspaceId), tokenGeneration: 1 },
    server.world.now() - 1000,
  )
  expect((await call(server, '/me', { token })).status).toBe(200)
  server.clock.offsetMs = 25 * 3_600_000
  expect(await refusal(server, '/me', { token })).toEqual([401, 'auth_invalid'])
  server.clock.offsetMs = 0
})

test('a route is closed to the kinds of caller it is not for', async () => {
  const { agentToken, memberToken, adminToken, ownerToken } = server.seed
  expect(await refusal(server, '/people', { token: agentToken })).toEqual([403, 'http_exception'])
  expect(await refusal(server, '/admins', { token: agentToken })).toEqual([403, 'agent_no_workspace_access'])
  expect(await refusal(server, '/admins', { token: memberToken })).toEqual([403, 'http_exception'])
  expect((await call(server, '/admins', { token: adminToken })).status).toBe(200)
  expect((await call(server, '/admins', { token: ownerToken })).status).toBe(200)
  expect(await refusal(server, '/own-run', { token: ownerToken })).toEqual([403, 'run_output.not_this_run'])
  expect((await call(server, '/own-run', { token: agentToken })).status).toBe(200)
})
