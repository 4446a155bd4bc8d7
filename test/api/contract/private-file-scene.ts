import { createHash } from 'node:crypto'
import { makeThings } from './collected.ts'
import { inBase64, makeFile } from '../facts/kit/files.ts'
import { makeTask } from '../facts/kit/tasks.ts'
import type { Ids } from '../facts/kit/resource-facts.ts'
import { keyed, makeConversation, makeDm, say } from '../../kit/talk.ts'
import type { AgentCaller, Person } from '../../kit/server.ts'
import type { Stage } from './stage.ts'

// One private file with all that may hang on it, and everybody who may ask for it.

export const callers = ['stranger', 'agent', 'member', 'uploader', 'owner', 'admin'] as const
export type CallerName = (typeof callers)[number]
/** Those who may read the file. */
export const readers: readonly CallerName[] = ['uploader', 'owner', 'admin']

export interface Cast {
  /** Of the file, and of the agent that uploaded it. */
  owner: Person
  admin: Person
  member: Person
  stranger: Person
  uploader: AgentCaller
  agent: AgentCaller
}

export async function castOf(stage: Stage): Promise<Cast> {
  const { server, admin, member } = stage
  const owner = await server.addPerson('member')
  return {
    owner,
    admin,
    member,
    stranger: await server.addPerson('owner', 'elsewhere'),
    uploader: await server.agentCaller({}, { token: owner.token }),
    agent: await server.agentCaller({}, { token: member.token }),
  }
}

/** By what the file is known when it is seen in an answer. */
export type Mark =
  | 'id'
  | 'name'
  | 'description'
  | 'text'
  | 'old text'
  | 'hash'
  | 'old hash'
  | 'version'
  | 'old version'
  | 'relation'
  | 'URL'
  | 'old URL'

export interface Scene {
  /** Ids of what the file hangs on: requests are made with each of these. */
  views: readonly Ids[]
  /** What must not be seen. */
  marks: Readonly<Record<Mark, string>>
}

const texts = ['An okapi sleeps here.', 'A quagga slept here.'] as const
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

/** A new agent uploads it in two versions; it is related to all that files relate to, attached to a comment and to messages, one of which woke its uploader. */
export async function makeScene({ server }: Stage, cast: Cast): Promise<Scene> {
  const { owner, admin, member, agent } = cast
  const { token } = owner
  // An agent has one dm with a person.
  const uploader = (cast.uploader = await server.agentCaller({}, { token }))
  const { id: projectId } = await server.ok('/projects', { body: { name: 'Open to all' }, token })
  const blocker = await makeTask({ server, token })
  const task = await makeTask({ server, token }, { projectId, checklist: ['Test it'], dependsOn: [blocker.key] })
  const participants = [agent.agent.id, { type: 'user', id: member.userId }, { type: 'user', id: admin.userId }]
  const channel = await makeConversation(server, { kind: 'channel', title: 'All hands', participants }, token)
  const dm = await makeDm(server, uploader.agent.id, token)
  const relations = [
    { entityType: 'task', entityId: task.id, role: 'spec' },
    { entityType: 'project', entityId: projectId, role: 'spec' },
    { entityType: 'run', entityId: 'current', role: 'made' },
  ]
  const sent = { name: 'zorilla.txt', description: 'The numbat report', contentBase64: inBase64(texts[1]), relations }
  const { id } = await makeFile({ server }, sent, uploader.token)
  const body = { contentBase64: inBase64(texts[0]) }
  await server.ok(`/files/${id}/replace`, { body, token: uploader.token })
  await server.ok(`/files/${id}`, { method: 'PATCH', body: { visibility: 'private' }, token: admin.token })
  await server.ok(`/files/${id}/transfer-owner`, { body: { newOwnerId: owner.userId }, token: admin.token })

  const attachmentIds = [id]
  const comment = await server.ok(`/tasks/${task.id}/comments`, {
    body: { content: 'Look at it.', attachmentIds },
    headers: keyed(),
    token,
  })
  const message = await say(server, channel.id, { body: 'Look here.', attachmentIds }, token)
  const asked = await say(server, dm.id, { body: 'Read it.', attachmentIds }, token)
  await server.plane.waker.idle()
  for (const [entityType, entityId] of [
    ['comment', comment.id],
    ['comment', message.id],
    ['conversation', channel.id],
    ['conversation', dm.id],
  ])
    await server.ok(`/files/${id}/relations`, { body: { entityType, entityId, role: 'about' }, token })
  const runs = await server.ok(`/runs?agent=${uploader.agent.id}&limit=100`, { token })
  const woken = []
  for (const { id: runId } of runs.data) {
    const { prompt } = await server.ok(`/runs/${runId}/context`, { token })
    if (prompt.includes(id)) woken.push(runId)
  }
  if (woken.length === 0) throw new Error('the message woke nobody')
  const [current, first] = (await server.ok(`/files/${id}/revisions`, { token })).data
  const [relation] = (await server.ok(`/files/${id}/relations`, { token })).data
  const { conversation } = await server.ok(`/tasks/${task.id}?include[]=conversation`, { token })
  const ids = {
    'files.id': id,
    relationId: relation.id,
    projectId,
    'tasks.id': task.id,
    taskId: task.id,
    itemId: task.checklist[0].id,
    dependencyId: blocker.id,
    agentId: uploader.agent.id,
  }
  return {
    views: [
      {
        ...ids,
        'files.revisionId': first.id,
        runId: uploader.runId,
        'conversations.id': channel.id,
        'messages.id': message.id,
      },
      {
        ...ids,
        'files.revisionId': current.id,
        runId: woken[0],
        'conversations.id': dm.id,
        'messages.id': asked.id,
      },
      {
        ...ids,
        'files.revisionId': current.id,
        runId: uploader.runId,
        'conversations.id': conversation.id,
        'messages.id': comment.id,
      },
    ],
    marks: {
      id,
      name: 'zorilla',
      description: 'numbat',
      text: 'okapi',
      'old text': 'quagga',
      hash: hashOf(texts[0]),
      'old hash': hashOf(texts[1]),
      version: current.id,
      'old version': first.id,
      relation: relation.id,
      URL: `${current.id}?expires=`,
      'old URL': `${first.id}?expires=`,
    },
  }
}

/** What requests name that has nothing to do with the file. */
export async function otherThings(stage: Stage, { owner, member }: Cast): Promise<Ids> {
  const { server, live } = stage
  const agentId = await stage.agent({}, owner.token)
  const things = await makeThings({ server, person: owner, agentId, colleague: member, liveRunId: null })
  return { ...things, runId: live.runId, userId: owner.userId, companyId: owner.workspaceId }
}
