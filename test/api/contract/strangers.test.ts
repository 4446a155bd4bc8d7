import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sessionCookie } from '../../../control-plane/http/auth.ts'
import { openSession } from '../../../control-plane/sign-in/session.ts'
import { contract } from '../../../shared/api/index.ts'
import type { CallOptions, TestServer } from '../../kit/server.ts'
import { makeConversation } from '../../kit/talk.ts'
import { fill, reaches, unknownIds } from './every-route.ts'
import { goodRequests } from './good-requests.ts'
import { Stage } from './stage.ts'
import { strangersThings } from './strangers-things.ts'
import { makeTask } from './task-requests.ts'

/** What is in another workspace is to everybody of ours as if it were not there: in paths, bodies and queries. */

type Ids = Readonly<Record<string, string>>
let stage: Stage
let server: TestServer
/** Each kind of token: what is sent to be let in with it. */
let credentials: readonly Pick<CallOptions, 'token' | 'headers'>[]
/** Ids of things in a workspace that nobody of ours belongs to, and the token of whose they are. */
let foreign: Ids
let strangerToken: string

beforeAll(async () => {
  stage = await Stage.start()
  server = stage.server
  const stranger = await server.addPerson('owner', 'elsewhere')
  strangerToken = stranger.token
  foreign = await strangersThings(server, stranger)
  const { root } = server.database
  const signIn = {
    userId: server.owner.uuid,
    workspaceId: server.owner.workspaceId,
    cookieBefore: null,
    sessions: { totalMs: 3_600_000, idleMs: 3_600_000 },
  }
  const cookie = await openSession(root, server.world, signIn)
  credentials = [
    { token: server.owner.token },
    { token: stage.member.token },
    { token: (await stage.caller()).token },
    { token: null, headers: { cookie: `${sessionCookie}=${cookie}` } },
  ]
})
afterAll(() => stage.stop())

describe('the ids', () => {
  /** Reads of something the stranger does not have. */
  const without = ['runs.events.get', 'runs.changeSet', 'runs.output.get', 'tasks.pullRequest']
  const reads = reaches.filter(
    ({ route, path }) => route.method === 'GET' && path.includes('{') && !without.includes(route.id),
  )
  it.each(reads)('are of things that the stranger reads: $label', async ({ route, path }) => {
    const reply = await server.call(fill(path, foreign), { base: route.base, token: strangerToken })
    expect([reply.status, reply.body]).toEqual([200, expect.anything()])
  })

  it('are none of those that name nothing, but for what comes with no workspace', () => {
    const same = Object.keys(unknownIds).filter(
      (name) => foreign[name] === undefined || foreign[name] === unknownIds[name],
    )
    expect(same).toEqual(['eventId'])
  })
})

describe('an id of a stranger in a path', () => {
  it.each(reaches.filter(({ path }) => path.includes('{')))('$label', async ({ route, path }) => {
    const { method, base, id } = route
    // A body that fits, so that it is the id that is looked at.
    const body = method === 'GET' ? undefined : ((await goodRequests[id]?.(stage))?.body ?? {})
    await expectSame(async (ids) => ({ path: fill(path, ids), method, base, body }))
  })

  const within: [string, string, (ids: Ids) => Promise<Place>][] = [
    ['tasks.checklist.update', 'POST', async (ids) => ofTask(`/checklist/${ids['itemId']}`, { done: true })],
    ['tasks.dependencies.remove', 'POST', async (ids) => ofTask(`/dependencies/${ids['dependencyId']}/remove`)],
    ['conversations.participants.remove', 'POST', async (ids) => ofChannel(`/participants/${ids['ref']}/remove`)],
    [
      'agents.revisions.get',
      'GET',
      async (ids) => ({ path: `/agents/${await stage.agent()}/revisions/${ids['revisionId']}` }),
    ],
    [
      'agents.history.revert',
      'POST',
      async (ids) => ({ path: `/agents/${await stage.agent()}/history/${ids['entryId']}/revert` }),
    ],
  ]
  it.each(within)('%s %s, below something of ours', async (_, method, placeOf) => {
    await expectSame(async (ids) => ({ ...(await placeOf(ids)), method }))
  })
})

describe('an id of a stranger in a body or a query', () => {
  type Placed = [route: string, method: string, (ids: Ids) => Promise<Place>]
  const places: readonly Placed[] = [
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
    ['tasks.list', 'GET', async (ids) => ({ path: `/tasks?ids=${ids['tasks.id']}` })],
    ['tasks.list', 'GET', async (ids) => ({ path: `/tasks?startingAfter=${ids['tasks.id']}` })],
    ['tasks.list', 'GET', async (ids) => ({ path: `/tasks?projectId=${ids['projectId']}` })],
    ['tasks.list', 'GET', async (ids) => ({ path: `/tasks?assignee=${ids['agentId']}` })],
    ['tasks.list', 'GET', async (ids) => ({ path: `/tasks?parentTaskId=${ids['taskId']}` })],
    ['conversations.list', 'GET', async (ids) => ({ path: `/conversations?ids=${ids['conversations.id']}` })],
    ['conversations.list', 'GET', async (ids) => ({ path: `/conversations?startingAfter=${ids['conversations.id']}` })],
    ['conversations.list', 'GET', async (ids) => ({ path: `/conversations?taskId=${ids['taskId']}` })],
    ['conversations.list', 'GET', async (ids) => ({ path: `/conversations?participantId=${ids['agentId']}` })],
    ['conversations.messages.list', 'GET', async (ids) => ofChannel(`/messages?around=${ids['messages.id']}`)],
    ['conversations.messages.list', 'GET', async (ids) => ofChannel(`/messages?startingAfter=${ids['messages.id']}`)],
    ['tasks.comments.list', 'GET', async (ids) => ofTask(`/comments?after=${ids['messages.id']}`)],
    ...(['approvals', 'questions'] as const).flatMap((gates) =>
      (
        [
          ['taskId', 'taskId'],
          ['runId', 'runId'],
          ['conversationId', 'conversations.id'],
          gates === 'approvals' ? ['assignedToUserId', 'userId'] : ['askedByAgentId', 'agentId'],
          ['startingAfter', gates === 'approvals' ? 'approvalId' : 'questions.id'],
        ] as const
      ).map(([key, name]): Placed => [
        `${gates}.list`,
        'GET',
        async (ids) => ({ path: `/${gates}?${key}=${ids[name]}` }),
      ]),
    ),
    ['automations.list', 'GET', async (ids) => ({ path: `/automations?agentId=${ids['agentId']}` })],
    ...(
      [
        ['assignee', 'agentId'],
        ['assignee', 'userId'],
        ['projectId', 'projectId'],
        ['parentTaskId', 'taskId'],
        ['repoId', 'repoId'],
      ] as const
    ).map(([key, name]): Placed => [
      'tasks.create',
      'POST',
      async (ids) => ({ path: '/tasks', body: { title: crypto.randomUUID(), [key]: ids[name] } }),
    ]),
    ['tasks.update', 'POST', async (ids) => ofTask('', { projectId: ids['projectId'] })],
    ['tasks.update', 'POST', async (ids) => ofTask('', { repoId: ids['repoId'] })],
    ['tasks.assign', 'POST', async (ids) => ofTask('/assign', { assignee: ids['agentId'] })],
    ['tasks.assign', 'POST', async (ids) => ofTask('/assign', { assignee: { type: 'user', id: ids['userId'] } })],
    ['tasks.move', 'POST', async (ids) => ofTask('/move', { parentTaskId: ids['taskId'] })],
    ['tasks.watchers.add', 'POST', async (ids) => ofTask('/watchers', { type: 'agent', id: ids['agentId'] })],
    ['tasks.watchers.add', 'POST', async (ids) => ofTask('/watchers', { type: 'user', id: ids['userId'] })],
    [
      'tasks.comments.create',
      'POST',
      async (ids) => ofTask('/comments', { content: 'x', parentMessageId: ids['messages.id'] }),
    ],
    ['conversations.create', 'POST', async (ids) => ({ path: '/conversations', body: { taskId: ids['taskId'] } })],
    [
      'conversations.create',
      'POST',
      async (ids) => ({ path: '/conversations', body: { participants: [ids['agentId']] } }),
    ],
    [
      'conversations.create',
      'POST',
      async (ids) => ({ path: '/conversations', body: { participants: [ids['userId']] } }),
    ],
    ['conversations.participants.add', 'POST', async (ids) => ofChannel('/participants', { id: ids['agentId'] })],
    ['conversations.send', 'POST', async (ids) => ofChannel('/send', { body: 'x', agentId: ids['agentId'] })],
    [
      'conversations.messages.create',
      'POST',
      async (ids) => ofChannel('/messages', { body: 'x', parentMessageId: ids['messages.id'] }),
    ],
    [
      'automations.create',
      'POST',
      async (ids) => ({
        path: '/automations',
        body: { name: 'A', prompt: 'x', trigger: { type: 'webhook' }, agentId: ids['agentId'] },
      }),
    ],
  ]
  it.each(places)('%s %s', async (routeId, method, placeOf) => {
    // A key that the route does not read would prove nothing.
    const { path } = await placeOf(foreign)
    const route = contract.find(({ id }) => id === routeId)!
    expect(Object.keys(route.query.shape)).toEqual(
      expect.arrayContaining([...new URL(path, 'http://x').searchParams.keys()]),
    )

    await expectSame(async (ids) => ({ ...(await placeOf(ids)), method }))
  })
})

interface Place {
  path: string
  method?: string
  base?: '/api' | '/api/v1'
  body?: unknown
}
const ofTask = async (path: string, body?: unknown): Promise<Place> => ({
  path: `/tasks/${(await makeTask(stage)).id}${path}`,
  body,
})
const ofChannel = async (path: string, body?: unknown): Promise<Place> => ({
  path: `/conversations/${(await makeConversation(server)).id}${path}`,
  body,
})

/** Whoever of ours asks: what a stranger has is answered as what there is not. */
async function expectSame(placeOf: (ids: Ids) => Promise<Place>): Promise<void> {
  for (const { token, headers } of credentials) {
    const answerFor = async (ids: Ids) => {
      const { path, method, base, body } = await placeOf(ids)
      return server.call(path, {
        ...(method === undefined ? {} : { method }),
        ...(base === undefined ? {} : { base }),
        ...(token === undefined ? {} : { token }),
        ...(body === undefined || method === 'GET' ? {} : { body }),
        headers: { ...headers, accept: 'application/json', 'idempotency-key': crypto.randomUUID() },
      })
    }
    const [unknown, theirs] = [await answerFor(unknownIds), await answerFor(foreign)]
    expect(shapeOf(theirs)).toEqual(shapeOf(unknown))
  }
}

/** All of an answer but the parts that differ from request to request. */
function shapeOf(reply: { status: number; body: unknown }) {
  const text = JSON.stringify(reply.body ?? null)
  return {
    status: reply.status,
    text: text.replaceAll(/req_\w+|[a-z]{2,4}_\w{16}|[0-9a-f-]{36}|[\d-]{10}T[\d:.]+Z/g, 'ID'),
  }
}
