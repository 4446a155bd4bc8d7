import type { Stage } from '../contract/stage.ts'
import { aMessage, atChannel, badTexts, channel, text, unknownConversation, unknownMessage } from './kit/channels.ts'
import { on, postKeyed, thing } from './kit/recipe.ts'
import type { CodeRecipe, Recipe, ResourceFacts } from './kit/resource-facts.ts'

async function deletedMessage(stage: Stage): Promise<string> {
  const id = await aMessage(stage)
  await stage.server.ok(`/messages/${id}/delete`, {
    method: 'POST',
    headers: { 'idempotency-key': crypto.randomUUID() },
  })
  return id
}

const ofMessage =
  (body?: unknown): Recipe =>
  async (stage) => ({ params: { 'messages.id': await aMessage(stage) }, ...(body === undefined ? {} : { body }) })
const ofChannel =
  (body?: unknown): Recipe =>
  async (stage) => ({
    params: { 'conversations.id': await channel(stage) },
    ...(body === undefined ? {} : { body }),
  })

const codes: readonly CodeRecipe[] = [
  on('conversations.messages.create', '404 conversation_not_found', (stage) =>
    postKeyed(stage, `/conversations/${unknownConversation}/messages`, text),
  ),
  on('conversations.messages.list', '404 conversation_not_found', ({ server }) =>
    server.call(`/conversations/${unknownConversation}/messages`),
  ),
  ...badTexts.flatMap(([outcome, bad]) => [
    on('conversations.messages.create', outcome, async (stage) =>
      postKeyed(stage, `/conversations/${await channel(stage)}/messages`, { body: bad }),
    ),
    on('messages.edit', outcome, async (stage) =>
      postKeyed(stage, `/messages/${await aMessage(stage)}`, { body: bad }),
    ),
  ]),
  on('conversations.messages.create', '403 not_a_participant', async (stage) =>
    postKeyed(stage, `/conversations/${await channel(stage, [], stage.admin.token)}/messages`, text),
  ),
  on('conversations.messages.create', '400 parent_not_in_conversation', async (stage) =>
    postKeyed(stage, `/conversations/${await channel(stage)}/messages`, {
      ...text,
      parentMessageId: await aMessage(stage),
    }),
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
  on('messages.edit', '404 message_not_found', (stage) => postKeyed(stage, `/messages/${unknownMessage}`, text)),
  on('messages.delete', '404 message_not_found', (stage) => postKeyed(stage, `/messages/${unknownMessage}/delete`)),
  on('messages.edit', '409 message_deleted', async (stage) =>
    postKeyed(stage, `/messages/${await deletedMessage(stage)}`, text),
  ),
  on('messages.delete', '409 message_deleted', async (stage) =>
    postKeyed(stage, `/messages/${await deletedMessage(stage)}/delete`),
  ),
  ...['edit', 'delete'].map((what) =>
    on(`messages.${what}`, '403 not_authorized', async (stage) =>
      postKeyed(stage, `/messages/${await aMessage(stage)}${what === 'edit' ? '' : '/delete'}`, text, {
        token: stage.member.token,
      }),
    ),
  ),
]

export const messageFacts: ResourceFacts = {
  requests: {
    'conversations.messages.create': ofChannel(text),
    'conversations.messages.list': ofChannel(),
    'messages.get': ofMessage(),
    'messages.edit': ofMessage(text),
    'messages.delete': ofMessage(),
  },
  codes,

  // `conversations.ts` makes what it names.
  unknownIds: { 'messages.id': unknownMessage },
  places: [
    ['conversations.messages.list', 'GET', (stage, ids) => atChannel(stage, `/messages?around=${ids['messages.id']}`)],
    [
      'conversations.messages.list',
      'GET',
      (stage, ids) => atChannel(stage, `/messages?startingAfter=${ids['messages.id']}`),
    ],
    [
      'conversations.messages.create',
      'POST',
      (stage, ids) => atChannel(stage, '/messages', { body: 'x', parentMessageId: ids['messages.id'] }),
    ],
    [
      'conversations.messages.create',
      'POST',
      (stage, ids) => atChannel(stage, '/messages', { body: 'x', attachmentIds: [ids['files.id']] }),
    ],
  ],
  named: { parentMessageId: thing('messages.id'), around: thing('messages.id'), startingAfter: thing('messages.id') },
}
