import type { ConversationId } from '../../../../shared/lib/ids.ts'
import { maxWaitedFor, type questionRoutes } from '../../../../shared/api/questions.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { redirectsTraffic } from '../../../../shared/lib/env-names.ts'
import { maskSecrets } from '../../../../shared/lib/secret-patterns.ts'
import type { Db, Tx } from '../../../db/open.ts'
import type { AgentCaller } from '../../../http/callers.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { askingRun, stopToAsk } from '../../../run/endings/stop-to-ask.ts'
import { isParticipant } from '../../conversations/participant-store.ts'
import { postMessage } from '../../conversations/steps/post.ts'
import { findConversation, type ConversationRow } from '../../conversations/store.ts'
import { ensureTaskConversation } from '../../conversations/task-conversation.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import type { RunRow } from '../../runs/store.ts'
import { isSecretNameTaken } from '../../secrets/store.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import { findTaskById, type TaskRow } from '../../tasks/store.ts'
import { recordAsked } from '../steps/asked.ts'
import { closeBySystem } from '../steps/answer.ts'
import { askRefusalOf } from '../rules.ts'
import {
  findQuestion,
  insertQuestion,
  listOpenQuestions,
  setQuestionMessage,
  type NewQuestion,
  type QuestionRow,
} from '../store.ts'

type Ask = Pick<HandlerInput<typeof questionRoutes.create>, 'caller' | 'body' | 'world'>
type Body = Ask['body']

/**
 * Stores the question, shows it on its task or in its conversation, and stops the run unless that waits for the answer, in
 * the caller's transaction. If the run can neither be stopped nor wait any more, the question is closed at once and
 * `isAsked` is false.
 */
export async function ask(
  tx: Tx,
  { caller, body, world }: Ask,
  deps: Pick<ResourceDependencies, 'leaseMs' | 'secretProviders'>,
): Promise<{ question: QuestionRow; isAsked: boolean }> {
  const run = (await askingRun(tx, caller, body.runId)) ?? fail('question_run_required', { param: 'runId' })
  checkAuthor(caller, body)
  checkWait(body)
  if (body.waitMs !== undefined) await checkRoom(tx, run)
  await checkSecret(tx, caller, { body, providers: deps.secretProviders })
  const task = await taskOf(tx, caller, { run, reference: body.taskId })
  const conversation = await conversationOf(tx, caller, { run, task, id: body.conversationId })
  const now = world.now()
  const waitUntil = body.waitMs === undefined ? null : now + body.waitMs
  const isSelect = body.answerMode === 'single_select' || body.answerMode === 'multi_select'
  const asked: NewQuestion = {
    id: world.id('qst_'),
    workspaceId: caller.workspaceId,
    agentRef: caller.agentRef,
    runId: run.id,
    taskId: task?.id ?? null,
    conversationId: conversation?.id ?? null,
    // A harness without sessions has one per run.
    sessionId: run.sessionId ?? run.id,
    prompt: maskSecrets(body.prompt),
    answerMode: body.answerMode,
    options: isSelect ? (body.options ?? []) : null,
    secretRequest: body.secretRequest ?? null,
    waitUntil,
    createdAt: now,
  }
  await insertQuestion(tx, asked)
  const by = { actor: { type: 'agent', id: caller.agentRef }, data: { runId: run.id } } as const
  await recordAsked(tx, asked, { ...by, world })
  await show(tx, asked, { caller, place: conversation ?? task, world })
  const stop = { exitReason: 'question_asked', world, leaseMs: deps.leaseMs } as const
  const isAsked = asked.waitUntil !== null ? canWait(run) : await stopToAsk(tx, run, stop)
  if (!isAsked) await closeUnstopped(tx, asked, world)
  const question = await findQuestion(tx, caller.workspaceId, asked.id)
  return question === null ? fail('question_not_found') : { question, isAsked }
}

function checkAuthor({ agentRef }: AgentCaller, { askedBy, answerMode }: Body): void {
  if (askedBy === undefined) return
  if (askedBy.type === 'system' && answerMode === 'secret_input')
    fail('secret_input_requires_agent', { param: 'askedBy' })
  const isSelf = askedBy.type === 'agent' && (askedBy.id == null || askedBy.id === 'me' || askedBy.id === agentRef)
  if (!isSelf) fail('validation_error', { param: 'askedBy', message: 'An agent asks in its own name only.' })
}

/** A secret reaches a run in its environment, so only the next one has it. */
function checkWait({ answerMode, waitMs }: Body): void {
  if (waitMs !== undefined && answerMode === 'secret_input')
    fail('validation_error', { param: 'waitMs', message: 'A run stops to ask for a secret: the next one gets it.' })
}

const canWait = (run: RunRow): boolean => run.endedAt === null && run.cancelRequestedAt === null

/** A task shows what its runs ask, and every wake for it looks there. */
async function checkRoom(tx: Db, { id }: RunRow): Promise<void> {
  if ((await listOpenQuestions(tx, 'run_id', [id])).length < maxWaitedFor) return
  const message = `This run waits for ${maxWaitedFor} answers already.`
  fail('validation_error', { param: 'waitMs', message })
}

async function checkSecret(
  tx: Db,
  { workspaceId }: AgentCaller,
  { body, providers }: { body: Body; providers: readonly string[] | null },
): Promise<void> {
  const { answerMode, options = null, secretRequest = null } = body
  const refusal = askRefusalOf({ answerMode, options, secretRequest })
  if (refusal !== null) fail(refusal.code, { param: refusal.param })
  if (secretRequest === null) return
  if (providers !== null && !providers.includes(secretRequest.provider))
    fail('validation_error', {
      param: 'secretRequest.provider',
      message: 'This server takes no secrets of this provider.',
      allowedValues: providers,
    })
  if (redirectsTraffic(secretRequest.envVarName))
    fail('validation_error', {
      param: 'secretRequest.envVarName',
      message: `${secretRequest.envVarName} says where the traffic of programs goes; a workspace admin stores such a secret.`,
    })
  if (await isSecretNameTaken(tx, workspaceId, secretRequest.name))
    fail('secret.duplicate_name', { param: 'secretRequest.name' })
}

async function taskOf(
  tx: Db,
  caller: AgentCaller,
  { run, reference }: { run: RunRow; reference: string | undefined },
): Promise<TaskRow | null> {
  if (reference === undefined) return run.taskId === null ? null : findTaskById(tx, run.taskId)
  return (await lookUpTask(tx, caller, reference)) ?? fail('question_task_scope_mismatch', { param: 'taskId' })
}

/** The conversation of the question: the one its run answers in, or one that the agent takes part in. */
async function conversationOf(
  tx: Db,
  caller: AgentCaller,
  { run, task, id }: { run: RunRow; task: TaskRow | null; id: ConversationId | undefined },
): Promise<ConversationRow | null> {
  const wanted = id ?? (task === null || task.id === run.taskId ? run.conversationId : null)
  const conversation = wanted === null ? null : await findConversation(tx, wanted)
  if (id === undefined || wanted === run.conversationId) return conversation
  const isTheirs =
    conversation?.workspaceId === caller.workspaceId &&
    (await isParticipant(tx, conversation.id, { type: 'agent', id: caller.agentRef }))
  return isTheirs ? conversation : fail('conversation_not_found', { param: 'conversationId' })
}

/** Posts the prompt, so that readers can answer in its thread. */
async function show(
  tx: Db,
  question: NewQuestion,
  { caller, place, world }: { caller: AgentCaller; place: ConversationRow | TaskRow | null; world: Ask['world'] },
): Promise<void> {
  if (place === null) return
  const conversation = 'kind' in place ? place : await ensureTaskConversation(tx, { task: place, world })
  if (conversation.archivedAt !== null) return
  const message = await postMessage(tx, {
    conversation,
    author: { type: 'agent', id: caller.agentRef },
    body: messageOf(question),
    caller,
    world,
    exceptAgentRef: caller.agentRef,
  })
  await setQuestionMessage(tx, { questionId: question.id, messageId: message.id, conversationId: conversation.id })
}

function messageOf({ prompt, options }: NewQuestion): string {
  const lines = (options ?? []).map(({ key, label }) => `- \`${key}\`: ${label}`)
  return lines.length === 0 ? prompt : `${prompt}\n\n${lines.join('\n')}`
}

async function closeUnstopped(tx: Db, asked: NewQuestion, world: Ask['world']): Promise<void> {
  const question = await findQuestion(tx, asked.workspaceId, asked.id)
  // The ending of its run may have closed it already.
  if (question?.status !== 'open') return
  await closeBySystem(tx, question, { reason: 'stop_failed', world })
}
