import type { ConversationId } from '../lib/ids.ts'
import { idIn } from '../lib/id-schema.ts'
import { z } from 'zod'
import { answerModes, holdStatuses, questionOption, secretRequest } from './approval-words.ts'
import { included } from './approval-includes.ts'
import { askingParty } from './approvals.ts'
import {
  agentRef,
  conversationId,
  questionId,
  runId,
  runRef,
  secretId,
  taskId,
  taskRef,
  timestamp,
  userPublicId,
  workspaceUuid,
} from './ids.ts'
import { idPageParams } from './id-paging.ts'
import { listOf, includeParam } from './paging.ts'
import { defineRoute, peopleOnly } from './route.ts'
import { secretFields } from './secrets.ts'
import { workflowStepOfRun } from './workflow-fields.ts'

// Questions that agents ask people.

export const question = z
  .object({
    object: z.literal('question'),
    id: questionId,
    workspaceId: workspaceUuid,
    taskId: taskId.nullable(),
    conversationId: conversationId.nullable(),
    runId,
    workflowStep: workflowStepOfRun
      .optional()
      .describe('The step of a workflow, or the workflow itself, that asks; only then is it there.'),
    sessionId: z.string(),
    status: z.enum(holdStatuses),
    prompt: z.string().describe('Markdown, secrets masked.'),
    answerMode: z.enum(answerModes),
    options: z.array(questionOption).nullable().describe('Only for the select modes.'),
    secretRequest: secretRequest.nullable().describe('Only for `secret_input`.'),
    askedBy: askingParty,
    answer: z
      .object({ text: z.string().nullable(), selected: z.array(z.string()).nullable(), secretId: secretId.nullable() })
      .meta({ id: 'Answer' })
      .nullable()
      .describe('null while open, and always for `secret_input`.'),
    answeredBy: z
      .object({ type: z.literal('user'), id: userPublicId })
      .nullable()
      .describe('null while open or after the system closed it.'),
    answeredAt: timestamp.nullable(),
    waitUntil: timestamp
      .nullable()
      .describe('The run waits for the answer until then, and goes on; null: it has stopped to ask.'),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Question' })
export type Question = z.infer<typeof question>

const includedConversation = z
  .object({ object: z.literal('conversation'), id: conversationId, title: z.string().nullable(), kind: z.string() })
  .nullable()

const params = z.object({ id: questionId })
const positionals = [{ name: 'question', target: 'params.id' }] as const
const exampleId = 'qst_1rT5nY9bJcQ3dH7s'

/** The most characters of all options: with the longest prompt they still fit into one message, which shows them line by line. */
const maxOptionChars = 79_000
const signsOfLine = 8

const options = z
  .array(z.object({ key: z.string().trim().min(1).max(200), label: z.string().trim().min(1).max(1000) }))
  .refine((list) => new Set(list.map((option) => option.key)).size === list.length, 'two options have the same key')
  .refine(
    (list) => list.reduce((sum, { key, label }) => sum + key.length + label.length + signsOfLine, 0) <= maxOptionChars,
    `all options together are longer than ${maxOptionChars} characters`,
  )

/** The longest wait, which is that of `run create --wait`. */
const maxWaitMs = 86_400_000
/** Open questions of a run that goes on meanwhile. */
export const maxWaitedFor = 20

const createBody = z
  .object({
    prompt: z.string().trim().min(1).max(20_000).describe('The question, as Markdown.'),
    answerMode: z.enum(answerModes).default('free_text').describe('How it is answered.'),
    options: options.nullable().optional().describe('What to choose from, for the select modes.'),
    secretRequest: z
      .object({
        name: secretFields.name,
        provider: secretFields.provider,
        envVarName: secretFields.envVarName,
        reason: z.string().trim().min(1).max(2000).describe('Why the agent needs it.'),
      })
      .nullable()
      .optional()
      .describe('What secret is asked for, with `secret_input`.'),
    waitMs: z
      .int()
      .min(1)
      .max(maxWaitMs)
      .optional()
      .describe(
        `The run does not stop, it reads the answer itself within this time; then the system closes the question. Not with \`secret_input\`. A run waits for ${maxWaitedFor} answers at most.`,
      ),
    taskId: taskRef.optional().describe("The task it is about; by default the run's."),
    conversationId: conversationId.optional().describe("Where it is asked; by default the run's conversation."),
    runId: runRef.optional(),
    askedBy: z.object({ type: z.enum(['agent', 'system']), id: z.string().max(100).nullable().optional() }).optional(),
  })
  .meta({ id: 'QuestionCreate' })

export const questionRoutes = {
  create: defineRoute({
    id: 'questions.create',
    endpoint: 'POST /questions',
    summary: 'Ask a person; the run stops and goes on when it is answered, or waits for the answer',
    callers: { person: { refused: 'user_cannot_create_question' }, agent: 'allowed' },
    idempotency: 'required',
    // A question whose run cannot be stopped any more stays stored, closed by the system.
    transaction: false,
    body: createBody,
    refusedBodyKeys: {
      outcome: 'question_not_a_gate',
      scope: 'question_not_a_gate',
      appliedScope: 'question_not_a_gate',
    },
    reply: z.object({
      question,
      sentinel: z.string().nullable().describe('Print it and stop; null: the run goes on.'),
    }),
    status: 201,
    errors: [
      'user_cannot_create_question',
      'question_run_required',
      'options_required',
      'options_not_allowed',
      'secret_request_required',
      'secret_request_not_allowed',
      'secret_input_requires_agent',
      'secret.duplicate_name',
      'question_task_scope_mismatch',
      'hitl_stop_failed',
      'question_not_a_gate',
      'conversation_not_found',
    ],
    cli: {
      command: 'question ask',
      positionals: [{ name: 'text', target: 'body.prompt' }],
      flags: {
        'wait-ms': null,
        wait: {
          kind: 'number',
          bare: 300_000,
          description:
            'Do not stop: wait for the answer and print it, this many milliseconds at most (300,000 without a number; up to 86,400,000).',
        },
        'answer-mode': null,
        options: null,
        option: {
          kind: 'string',
          repeatable: true,
          description: 'Something to choose: `KEY`, or `KEY=LABEL` where people are shown other words.',
        },
        several: { kind: 'boolean', description: 'Several of the options may be chosen.' },
        'run-id': null,
        task: { target: 'body.taskId' },
        conversation: { target: 'body.conversationId' },
        'secret-name': { target: 'body.secretRequest.name', description: 'Ask for a secret, to be kept by this name.' },
        provider: { target: 'body.secretRequest.provider' },
        env: {
          target: 'body.secretRequest.envVarName',
          description: 'Variable under which the agent gets the secret.',
        },
      },
      flow: true,
      example: 'svc question ask "Which region shall I deploy to?"',
    },
  }),

  list: defineRoute({
    id: 'questions.list',
    endpoint: 'GET /questions',
    summary: 'List questions, newest first',
    query: z.object({
      status: z
        .enum([...holdStatuses, 'all'])
        .optional()
        .describe('`open`, `resolved` or `all`.'),
      taskId: taskRef.optional(),
      runId: runRef.optional(),
      sessionId: z.string().max(200).optional().describe('Only those asked in this harness session.'),
      conversationId: idIn<ConversationId>(z.string().max(100))
        .optional()
        .describe('Only those asked in this conversation.'),
      askedByAgentId: agentRef.optional(),
      ...idPageParams,
    }),
    reply: listOf(question),
    errors: ['invalid_cursor'],
    cli: {
      command: 'question list',
      flags: {
        task: { target: 'query.taskId' },
        run: { target: 'query.runId' },
        session: { target: 'query.sessionId' },
        conversation: { target: 'query.conversationId' },
      },
      example: 'svc question list --status open',
    },
  }),

  get: defineRoute({
    id: 'questions.get',
    endpoint: 'GET /questions/{id}',
    summary: 'Read one question',
    params,
    query: z.object({ include: includeParam('task', 'run', 'session', 'conversation') }),
    queryCodes: { invalid: { include: 'invalid_include' } },
    reply: question.extend({
      ...included,
      conversation: includedConversation.optional().describe('With `include[]=conversation`.'),
    }),
    errors: ['question_not_found', 'invalid_include'],
    cli: { command: 'question get', positionals, example: `svc question get ${exampleId}` },
  }),

  answer: defineRoute({
    id: 'questions.answer',
    endpoint: 'POST /questions/{id}/answer',
    summary: 'Answer a question; the agent goes on with your answer',
    description:
      'A question that asks for a secret is answered with the secret route; `svc question answer` reads its value from standard input.',
    callers: { person: 'member', agent: { refused: 'agent_cannot_answer_question' } },
    idempotency: 'required',
    params,
    body: z.object({
      answer: z.object({
        text: z.string().max(100_000).nullable().optional().describe('The answer, or a note on what was chosen.'),
        selected: z
          .array(z.string().max(200))
          .max(10_000)
          .nullable()
          .optional()
          .describe('Keys or labels of the chosen options.'),
      }),
    }),
    reply: question,
    errors: [
      'question_not_found',
      'question_resolved',
      'question_needs_secret',
      'invalid_answer',
      'answer_mode_mismatch',
      'invalid_option_key',
    ],
    cli: {
      command: 'question answer',
      positionals: [...positionals, { name: 'text', target: 'body.answer.text', isOptional: true }],
      flags: { select: { target: 'body.answer.selected', description: 'Key or label of a chosen option.' } },
      flow: true,
      example: `svc question answer ${exampleId} "eu-west-1"`,
    },
  }),

  secret: defineRoute({
    id: 'questions.secret',
    endpoint: 'POST /questions/{id}/secret',
    summary: 'Give the secret that a question asks for; it is stored encrypted and granted to the asking agent',
    callers: peopleOnly,
    params,
    body: z.object({ value: secretFields.value }),
    reply: question,
    errors: [
      'question_not_found',
      'question_resolved',
      'question_not_secret_input',
      'secret_input_requires_agent',
      'secret.duplicate_name',
      'secret_provider_unbrokerable',
    ],
    cli: null,
  }),
} as const
