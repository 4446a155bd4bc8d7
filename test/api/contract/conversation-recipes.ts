import type { CallOptions, Reply } from '../../kit/server.ts'
import { keyed, makeConversation, makeDm, say } from '../../kit/talk.ts'
import { on, type CodeRecipe } from './code-recipes.ts'
import { unknownIds } from './every-route.ts'
import type { GoodRequest } from './good-requests.ts'
import type { Stage } from './stage.ts'
import { makeTask } from './task-requests.ts'

/** Requests of conversations, messages and comments: good ones, and one for each code on the routes the documents name. */

const channel = async ({ server }: Stage, participants: readonly string[] = [], token?: string): Promise<string> =>
  (await makeConversation(server, { participants }, token)).id as string
const dm = async (stage: Stage): Promise<string> => (await makeDm(stage.server, await stage.agent())).id as string
const ofTask = async (stage: Stage): Promise<string> =>
  (await makeConversation(stage.server, { taskId: (await makeTask(stage)).id })).id as string
async function aMessage(stage: Stage): Promise<string> {
  return (await say(stage.server, await channel(stage), 'Hello.')).id as string
}
async function deletedMessage(stage: Stage): Promise<string> {
  const id = await aMessage(stage)
  await stage.server.ok(`/messages/${id}/delete`, { method: 'POST', headers: keyed() })
  return id
}

function post({ server }: Stage, path: string, body?: unknown, more: CallOptions = {}): Promise<Reply> {
  return server.call(path, { method: 'POST', headers: keyed(), ...(body === undefined ? {} : { body }), ...more })
}
/** Without this a turn is answered by a stream that lasts as long as the run. */
const atOnce = { accept: 'application/json' }
const send = (stage: Stage, id: string, body: Record<string, unknown> = { body: 'Hello.' }) =>
  post(stage, `/conversations/${id}/send`, body, { headers: atOnce })
const setRuntime = ({ server }: Stage, id: string, body: unknown) =>
  server.call(`/conversations/${id}/runtime`, { method: 'PATCH', body })
const create = (stage: Stage, body: Record<string, unknown>) => post(stage, '/conversations', body)

/** A channel whose agent has begun a turn; no device takes it, so it goes on. */
async function busyChannel(stage: Stage): Promise<string> {
  const id = await channel(stage, [await stage.agent()])
  const { status } = await send(stage, id)
  if (status !== 200) throw new Error(`no turn: ${status}`)
  return id
}
async function archived(stage: Stage): Promise<string> {
  const id = await channel(stage)
  await stage.server.ok(`/conversations/${id}/archive`, { method: 'POST', headers: keyed() })
  return id
}

type Recipe = (stage: Stage) => Promise<GoodRequest>
const ofConversation =
  (make: (stage: Stage) => Promise<string>, body?: unknown): Recipe =>
  async (stage) => ({
    params: { 'conversations.id': await make(stage) },
    ...(body === undefined ? {} : { body }),
  })
const ofMessage =
  (body?: unknown): Recipe =>
  async (stage) => ({ params: { 'messages.id': await aMessage(stage) }, ...(body === undefined ? {} : { body }) })
const text = { body: 'The build is green.' }

export const conversationRequests: Record<string, Recipe> = {
  'tasks.comments.list': async (stage) => ({ params: { taskId: (await makeTask(stage)).id } }),
  'tasks.comments.create': async (stage) => ({
    params: { taskId: (await makeTask(stage)).id },
    body: { content: 'The build is green.' },
  }),
  'conversations.create': async () => ({ body: { title: 'Release', firstMessage: 'Hello.' } }),
  'conversations.list': async () => ({}),
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
  'conversations.messages.create': ofConversation(channel, text),
  'conversations.messages.list': ofConversation(channel),
  'messages.get': ofMessage(),
  'messages.edit': ofMessage(text),
  'messages.delete': ofMessage(),
}

const unknown = unknownIds['conversations.id']!
const unknownMessage = unknownIds['messages.id']!
const nobody = unknownIds['userId']!

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
  ['conversations.messages.create', 'POST', '/messages', text],
  ['conversations.messages.list', 'GET', '/messages'],
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

/** Ways to say something that is not to be said, on each route that takes a text. */
const badTexts: readonly [outcome: string, text: string][] = [
  ['400 empty_message', ' '],
  ['400 secret_in_message', `my key is ghp_${'a1B2c3D4e5F6'.repeat(3)}`],
]

const creationRecipes: readonly CodeRecipe[] = [
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
]

const careRecipes: readonly CodeRecipe[] = [
  ...ofOne.map(([route, method, path, body]) =>
    on(route, '404 conversation_not_found', (stage) =>
      post(stage, `/conversations/${unknown}${path}`, body, { method }),
    ),
  ),
  ...ofOne
    .filter(([route]) => forAdmins.includes(route))
    .map(([route, method, path, body]) =>
      on(route, '403 not_authorized', async (stage) =>
        post(stage, `/conversations/${await channel(stage)}${path}`, body, { method, token: stage.member.token }),
      ),
    ),
  on('conversations.participants.add', '400 dm_cannot_add_participant', async (stage) =>
    post(stage, `/conversations/${await dm(stage)}/participants`, { id: stage.member.userId }),
  ),
  on('conversations.participants.add', '404 participant_not_found', async (stage) =>
    post(stage, `/conversations/${await channel(stage)}/participants`, { id: nobody }),
  ),
  on('conversations.participants.remove', '404 participant_not_found', async (stage) =>
    post(stage, `/conversations/${await channel(stage)}/participants/${stage.member.userId}/remove`),
  ),
  on('conversations.archive', '409 conversation_dm_not_archivable', async (stage) =>
    post(stage, `/conversations/${await dm(stage)}/archive`),
  ),
  on('conversations.delete', '409 conversation_dm_not_deletable', async (stage) =>
    post(stage, `/conversations/${await dm(stage)}/delete`),
  ),
  on('conversations.delete', '409 conversation_task_linked', async (stage) =>
    post(stage, `/conversations/${await ofTask(stage)}/delete`),
  ),
  on('conversations.delete', '409 conversation_has_live_run', async (stage) =>
    post(stage, `/conversations/${await busyChannel(stage)}/delete`),
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
]

const messageRecipes: readonly CodeRecipe[] = [
  ...badTexts.flatMap(([outcome, bad]) => [
    on('conversations.create', outcome, (stage) => create(stage, { firstMessage: bad })),
    on('conversations.send', outcome, async (stage) => send(stage, await dm(stage), { body: bad })),
    on('conversations.messages.create', outcome, async (stage) =>
      post(stage, `/conversations/${await channel(stage)}/messages`, { body: bad }),
    ),
    on('messages.edit', outcome, async (stage) => post(stage, `/messages/${await aMessage(stage)}`, { body: bad })),
    on('tasks.comments.create', outcome.replace('empty_message', 'empty_comment'), async (stage) =>
      post(stage, `/tasks/${(await makeTask(stage)).id}/comments`, { content: bad }),
    ),
  ]),
  on('conversations.send', '403 not_a_participant', async (stage) =>
    send(stage, await channel(stage, [], stage.admin.token)),
  ),
  on('conversations.send', '400 send_target_required', async (stage) =>
    send(stage, await channel(stage, [await stage.agent(), await stage.agent()])),
  ),
  on('conversations.send', '429 rate_limited', async (stage) => send(stage, await busyChannel(stage))),
  on('conversations.messages.create', '403 not_a_participant', async (stage) =>
    post(stage, `/conversations/${await channel(stage, [], stage.admin.token)}/messages`, text),
  ),
  on('conversations.messages.create', '400 parent_not_in_conversation', async (stage) =>
    post(stage, `/conversations/${await channel(stage)}/messages`, {
      ...text,
      parentMessageId: await aMessage(stage),
    }),
  ),
  on('tasks.comments.create', '400 parent_not_in_conversation', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/comments`, {
      content: 'x',
      parentMessageId: await aMessage(stage),
    }),
  ),
  on('tasks.comments.create', '409 invalid_task_transition', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/comments`, { content: 'Again.', reopen: true }),
  ),
  on('conversations.messages.list', '400 invalid_cursor', async (stage) =>
    stage.server.call(`/conversations/${await channel(stage)}/messages?endingBefore=${await aMessage(stage)}`),
  ),
  on('conversations.messages.list', '404 message_not_found', async (stage) =>
    stage.server.call(`/conversations/${await channel(stage)}/messages?around=${await aMessage(stage)}`),
  ),
  on('messages.get', '400 invalid_include', async (stage) =>
    stage.server.call(`/messages/${await aMessage(stage)}?include[]=agent`),
  ),
  on('messages.get', '404 message_not_found', ({ server }) => server.call(`/messages/${unknownMessage}`)),
  on('messages.edit', '404 message_not_found', (stage) => post(stage, `/messages/${unknownMessage}`, text)),
  on('messages.delete', '404 message_not_found', (stage) => post(stage, `/messages/${unknownMessage}/delete`)),
  on('messages.edit', '409 message_deleted', async (stage) =>
    post(stage, `/messages/${await deletedMessage(stage)}`, text),
  ),
  on('messages.delete', '409 message_deleted', async (stage) =>
    post(stage, `/messages/${await deletedMessage(stage)}/delete`),
  ),
  ...['edit', 'delete'].map((what) =>
    on(`messages.${what}`, '403 not_authorized', async (stage) =>
      post(stage, `/messages/${await aMessage(stage)}${what === 'edit' ? '' : '/delete'}`, text, {
        token: stage.member.token,
      }),
    ),
  ),
]

export const conversationRecipes: readonly CodeRecipe[] = [...creationRecipes, ...careRecipes, ...messageRecipes]
