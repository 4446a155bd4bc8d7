import { aMessage, badTexts } from './kit/channels.ts'
import { on, postKeyed } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'
import { atTask, makeTask, unknownTask } from './kit/tasks.ts'

export const taskCommentFacts: ResourceFacts = {
  requests: {
    'tasks.comments.list': async (stage) => ({ params: { taskId: (await makeTask(stage)).id } }),
    'tasks.comments.create': async (stage) => ({
      params: { taskId: (await makeTask(stage)).id },
      body: { content: 'The build is green.' },
    }),
  },
  codes: [
    ...badTexts.map(([outcome, bad]) =>
      on('tasks.comments.create', outcome.replace('empty_message', 'empty_comment'), async (stage) =>
        postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/comments`, { content: bad }),
      ),
    ),
    on('tasks.comments.create', '400 parent_not_in_conversation', async (stage) =>
      postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/comments`, {
        content: 'x',
        parentMessageId: await aMessage(stage),
      }),
    ),
    on('tasks.comments.create', '409 invalid_task_transition', async (stage) =>
      postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/comments`, { content: 'Again.', reopen: true }),
    ),
  ],
  plainErrors: { 'plain.comment_task_missing': ({ send }) => send({ params: { taskId: unknownTask } }) },
  places: [
    ['tasks.comments.list', 'GET', (stage, ids) => atTask(stage, `/comments?after=${ids['messages.id']}`)],
    [
      'tasks.comments.create',
      'POST',
      (stage, ids) => atTask(stage, '/comments', { content: 'x', parentMessageId: ids['messages.id'] }),
    ],
    [
      'tasks.comments.create',
      'POST',
      (stage, ids) => atTask(stage, '/comments', { content: 'x', attachmentIds: [ids['files.id']] }),
    ],
  ],
}
