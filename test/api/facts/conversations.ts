import fc from 'fast-check'
import { makeConversation, makeDm } from '../../kit/talk.ts'
import type { Stage } from '../contract/stage.ts'
import {
  atChannel,
  atOnce,
  badTexts,
  busyChannel,
  channel,
  dm,
  send,
  text,
  unknownConversation as unknown,
} from './kit/channels.ts'
import { inPool, nobody, on, plain, postKeyed, thing } from './kit/recipe.ts'
import type { CodeRecipe, Placed, Recipe, ResourceFacts } from './kit/resource-facts.ts'
import { makeTask } from './kit/tasks.ts'

const ofTask = async (stage: Stage): Promise<string> =>
  (await makeConversation(stage.server, { taskId: (await makeTask(stage)).id })).id as string
const setRuntime = ({ server }: Stage, id: string, body: unknown) =>
  server.call(`/conversations/${id}/runtime`, { method: 'PATCH', body })
const create = (stage: Stage, body: Record<string, unknown>) => postKeyed(stage, '/conversations', body)

async function archived(stage: Stage): Promise<string> {
  const id = await channel(stage)
  await stage.server.ok(`/conversations/${id}/archive`, {
    method: 'POST',
    headers: { 'idempotency-key': crypto.randomUUID() },
  })
  return id
}

const ofConversation =
  (make: (stage: Stage) => Promise<string>, body?: unknown): Recipe =>
  async (stage) => ({
    params: { 'conversations.id': await make(stage) },
    ...(body === undefined ? {} : { body }),
  })

/** Whatever is done to a conversation: the method, what follows its path, a body that would do. */
const ofOne: readonly [route: string, method: string, path: string, body?: unknown][] = [
  ['conversations.get', 'GET', ''],
  ['conversations.rename', 'POST', '', { title: 'x' }],
  ['conversations.read', 'POST', '/read'],
  ['conversations.archive', 'POST', '/archive'],
  ['conversations.unarchive', 'POST', '/unarchive'],
  ['conversations.delete', 'POST', '/delete'],
  ['conversations.participants.add', 'POST', '/participants', { id: nobody }],
  ['conversations.participants.remove', 'POST', `/participants/${nobody}/remove`],
  ['conversations.runtime.update', 'PATCH', '/runtime', { speed: null }],
  ['conversations.send', 'POST', '/send', text],
  ['conversations.events', 'GET', '/events'],
]
/** Of those, what a person who is in no way in charge of a channel may not do. */
const forAdmins = [
  'conversations.rename',
  'conversations.archive',
  'conversations.unarchive',
  'conversations.delete',
  'conversations.participants.add',
  'conversations.participants.remove',
]

const codes: readonly CodeRecipe[] = [
  on('conversations.create', '409 dm_already_exists', async (stage) => {
    const agentId = await stage.agent()
    await makeDm(stage.server, agentId)
    return create(stage, { kind: 'dm', participants: [agentId] })
  }),
  on('conversations.create', '400 dm_requires_one_agent', (stage) => create(stage, { kind: 'dm' })),
  on('conversations.create', '400 dm_requires_one_user', async (stage) =>
    create(stage, { kind: 'dm', participants: [await stage.agent(), stage.member.userId] }),
  ),
  on('conversations.create', '409 task_already_has_conversation', async (stage) => {
    const taskId = (await makeTask(stage)).id
    await makeConversation(stage.server, { taskId })
    return create(stage, { taskId })
  }),
  on('conversations.create', '404 participant_not_found', (stage) => create(stage, { participants: [nobody] })),
  ...ofOne.map(([route, method, path, body]) =>
    on(route, '404 conversation_not_found', (stage) =>
      postKeyed(stage, `/conversations/${unknown}${path}`, body, { method }),
    ),
  ),
  ...ofOne
    .filter(([route]) => forAdmins.includes(route))
    .map(([route, method, path, body]) =>
      on(route, '403 not_authorized', async (stage) =>
        postKeyed(stage, `/conversations/${await channel(stage)}${path}`, body, { method, token: stage.member.token }),
      ),
    ),
  on('conversations.participants.add', '400 dm_cannot_add_participant', async (stage) =>
    postKeyed(stage, `/conversations/${await dm(stage)}/participants`, { id: stage.member.userId }),
  ),
  on('conversations.participants.add', '404 participant_not_found', async (stage) =>
    postKeyed(stage, `/conversations/${await channel(stage)}/participants`, { id: nobody }),
  ),
  on('conversations.participants.remove', '404 participant_not_found', async (stage) =>
    postKeyed(stage, `/conversations/${await channel(stage)}/participants/${stage.member.userId}/remove`),
  ),
  on('conversations.archive', '409 conversation_dm_not_archivable', async (stage) =>
    postKeyed(stage, `/conversations/${await dm(stage)}/archive`),
  ),
  on('conversations.delete', '409 conversation_dm_not_deletable', async (stage) =>
    postKeyed(stage, `/conversations/${await dm(stage)}/delete`),
  ),
  on('conversations.delete', '409 conversation_task_linked', async (stage) =>
    postKeyed(stage, `/conversations/${await ofTask(stage)}/delete`),
  ),
  on('conversations.delete', '409 conversation_has_live_run', async (stage) =>
    postKeyed(stage, `/conversations/${await busyChannel(stage)}/delete`),
  ),
  on('conversations.runtime.update', '409 conversation_busy', async (stage) =>
    setRuntime(stage, await busyChannel(stage), { modelId: 'gpt-5' }),
  ),
  on('conversations.runtime.update', '400 speed_unsupported', async (stage) =>
    setRuntime(stage, await dm(stage), { modelId: 'gpt-5', speed: 'fast' }),
  ),
  on('conversations.runtime.update', '400 reasoning_effort_unsupported', async (stage) =>
    setRuntime(stage, await dm(stage), { modelId: 'gpt-5', reasoningEffort: 'max' }),
  ),
  on('conversations.list', '400 invalid_cursor', ({ server }) =>
    server.call(`/conversations?startingAfter=${unknown}`),
  ),
  on('conversations.get', '400 invalid_include', async (stage) =>
    stage.server.call(`/conversations/${await channel(stage)}?include[]=agent`),
  ),
  on('conversations.send', '403 not_a_participant', async (stage) =>
    send(stage, await channel(stage, [], stage.admin.token)),
  ),
  on('conversations.send', '400 send_target_required', async (stage) =>
    send(stage, await channel(stage, [await stage.agent(), await stage.agent()])),
  ),
  on('conversations.send', '429 rate_limited', async (stage) => send(stage, await busyChannel(stage))),
  ...badTexts.flatMap(([outcome, bad]) => [
    on('conversations.create', outcome, (stage) => create(stage, { firstMessage: bad })),
    on('conversations.send', outcome, async (stage) => send(stage, await dm(stage), { body: bad })),
  ]),
]

export const conversationFacts: ResourceFacts = {
  requests: {
    'conversations.create': async () => ({ body: { title: 'Release', firstMessage: 'Hello.' } }),
    'conversations.list': plain,
    'conversations.get': ofConversation(channel),
    'conversations.rename': ofConversation(channel, { title: 'Release 2' }),
    'conversations.read': ofConversation(channel),
    'conversations.archive': ofConversation(channel),
    'conversations.unarchive': ofConversation(archived),
    'conversations.delete': ofConversation(channel),
    'conversations.participants.add': async (stage) => ({
      params: { 'conversations.id': await channel(stage) },
      body: { id: stage.member.userId },
    }),
    'conversations.participants.remove': async (stage) => {
      const agentId = await stage.agent()
      return { params: { 'conversations.id': await channel(stage, [agentId]), ref: agentId } }
    },
    'conversations.runtime.update': ofConversation(dm, { modelId: 'gpt-5' }),
    'conversations.send': async (stage) => ({
      params: { 'conversations.id': await dm(stage) },
      body: text,
      headers: atOnce,
    }),
    'conversations.events': ofConversation(channel),
  },
  codes,

  unknownIds: { 'conversations.id': unknown, ref: nobody },
  // With a message, which `messages.ts` names.
  things: async ({ server, person, agentId }) => {
    const { id } = await makeConversation(server, { participants: [agentId] }, person.token)
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const said = { token: person.token, headers, body: { body: 'Hello.' } }
    const message = await server.ok(`/conversations/${id}/messages`, said)
    return { 'conversations.id': id, ref: agentId, 'messages.id': message.id }
  },
  places: [
    ['conversations.list', 'GET', (_, ids) => ({ path: `/conversations?ids=${ids['conversations.id']}` })],
    ['conversations.list', 'GET', (_, ids) => ({ path: `/conversations?startingAfter=${ids['conversations.id']}` })],
    ['conversations.list', 'GET', (_, ids) => ({ path: `/conversations?taskId=${ids['taskId']}` })],
    ['conversations.list', 'GET', (_, ids) => ({ path: `/conversations?participantId=${ids['agentId']}` })],
    ['conversations.create', 'POST', (_, ids) => ({ path: '/conversations', body: { taskId: ids['taskId'] } })],
    ...(['agentId', 'userId'] as const).map((name): Placed => [
      'conversations.create',
      'POST',
      (_, ids) => ({ path: '/conversations', body: { participants: [ids[name]] } }),
    ]),
    [
      'conversations.participants.add',
      'POST',
      (stage, ids) => atChannel(stage, '/participants', { id: ids['agentId'] }),
    ],
    ['conversations.send', 'POST', (stage, ids) => atChannel(stage, '/send', { body: 'x', agentId: ids['agentId'] })],
  ],
  within: [
    [
      'conversations.participants.remove',
      'POST',
      (stage, ids) => atChannel(stage, `/participants/${ids['ref']}/remove`),
    ],
  ],
  named: {
    participantId: thing('ref'),
    participants: fc.constantFrom<unknown>(
      [],
      [inPool('agentId')],
      [inPool('userId')],
      [{ type: 'user', id: inPool('userId') }],
    ),
    conversationId: thing('conversations.id'),
    startingAfter: thing('conversations.id'),
  },
}
