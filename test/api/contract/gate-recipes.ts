import { raiseApproval } from '../../../control-plane/resources/approvals/steps/raise.ts'
import type { CallOptions, Reply } from '../../kit/server.ts'
import { TestServer } from '../../kit/server.ts'
import { on, type CodeRecipe } from './code-recipes.ts'
import type { GoodRequest } from './good-requests.ts'
import { secretsKey, type Stage } from './stage.ts'

/** Requests of approvals and questions: good ones of each route, and one for each code on the routes the documents name. */

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

function post(stage: Pick<Stage, 'server'>, path: string, body: unknown, more: CallOptions = {}): Promise<Reply> {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  return stage.server.call(path, { method: 'POST', headers, body, ...more })
}

/** As an agent of the owner's, in a run that ends by it. */
async function asked(stage: Stage, path: string, body: Record<string, unknown> = {}): Promise<Reply> {
  const { token } = await stage.caller()
  return post(stage, path, { prompt: 'Which?', ...body }, { token })
}

async function idOf(kind: 'approval' | 'question', asking: Promise<Reply>): Promise<string> {
  const { status, body } = await asking
  if (status !== 201) throw new Error(`no ${kind}: ${status} ${JSON.stringify(body)}`)
  return body[kind].id as string
}
const anApproval = (stage: Stage) => idOf('approval', asked(stage, '/approvals'))
const aQuestion = (stage: Stage, body: Record<string, unknown> = {}) =>
  idOf('question', asked(stage, '/questions', body))

async function resolvedApproval(stage: Stage): Promise<string> {
  const id = await anApproval(stage)
  await post(stage, `/approvals/${id}/approve`, {})
  return id
}
async function answered(stage: Stage, body: Record<string, unknown> = {}): Promise<string> {
  const id = await aQuestion(stage, body)
  const isSecret = body['answerMode'] === 'secret_input'
  await post(
    stage,
    `/questions/${id}/${isSecret ? 'secret' : 'answer'}`,
    isSecret ? { value: 'x' } : { answer: { text: 'x' } },
  )
  return id
}

/** The platform's own: nobody resolves it, and it is assigned to nobody. */
async function aBreach({ server, owner }: Stage): Promise<string> {
  const gatedThing = {
    kind: 'budget',
    name: 'workspace',
    inputDigest: null,
    safeSummary: 'Spent',
    scope: 'once',
  } as const
  const of = { agentId: null, runId: null, taskId: null, conversationId: null, sessionId: null }
  const raised = {
    ...of,
    workspaceId: owner.workspaceId,
    trigger: 'budget_breach',
    prompt: 'Spent',
    gatedThing,
  } as const
  return server.database.root.transaction(async (tx) => raiseApproval(tx, raised, server.world))
}

type Recipe = (stage: Stage) => Promise<GoodRequest>
const ofQuestion = (id: string) => ({ 'questions.id': id })
const assignment = (stage: Stage) => ({ assignedTo: { type: 'user', id: stage.member.userId }, reason: 'on call' })
const asker: Recipe = async (stage) => ({
  token: (await stage.caller()).token,
  body: { prompt: 'Which?' },
  endsCaller: true,
})

export const gateRequests: Record<string, Recipe> = {
  'approvals.list': async () => ({}),
  'approvals.get': async (stage) => ({ params: { approvalId: await anApproval(stage) } }),
  'approvals.create': asker,
  'approvals.approve': async (stage) => ({ params: { approvalId: await anApproval(stage) }, body: {} }),
  'approvals.reject': async (stage) => ({ params: { approvalId: await anApproval(stage) }, body: { reason: 'No' } }),
  'approvals.assign': async (stage) => ({ params: { approvalId: await anApproval(stage) }, body: assignment(stage) }),
  'questions.create': asker,
  'questions.list': async () => ({}),
  'questions.get': async (stage) => ({ params: ofQuestion(await aQuestion(stage)) }),
  'questions.answer': async (stage) => ({
    params: ofQuestion(await aQuestion(stage)),
    body: { answer: { text: 'The left one' } },
  }),
  'questions.secret': async (stage) => ({
    params: ofQuestion(await aQuestion(stage, forSecret())),
    body: { value: 's3cret' },
  }),
}

const nobody = 'usr_0000000000000000'
const unknown = { approval: 'apr_0000000000000000', question: 'qst_0000000000000000' }
const verbs = ['approve', 'reject'] as const

const approvalRecipes: readonly CodeRecipe[] = [
  on('approvals.list', '400 invalid_cursor', ({ server }) => server.call('/approvals?startingAfter=a&endingBefore=b')),
  on('approvals.get', '400 invalid_include', async (stage) =>
    stage.server.call(`/approvals/${await anApproval(stage)}?include[]=agent`),
  ),
  on('approvals.get', '404 approval_not_found', ({ server }) => server.call(`/approvals/${unknown.approval}`)),
  ...verbs.flatMap((verb) => [
    on(`approvals.${verb}`, '404 approval_not_found', (stage) =>
      post(stage, `/approvals/${unknown.approval}/${verb}`, {}),
    ),
    on(`approvals.${verb}`, '409 approval_resolved', async (stage) =>
      post(stage, `/approvals/${await resolvedApproval(stage)}/${verb}`, {}),
    ),
    on(`approvals.${verb}`, '403 agent_cannot_resolve_approval', async (stage) =>
      post(stage, `/approvals/${await anApproval(stage)}/${verb}`, {}, { token: stage.live.token }),
    ),
    on(`approvals.${verb}`, '403 approval_assignee_mismatch', async (stage) =>
      post(stage, `/approvals/${await anApproval(stage)}/${verb}`, {}, { token: stage.admin.token }),
    ),
    on(`approvals.${verb}`, '409 user_cannot_resolve_system_approval', async (stage) =>
      post(stage, `/approvals/${await aBreach(stage)}/${verb}`, {}),
    ),
  ]),
  on('approvals.assign', '404 approval_not_found', (stage) =>
    post(stage, `/approvals/${unknown.approval}/assign`, assignment(stage)),
  ),
  on('approvals.assign', '409 approval_resolved', async (stage) =>
    post(stage, `/approvals/${await resolvedApproval(stage)}/assign`, assignment(stage)),
  ),
  on('approvals.assign', '409 approval_not_user_assignable', async (stage) =>
    post(stage, `/approvals/${await aBreach(stage)}/assign`, assignment(stage)),
  ),
  on('approvals.assign', '403 not_authorized', async (stage) =>
    post(stage, `/approvals/${await anApproval(stage)}/assign`, assignment(stage), { token: stage.member.token }),
  ),
  on('approvals.assign', '404 assignee_not_found', async (stage) =>
    post(stage, `/approvals/${await anApproval(stage)}/assign`, { assignedTo: { id: nobody }, reason: 'x' }),
  ),
  on('approvals.create', '403 user_cannot_create_approval', (stage) => post(stage, '/approvals', { prompt: 'x' })),
  on('approvals.create', '403 platform_change_not_raisable', (stage) =>
    asked(stage, '/approvals', { trigger: 'platform_change' }),
  ),
  on('approvals.create', '404 run_not_found', (stage) => asked(stage, '/approvals', { runId: stage.live.runId })),
  on('approvals.create', '403 author_must_be_self', (stage) =>
    asked(stage, '/approvals', { requestedBy: { type: 'agent', id: stage.live.agentId } }),
  ),
  on('approvals.create', '409 hitl_stop_failed', (stage) => askedTooLate(stage, '/approvals')),
]

/** By a run that a device is ending for another reason. */
async function askedTooLate(stage: Stage, path: string): Promise<Reply> {
  const { runId, token } = await stage.caller()
  const cancelled = { cancel_exit_reason: 'interrupted', cancel_requested_at: stage.server.world.now() }
  await stage.server.database.root('runs').where({ id: runId }).update(cancelled)
  return post(stage, path, { prompt: 'Which?' }, { token })
}

const answer = (stage: Stage, id: string, given: Record<string, unknown>, more?: CallOptions) =>
  post(stage, `/questions/${id}/answer`, { answer: given }, more)
const give = (stage: Pick<Stage, 'server'>, id: string) => post(stage, `/questions/${id}/secret`, { value: 'x' })

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
  on('questions.create', '403 user_cannot_create_question', (stage) => post(stage, '/questions', { prompt: 'x' })),
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
  on('questions.get', '404 question_not_found', ({ server }) => server.call(`/questions/${unknown.question}`)),
  on('questions.answer', '404 question_not_found', (stage) => answer(stage, unknown.question, { text: 'x' })),
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
  on('questions.secret', '404 question_not_found', (stage) => give(stage, unknown.question)),
  on('questions.secret', '409 question_resolved', async (stage) => give(stage, await answered(stage, forSecret()))),
  on('questions.secret', '409 question_not_secret_input', async (stage) => give(stage, await aQuestion(stage))),
  on('questions.secret', '409 secret_input_requires_agent', async (stage) => {
    const { agentId, token } = await stage.caller()
    const { question } = (await post(stage, '/questions', { prompt: 'x', ...forSecret() }, { token })).body
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

export const gateRecipes: readonly CodeRecipe[] = [...approvalRecipes, ...askRecipes, ...answerRecipes]
