import type { Stage } from '../contract/stage.ts'
import { on, patch, plain, post, postKeyed, thing } from './kit/recipe.ts'
import type { Placed, Recipe, ResourceFacts } from './kit/resource-facts.ts'

const learning = {
  topic: 'Releases',
  bullets: [{ text: 'Tag the commit before the notes are written.', sources: ['https://example.com/notes'] }],
}
const unknown = 'lrn_0000000000000000'

// oxlint-disable-next-line typescript/no-explicit-any
const made = async ({ server }: Pick<Stage, 'server'>, token?: string): Promise<any> =>
  server.ok('/learnings', { body: learning, ...(token === undefined ? {} : { token }) })

const aLearning: Recipe = async (stage) => ({ params: { 'learnings.id': (await made(stage)).id } })

async function decided(stage: Stage) {
  const { id, approvalId } = await made(stage)
  await postKeyed(stage, `/approvals/${approvalId}/reject`, {})
  return id as string
}

export const learningFacts: ResourceFacts = {
  requests: {
    'learnings.list': plain,
    'learnings.create': () => ({ body: learning }),
    'learnings.get': aLearning,
    'learnings.update': async (stage) => ({ ...(await aLearning(stage)), body: { topic: 'Tags' } }),
  },
  codes: [
    on('learnings.create', '404 run_not_found', ({ server }) =>
      server.call('/learnings', post({ ...learning, runId: 'run_0000000000000000' })),
    ),
    on('learnings.create', '404 conversation_not_found', ({ server }) =>
      server.call('/learnings', post({ ...learning, conversationId: 'cnv_0000000000000000' })),
    ),
    on('learnings.get', '404 learning_not_found', ({ server }) => server.call(`/learnings/${unknown}`)),
    on('learnings.update', '404 learning_not_found', ({ server }) => server.call(`/learnings/${unknown}`, patch({}))),
    on('learnings.update', '409 learning_not_editable', async (stage) =>
      stage.server.call(`/learnings/${await decided(stage)}`, patch({ topic: 'Tags' })),
    ),
  ],

  unknownIds: { 'learnings.id': unknown },
  things: async ({ server, person: { token } }) => ({ 'learnings.id': (await made({ server }, token)).id }),
  places: [
    ...(
      [
        ['conversationId', 'conversations.id'],
        ['approvalId', 'approvals.approvalId'],
      ] as const
    ).map(([key, name]): Placed => ['learnings.list', 'GET', (_, ids) => ({ path: `/learnings?${key}=${ids[name]}` })]),
    ...(
      [
        ['conversationId', 'conversations.id'],
        ['taskId', 'tasks.id'],
        ['runId', 'runId'],
      ] as const
    ).map(([key, name]): Placed => [
      'learnings.create',
      'POST',
      (_, ids) => ({ path: '/learnings', body: { ...learning, [key]: ids[name] } }),
    ]),
  ],
  named: { learningId: thing('learnings.id') },
}
