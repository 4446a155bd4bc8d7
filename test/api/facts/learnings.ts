import fc from 'fast-check'
import { makeLearning, newLearning } from './kit/learnings.ts'
import { on, patch, plain, post, postKeyed, thing } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'
import type { Stage } from '../contract/stage.ts'

const aLearning: Recipe = async (stage) => ({ params: { 'learnings.id': (await makeLearning(stage)).id } })
const unknown = 'lrn_0000000000000000'

async function reviewed(stage: Stage): Promise<string> {
  const { id, approvalId } = await makeLearning(stage)
  await postKeyed(stage, `/approvals/${approvalId}/approve`, {})
  return id as string
}

export const learningFacts: ResourceFacts = {
  requests: {
    'learnings.list': plain,
    'learnings.create': () => ({ body: newLearning }),
    'learnings.get': aLearning,
    'learnings.update': async (stage) => ({ ...(await aLearning(stage)), body: { topic: 'Other builds' } }),
  },
  codes: [
    on('learnings.create', '404 run_not_found', (stage) =>
      stage.server.call('/learnings', post({ ...newLearning, runId: 'run_0000000000000000' }, stage.live.token)),
    ),
    on('learnings.create', '404 task_not_found', ({ server }) =>
      server.call('/learnings', post({ ...newLearning, taskId: 'tsk_0000000000000000' })),
    ),
    on('learnings.create', '404 conversation_not_found', ({ server }) =>
      server.call('/learnings', post({ ...newLearning, conversationId: 'cnv_0000000000000000' })),
    ),
    on('learnings.get', '404 learning_not_found', ({ server }) => server.call(`/learnings/${unknown}`)),
    on('learnings.update', '404 learning_not_found', ({ server }) =>
      server.call(`/learnings/${unknown}`, patch({ topic: 'x' })),
    ),
    on('learnings.update', '409 learning_not_editable', async (stage) =>
      stage.server.call(`/learnings/${await reviewed(stage)}`, patch({ topic: 'x' })),
    ),
  ],

  unknownIds: { 'learnings.id': unknown },
  things: async ({ server, person: { token } }) => ({
    'learnings.id': (await server.ok('/learnings', { body: newLearning, token })).id,
  }),
  places: [
    ...(['conversationId', 'approvalId'] as const).map(
      (key) =>
        [
          'learnings.list',
          'GET',
          (_: Stage, ids: Readonly<Record<string, string>>) => ({
            path: `/learnings?${key}=${ids[key === 'approvalId' ? key : 'conversations.id']}`,
          }),
        ] as const,
    ),
    ...(
      [
        ['runId', 'runId'],
        ['taskId', 'tasks.id'],
        ['conversationId', 'conversations.id'],
      ] as const
    ).map(
      ([key, name]) =>
        [
          'learnings.create',
          'POST',
          (_: Stage, ids: Readonly<Record<string, string>>) => ({
            path: '/learnings',
            body: { ...newLearning, [key]: ids[name] },
          }),
        ] as const,
    ),
  ],
  named: {
    approvalId: thing('approvalId'),
    bullets: fc.constant(newLearning.bullets),
    entityType: fc.constantFrom('repo', 'REPO'),
  },
}
