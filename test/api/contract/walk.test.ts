import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sessionCookie } from '../../../control-plane/http/auth.ts'
import { openSession } from '../../../control-plane/sign-in/session.ts'
import { contract } from '../../../shared/api/index.ts'
import { codeOf, outcomeOf, type TestServer, type CallOptions, type Person } from '../../kit/server.ts'
import { fill, isUnavailable, reaches, unknownIds } from './every-route.ts'
import { goodRequests } from './good-requests.ts'
import { Stage } from './stage.ts'

/** What holds for every route, whichever routes there are: written from the shared rules, run over the contract. */

let stage: Stage
let server: TestServer
let member: Person
let agentToken: string
/** Each kind of token: what is sent to be let in with it. */
let credentials: readonly Pick<CallOptions, 'token' | 'headers'>[]
/** Ids of things in a workspace that nobody of ours belongs to. */
let foreign: Record<string, string>

beforeAll(async () => {
  stage = await Stage.start()
  server = stage.server
  member = stage.member
  agentToken = (await stage.caller()).token
  foreign = await strangersThings()
  const { root } = server.database
  const signIn = { userId: server.owner.uuid, workspaceId: server.owner.workspaceId, cookieBefore: null }
  const cookie = await openSession(root, server.world, signIn)
  credentials = [
    { token: server.owner.token },
    { token: member.token },
    { token: agentToken },
    { token: null, headers: { cookie: `${sessionCookie}=${cookie}` } },
  ]
})
afterAll(() => stage.stop())

async function strangersThings(): Promise<Record<string, string>> {
  const stranger = await server.addPerson('owner', 'elsewhere')
  const agent = await server.createAgent({}, stranger.token)
  const run = await server.ok(`/agents/${agent.id}/runs`, { token: stranger.token, body: {} })
  const device = await server.ok('/device/enrol', {
    base: '/api',
    token: stranger.token,
    body: { hostname: 'theirs', platform: 'linux', version: '1' },
  })
  const folder = await server.ok('/folders', {
    token: stranger.token,
    body: { displayName: 'theirs', rootPath: '/tmp', deviceId: device.publicId },
  })
  const project = await server.ok('/projects', { token: stranger.token, body: { name: 'Theirs' } })
  const automation = await server.ok('/automations', {
    token: stranger.token,
    body: { name: 'Theirs', trigger: { type: 'webhook' }, agentId: agent.id, prompt: 'x' },
  })
  const keyed = { 'idempotency-key': crypto.randomUUID() }
  const conversation = await server.ok('/conversations', {
    token: stranger.token,
    headers: keyed,
    body: { firstMessage: 'Ours.' },
  })
  const task = await server.ok('/tasks', {
    token: stranger.token,
    headers: keyed,
    body: { title: 'Theirs', checklist: ['Theirs'] },
  })
  const secret = await server.ok('/secrets', { token: stranger.token, body: { name: 'theirs', value: 'x' } })
  // Whoever asks ends its run, so each asks in one of its own.
  const asks = async (path: string) => {
    const asking = await server.ok(`/agents/${agent.id}/runs`, { token: stranger.token, body: {} })
    const token = await server.runToken(asking.runPublicId)
    const headers = { 'idempotency-key': crypto.randomUUID() }
    return server.ok(path, { token, headers, body: { prompt: 'Ours?' } })
  }
  const { approval } = await asks('/approvals')
  const { question } = await asks('/questions')
  const repo = await server.ok('/repos', { token: stranger.token, body: { gitRemote: 'github.com/their/repo' } })
  const { revision } = await server.ok(`/agents/${agent.id}/config`, {
    method: 'PUT',
    token: stranger.token,
    body: { config: { runtime: { maxTurns: 5 } } },
  })
  return {
    agentId: agent.id,
    automationId: automation.id,
    companyId: stranger.workspaceId,
    taskId: task.id,
    itemId: task.checklist[0].id,
    dependencyId: task.id,
    repoId: repo.id,
    runId: run.runPublicId,
    approvalId: approval.id,
    secretId: secret.id,
    eventId: unknownIds['eventId'] ?? '',
    id: device.deviceId,
    'conversations.id': conversation.id,
    'messages.id': conversation.lastMessageId,
    'questions.id': question.id,
    'tasks.id': task.id,
    ref: stranger.userId,
    shortId: folder.shortId,
    workspaceId: stranger.workspaceId,
    slug: 'elsewhere',
    userId: stranger.userId,
    projectId: project.id,
    token: 'another-invite',
    revisionId: revision.id,
    entryId: revision.id,
  }
}

/** A request that fits as far as ids and method go; a body that no route is harmed by. */
function request(reach: (typeof reaches)[number], token: string | null, ids = unknownIds) {
  const { method, base } = reach.route
  const options: CallOptions = { method, base, token, headers: { 'idempotency-key': crypto.randomUUID() } }
  if (method !== 'GET' && method !== 'DELETE') options.body = {}
  return server.call(fill(reach.path, ids), options)
}

describe.each(reaches)('$label', (reach) => {
  const { callers } = reach.route

  if (callers !== 'none')
    it('asks for a token', async () => {
      expect(outcomeOf(await request(reach, null))).toBe('401 auth_missing')
      expect(outcomeOf(await request(reach, 'svc_pat_unknown'))).toBe('401 auth_invalid')
    })

  if (callers !== 'none')
    it('refuses whom the contract refuses', async () => {
      if (typeof callers.agent === 'object') {
        const reply = await request(reach, agentToken)
        expect([reply.status, codeOf(reply)]).toEqual([403, callers.agent.refused])
      }
      if (typeof callers.person === 'object') {
        const reply = await request(reach, server.owner.token)
        expect([reply.status, codeOf(reply)]).toEqual([403, callers.person.refused])
      }
      if (callers.person === 'admin' || callers.person === 'owner')
        expect((await request(reach, member.token)).status).toBe(403)
    })

  it('answers an unsupported version and a foreign workspace', async () => {
    const { method, base } = reach.route
    const path = fill(reach.path, unknownIds)
    // As somebody whom the route does not refuse for what they are.
    const isForAgents = callers !== 'none' && typeof callers.person === 'object'
    const token = isForAgents ? agentToken : server.owner.token
    const version = await server.call(path, { method, base, token, headers: { 'Svc-Version': '2020-01' } })
    expect(outcomeOf(version)).toBe('400 unsupported_api_version')
    // Who needs no token is not asked for a workspace either.
    if (callers === 'none') return
    const headers = { 'Svc-Workspace-Id': crypto.randomUUID() }
    expect(outcomeOf(await server.call(path, { method, base, token, headers }))).toBe('403 not_permitted')
  })

  if (reach.path.includes('{'))
    it('answers a stranger’s id as it answers an unknown one', async () => {
      const { method, base, id } = reach.route
      // A body that fits, so that it is the id that is looked at.
      const body = method === 'GET' ? undefined : ((await goodRequests[id]?.(stage))?.body ?? {})
      for (const { token, headers } of credentials) {
        const answerFor = (ids: Readonly<Record<string, string>>) =>
          server.call(fill(reach.path, ids), {
            method,
            base,
            ...(token === undefined ? {} : { token }),
            ...(body === undefined ? {} : { body }),
            headers: { ...headers, 'idempotency-key': crypto.randomUUID() },
          })
        const [unknown, theirs] = [await answerFor(unknownIds), await answerFor(foreign)]
        expect(shapeOf(theirs)).toEqual(shapeOf(unknown))
      }
    })

  it('answers junk with an error of the contract', async () => {
    const { method, base } = reach.route
    if (method === 'GET') return
    for (const body of [[], 1, 'text', null, { name: { deep: [[[[]]]] } }, { a: 'x'.repeat(10_000) }]) {
      const reply = await server.call(fill(reach.path, unknownIds), { method, base, body })
      expect(reply.status === 501 ? isUnavailable(reach.route) : reply.status < 500).toBe(true)
    }
  })
})

describe('an id of a stranger in a body or a query', () => {
  const places: [
    string,
    string,
    (ids: Readonly<Record<string, string>>) => Promise<{ path: string; body?: object }>,
  ][] = [
    ['agents.list', 'GET', async (ids) => ({ path: `/agents?ids=${ids['agentId']}` })],
    ['runs.list', 'GET', async (ids) => ({ path: `/runs?ids=${ids['runId']}` })],
    ['runs.list', 'GET', async (ids) => ({ path: `/runs?agent=${ids['agentId']}` })],
    ['runs.list', 'GET', async (ids) => ({ path: `/runs?task=${ids['taskId']}` })],
    ['projects.list', 'GET', async (ids) => ({ path: `/projects?lead=${ids['agentId']}` })],
    ['agents.create', 'POST', async (ids) => ({ path: '/agents', body: { name: 'A', reportingTo: ids['agentId'] } })],
    [
      'agents.create',
      'POST',
      async (ids) => ({ path: '/agents', body: { name: 'A', defaultFolderId: ids['shortId'] } }),
    ],
    [
      'agents.update',
      'PATCH',
      async (ids) => ({ path: `/agents/${await stage.agent()}`, body: { reportingTo: ids['agentId'] } }),
    ],
    [
      'agents.update',
      'PATCH',
      async (ids) => ({ path: `/agents/${await stage.agent()}`, body: { defaultFolderId: ids['shortId'] } }),
    ],
    [
      'agents.transferOwner',
      'POST',
      async (ids) => ({ path: `/agents/${await stage.agent()}/transfer-owner`, body: { newOwnerId: ids['userId'] } }),
    ],
    [
      'agents.runs.start',
      'POST',
      async (ids) => ({ path: `/agents/${await stage.agent()}/runs`, body: { taskId: ids['taskId'] } }),
    ],
    [
      'projects.create',
      'POST',
      async (ids) => ({ path: '/projects', body: { name: 'P', leadAgentId: ids['agentId'] } }),
    ],
    [
      'projects.config.update',
      'PATCH',
      async (ids) => ({ path: `/projects/${await stage.project()}/config`, body: { leadAgentId: ids['agentId'] } }),
    ],
    [
      'projects.transferOwner',
      'POST',
      async (ids) => ({
        path: `/projects/${await stage.project()}/transfer-owner`,
        body: { newOwnerId: ids['userId'] },
      }),
    ],
    [
      'folders.create',
      'POST',
      async (ids) => ({ path: '/folders', body: { displayName: 'f', rootPath: '/f', deviceId: ids['id'] } }),
    ],
  ]
  it.each(places)('%s %s', async (_, method, placeOf) => {
    for (const { token, headers } of credentials) {
      const answerFor = async (ids: Readonly<Record<string, string>>) => {
        const { path, body } = await placeOf(ids)
        return server.call(path, {
          method,
          ...(token === undefined ? {} : { token }),
          ...(body === undefined ? {} : { body }),
          ...(headers === undefined ? {} : { headers }),
        })
      }
      const [unknown, theirs] = [await answerFor(unknownIds), await answerFor(foreign)]
      expect(shapeOf(theirs)).toEqual(shapeOf(unknown))
    }
  })
})

/** All of an answer but the parts that differ from request to request. */
function shapeOf(reply: { status: number; body: unknown }) {
  const text = JSON.stringify(reply.body ?? null)
  return {
    status: reply.status,
    text: text.replaceAll(/req_\w+|[a-z]{2,4}_\w{16}|[0-9a-f-]{36}|[\d-]{10}T[\d:.]+Z/g, 'ID'),
  }
}

describe('the contract', () => {
  it('names no path twice and gives every route a command', () => {
    const labels = reaches.map((reach) => `${reach.route.base} ${reach.label}`)
    expect(new Set(labels).size).toBe(labels.length)
    const without = contract.filter((route) => route.commands.length === 0).map((route) => route.id)
    // AGENT.md is written with `agent config set --agent-md-file`; `workspace get` reads by id; inviting and the like are
    // not available; `question answer` gives a secret too; the OpenAPI document is for programs.
    expect(without).toEqual([
      'agents.identity.putAgentMd',
      'workspaces.current',
      'members.invite',
      'members.changeRole',
      'members.remove',
      'members.acceptInvite',
      'questions.secret',
      'openapi.get',
    ])
  })

  it('answers a wrong method with the methods there are, and an unknown path with 404', async () => {
    const wrong = await server.call('/agents', { method: 'DELETE' })
    expect(outcomeOf(wrong)).toBe('404 route_not_found')
    expect(wrong.headers.get('allow')).toBe('GET, HEAD, POST')
    expect(outcomeOf(await server.call('/nothing'))).toBe('404 route_not_found')
  })

  it('gives every answer a Request-Id of its own', async () => {
    const [a, b] = [await server.call('/agents'), await server.call('/agents')]
    expect(a.headers.get('request-id')).toMatch(/^req_/)
    expect(a.headers.get('request-id')).not.toBe(b.headers.get('request-id'))
  })
})
