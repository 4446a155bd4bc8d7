import { TestServer, type CallOptions } from '../../kit/server.ts'
import { secretsKey, type Stage } from '../contract/stage.ts'
import { asked, askedOf, askedTooLate, asker, idOf } from './kit/holds.ts'
import { on, plain, postKeyed, thing } from './kit/recipe.ts'
import type { CodeRecipe, Placed, ResourceFacts } from './kit/resource-facts.ts'

const options = [
  { key: 'a', label: 'A' },
  { key: 'b', label: 'B' },
]
const secretRequest = () => ({
  name: `key-${crypto.randomUUID()}`,
  provider: 'github',
  envVarName: 'KEY',
  reason: 'To push',
})
const forSecret = () => ({ answerMode: 'secret_input', secretRequest: secretRequest() })

const unknown = 'qst_0000000000000000'
const ofQuestion = (id: string) => ({ 'questions.id': id })
const aQuestion = (stage: Stage, body: Record<string, unknown> = {}) =>
  idOf('question', asked(stage, '/questions', body))

async function answered(stage: Stage, body: Record<string, unknown> = {}): Promise<string> {
  const id = await aQuestion(stage, body)
  const isSecret = body['answerMode'] === 'secret_input'
  await postKeyed(
    stage,
    `/questions/${id}/${isSecret ? 'secret' : 'answer'}`,
    isSecret ? { value: 'x' } : { answer: { text: 'x' } },
  )
  return id
}

const answer = (stage: Stage, id: string, given: Record<string, unknown>, more?: CallOptions) =>
  postKeyed(stage, `/questions/${id}/answer`, { answer: given }, more)
const give = (stage: Pick<Stage, 'server'>, id: string) => postKeyed(stage, `/questions/${id}/secret`, { value: 'x' })

const refusedAsks: readonly [string, () => Record<string, unknown>][] = [
  ['400 options_required', () => ({ answerMode: 'single_select' })],
  ['400 options_not_allowed', () => ({ options })],
  ['400 secret_request_required', () => ({ answerMode: 'secret_input' })],
  ['400 secret_request_not_allowed', () => ({ secretRequest: secretRequest() })],
  ['400 secret_input_requires_agent', () => ({ ...forSecret(), askedBy: { type: 'system' } })],
  ['404 question_task_scope_mismatch', () => ({ taskId: 'tsk_0000000000000000' })],
  ['400 question_not_a_gate', () => ({ outcome: 'approve' })],
]

const askRecipes: readonly CodeRecipe[] = [
  ...refusedAsks.map(([outcome, body]) =>
    on('questions.create', outcome, (stage) => asked(stage, '/questions', body())),
  ),
  on('questions.create', '403 user_cannot_create_question', (stage) => postKeyed(stage, '/questions', { prompt: 'x' })),
  on('questions.create', '404 question_run_required', (stage) =>
    asked(stage, '/questions', { runId: stage.live.runId }),
  ),
  on('questions.create', '409 hitl_stop_failed', (stage) => askedTooLate(stage, '/questions')),
  on('questions.create', '409 secret.duplicate_name', async (stage) => {
    const body = forSecret()
    await give(stage, await aQuestion(stage, body))
    return asked(stage, '/questions', body)
  }),
]

const answerRecipes: readonly CodeRecipe[] = [
  on('questions.get', '400 invalid_include', async (stage) =>
    stage.server.call(`/questions/${await aQuestion(stage)}?include[]=agent`),
  ),
  on('questions.get', '404 question_not_found', ({ server }) => server.call(`/questions/${unknown}`)),
  on('questions.answer', '404 question_not_found', (stage) => answer(stage, unknown, { text: 'x' })),
  on('questions.answer', '403 agent_cannot_answer_question', async (stage) =>
    answer(stage, await aQuestion(stage), { text: 'x' }, { token: stage.live.token }),
  ),
  on('questions.answer', '409 question_resolved', async (stage) => answer(stage, await answered(stage), { text: 'x' })),
  on('questions.answer', '409 question_needs_secret', async (stage) =>
    answer(stage, await aQuestion(stage, forSecret()), { text: 'x' }),
  ),
  on('questions.answer', '400 invalid_answer', async (stage) => answer(stage, await aQuestion(stage), { text: ' ' })),
  on('questions.answer', '400 answer_mode_mismatch', async (stage) =>
    answer(stage, await aQuestion(stage, { answerMode: 'single_select', options }), { selected: ['a', 'b'] }),
  ),
  on('questions.answer', '400 invalid_option_key', async (stage) =>
    answer(stage, await aQuestion(stage, { answerMode: 'multi_select', options }), { selected: ['c'] }),
  ),
  on('questions.secret', '404 question_not_found', (stage) => give(stage, unknown)),
  on('questions.secret', '409 question_resolved', async (stage) => give(stage, await answered(stage, forSecret()))),
  on('questions.secret', '409 question_not_secret_input', async (stage) => give(stage, await aQuestion(stage))),
  on('questions.secret', '409 secret_input_requires_agent', async (stage) => {
    const { agentId, token } = await stage.caller()
    const { question } = (await postKeyed(stage, '/questions', { prompt: 'x', ...forSecret() }, { token })).body
    await stage.server.ok(`/agents/${agentId}`, { method: 'DELETE' })
    return give(stage, question.id as string)
  }),
  on('questions.secret', '409 secret.duplicate_name', async (stage) => {
    const body = forSecret()
    const [first, second] = [await aQuestion(stage, body), await aQuestion(stage, body)]
    await give(stage, first)
    return give(stage, second)
  }),
  on('questions.secret', '409 secret_provider_unbrokerable', async (stage) => {
    const id = await aQuestion(stage, forSecret())
    const settings = { SVC_SECRET_PROVIDERS: 'gitlab', SVC_SECRETS_KEY: secretsKey }
    const server = await TestServer.start({ beside: stage.server, settings })
    const reply = await give({ server }, id)
    await server.stop()
    return reply
  }),
]

export const questionFacts: ResourceFacts = {
  requests: {
    'questions.create': asker,
    'questions.list': plain,
    'questions.get': async (stage) => ({ params: ofQuestion(await aQuestion(stage)) }),
    'questions.answer': async (stage) => ({
      params: ofQuestion(await aQuestion(stage)),
      body: { answer: { text: 'The left one' } },
    }),
    'questions.secret': async (stage) => ({
      params: ofQuestion(await aQuestion(stage, forSecret())),
      body: { value: 's3cret' },
    }),
  },
  codes: [...askRecipes, ...answerRecipes],
  withoutCommand: { 'questions.secret': '`question answer` gives a secret too' },

  unknownIds: { 'questions.id': unknown },
  things: async (keeper) => ({
    'questions.id': await idOf('question', askedOf(keeper, '/questions', { prompt: 'Which?' })),
  }),
  places: (
    [
      ['taskId', 'taskId'],
      ['runId', 'runId'],
      ['conversationId', 'conversations.id'],
      ['askedByAgentId', 'agentId'],
      ['startingAfter', 'questions.id'],
    ] as const
  ).map(([key, name]): Placed => ['questions.list', 'GET', (_, ids) => ({ path: `/questions?${key}=${ids[name]}` })]),
  named: { startingAfter: thing('questions.id') },
}
