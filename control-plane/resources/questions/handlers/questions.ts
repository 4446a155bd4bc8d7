import { idFrom, type QuestionId } from '../../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { namesCredential } from '../../../../shared/lib/env-names.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { idPageOf } from '../../../../shared/api/id-paging.ts'
import type { Page } from '../../../../shared/api/paging.ts'
import { questionRoutes, type Question } from '../../../../shared/api/questions.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller, PersonCaller } from '../../../http/callers.ts'
import { answer as answerWith, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { findAgent } from '../../agents/store.ts'
import { includedIn } from '../../approvals/steps/include.ts'
import { pageFrom } from '../../../http/page-from.ts'
import { sentinelOf, stopFailed } from '../../../run/endings/stop-to-ask.ts'
import { isConversationVisible } from '../../conversations/lookup.ts'
import { findConversation } from '../../conversations/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { mayDecideWhatRuns } from '../../agents/trust-rules.ts'
import { addSecret } from '../../secrets/add.ts'
import { withWorkflowSteps } from '../../runs/steps/workflow-step.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import { closeAnswered } from '../steps/answer.ts'
import { ask } from './ask.ts'
import { presentQuestion } from '../own/present.ts'
import { judgeAnswer } from '../rules.ts'
import { findQuestion, listQuestions, type QuestionFilter, type QuestionRow } from '../store.ts'
import { inTransaction } from '../../../db/transaction.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { seesWork, workViewerOf } from '../../projects/work-visibility.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs' | 'secretProviders' | 'vault'>

export function questionHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(questionRoutes, {
    list,

    async create(input) {
      // The route has no transaction of its own: a question whose run has ended meanwhile stays, closed.
      const asked = await inTransaction(input.db as Knex, async (tx) => ask(tx, input, deps), {
        locks: [input.caller.workspaceId],
      })
      if (!asked.isAsked) stopFailed()
      const { question } = asked
      return answerWith(201, {
        question: await shownQuestion(input.db, question),
        sentinel: question.waitUntil === null ? sentinelOf(question.id) : null,
      })
    },

    async get({ db, caller, params, query, world }) {
      const question = await visibleQuestion(db, caller, params.id)
      const wanted = query.include ?? []
      const moment = { now: world.now(), leaseMs: deps.leaseMs }
      return {
        ...(await shownQuestion(db, question)),
        ...(await includedIn(db, question, wanted, { caller, moment })),
        ...(wanted.includes('conversation') && { conversation: await conversationOf(db, caller, question) }),
      }
    },

    async answer(input) {
      const { db, caller, params, body } = input
      const question = await openQuestion(db, caller, params.id)
      const { text = null, selected = null } = body.answer
      const judged = judgeAnswer(question, { text, selected })
      if ('refusal' in judged) {
        return fail(judged.refusal, { param: judged.param, ...choicesOf(question) })
      }
      return closed(input, deps, { question, answer: judged.answer })
    },

    secret: (input) => secret(input, deps),
  })
}

/** Says what would have worked, where there are options. */
function choicesOf({ options, answerMode }: QuestionRow): { allowedValues?: string[]; message?: string } {
  if (options === null) return {}
  const count = answerMode === 'single_select' ? 'exactly one option' : 'one or more options'
  const message = `Choose ${count} by key or label: \`answer.selected\`, or \`--select KEY\`. A text is a note on the choice.`
  return { allowedValues: options.map((option) => option.key), message }
}

const shownQuestion = async (db: Db, question: QuestionRow): Promise<Question> =>
  (await shownQuestions(db, [question]))[0]!

/** A question of a program is about a run of one of its steps, and is no question of that step. */
async function shownQuestions(db: Db, rows: readonly QuestionRow[]): Promise<Question[]> {
  const shown = await withWorkflowSteps(db, rows.map(presentQuestion))
  return shown.map((question, at) => {
    const { workflowStep } = question
    const isOfProgram = rows[at]!.workflowRunId !== null && workflowStep !== undefined
    return isOfProgram
      ? { ...question, workflowStep: { ...workflowStep, step: null, label: null, phase: null } }
      : question
  })
}

type List = HandlerInput<typeof questionRoutes.list>

async function list(input: List): Promise<Page<Question>> {
  const { db, caller, query } = input
  const { cursor, page } = await pageFrom(query, (id) => findQuestion(db, caller.workspaceId, idFrom(id)))
  const visibleTo = workViewerOf(caller)
  const filter = await filterOf(input)
  const rows =
    filter === null ? [] : await listQuestions(db, { ...filter, ...page, ...withoutUndefined({ visibleTo }) })
  const shown = new Map((await shownQuestions(db, rows)).map((question) => [question.id, question]))
  return idPageOf({ rows, limit: query.limit, cursor, present: (row) => shown.get(row.id)! })
}

/** Returns null when a filter names nothing that the caller can see, so that nothing matches. */
async function filterOf({ db, caller, query }: List): Promise<Omit<QuestionFilter, 'limit'> | null> {
  const { status, taskId, runId, sessionId, conversationId, askedByAgentId } = query
  const task = taskId === undefined ? undefined : await lookUpTask(db, caller, taskId)
  const run = runId === 'current' ? (caller.kind === 'agent' ? caller.runId : null) : runId
  const agent = askedByAgentId === undefined ? undefined : await lookUpAgent(db, caller, askedByAgentId)
  if (task === null || run === null || agent === null) return null
  return {
    workspaceId: caller.workspaceId,
    ...withoutUndefined({
      status: status === 'all' ? undefined : status,
      taskId: task?.id,
      runId: run,
      agentRef: agent?.id,
      sessionId,
      conversationId,
    }),
  }
}

/** Finds a question for whoever sees the work that it is about: they may see and answer it. Fails with `question_not_found`. */
async function visibleQuestion(db: Db, caller: Caller, id: QuestionId): Promise<QuestionRow> {
  const question = await findQuestion(db, caller.workspaceId, id)
  const isSeen = question !== null && (await seesWork(db, caller, { table: 'questions', id }))
  return isSeen ? question : fail('question_not_found', { param: 'id' })
}

async function openQuestion(db: Db, caller: PersonCaller, id: QuestionId): Promise<QuestionRow> {
  const question = await visibleQuestion(db, caller, id)
  return question.status === 'open' ? question : fail('question_resolved')
}

async function conversationOf(db: Db, caller: Caller, { conversationId }: QuestionRow) {
  const conversation = conversationId === null ? null : await findConversation(db, conversationId)
  if (conversation === null || !(await isConversationVisible(db, caller, conversation))) return null
  const { id, title, kind } = conversation
  return { object: 'conversation' as const, id, title, kind }
}

async function closed(
  input: Pick<HandlerInput<typeof questionRoutes.answer>, 'db' | 'caller' | 'world'>,
  deps: Dependencies,
  { question, answer }: { question: QuestionRow; answer: QuestionRow['answer'] },
): Promise<Question> {
  const { db, caller, world } = input
  if (!(await closeAnswered(db, question, { answer, person: caller, world }))) fail('question_resolved')
  return shownQuestion(db, (await findQuestion(db, question.workspaceId, question.id)) ?? question)
}

/** Stores the value encrypted and grants it to the asking agent; nobody else is told. */
async function secret(input: HandlerInput<typeof questionRoutes.secret>, deps: Dependencies) {
  const { db, caller, params, body } = input
  const asked = await visibleQuestion(db, caller, params.id)
  const agent = await findAgent(db, asked.agentRef)
  // The questions of a deleted agent were closed with it; what is in the way is that the agent is gone.
  if (asked.answerMode === 'secret_input' && (agent === null || agent.deletedAt !== null))
    return fail('secret_input_requires_agent', { status: 409, message: 'The agent that asked is deleted.' })
  const question = await openQuestion(db, caller, params.id)
  const { secretRequest } = question
  if (question.answerMode !== 'secret_input' || secretRequest === null || agent === null)
    return fail('question_not_secret_input')
  const { name, provider, envVarName } = secretRequest
  if (!mayDecideWhatRuns(caller, agent) && !namesCredential(envVarName))
    fail('http_exception', {
      message: `Only the owner of the agent and workspace admins set ${envVarName} for it: the name is not that of a token, key, secret or password.`,
    })
  if (deps.secretProviders !== null && !deps.secretProviders.includes(provider)) fail('secret_provider_unbrokerable')
  await addSecret(input, deps, { name, provider, envVarName, value: body.value, agentRef: agent.id })
  return closed(input, deps, { question, answer: null })
}
