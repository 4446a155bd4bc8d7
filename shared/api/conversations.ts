import { z } from 'zod'
import { harnessNames } from '../runs/harnesses.ts'
import { reasoningEfforts, speeds } from '../runs/spec.ts'
import { modelId } from './agents.ts'
import { conversationKinds } from './conversation-fields.ts'
import { conversation, conversationDetail, participantInput, reference } from './conversation-shapes.ts'
import { idPageParams } from './id-paging.ts'
import { agentRef, conversationId, runId, taskRef, timestamp } from './ids.ts'
import { message, sentText, textFlags, textKeys, textPositional } from './messages.ts'
import { idsParam, limitParam, listOf, listOrBatchOf, includeParam } from './paging.ts'
import { defineRoute, peopleOnly } from './route.ts'
import { runEvent } from './run-events.ts'
import { run } from './runs.ts'
import type { ErrorCode } from './error-codes.ts'

const title = z.string().trim().min(1).max(200)
const params = z.object({ id: conversationId })
const positional = { name: 'conversation', target: 'params.id' } as const
const positionals = [positional] as const
const example = 'cnv_4yI8oP2cLhS6jB0d'
/** The part of routes for workspace admins. Agents get 403 `not_authorized` here; the handlers refuse other people. */
const adminsChange = {
  params,
  idempotency: 'required',
  callers: { person: 'member', agent: { refused: 'not_authorized' } },
} as const

const archiving = (verb: 'archive' | 'unarchive', summary: string, errors: readonly ErrorCode[] = []) =>
  defineRoute({
    id: `conversations.${verb}`,
    endpoint: `POST /conversations/{id}/${verb}`,
    summary,
    ...adminsChange,
    reply: conversation,
    errors: ['conversation_not_found', 'not_authorized', ...errors],
    cli: { command: `conversation ${verb}`, positionals, example: `svc conversation ${verb} ${example}` },
  })

export const conversationRoutes = {
  create: defineRoute({
    id: 'conversations.create',
    endpoint: 'POST /conversations',
    summary: 'Begin a dm with one agent, or a channel; you are always in it',
    idempotency: 'required',
    body: z
      .object({
        participants: z.array(participantInput).max(100).default([]).describe('Who else is in it.'),
        kind: z.enum(conversationKinds).optional().describe('Default: `channel`; that of a task is always a `dm`.'),
        title: title.nullable().optional().describe('Title.'),
        taskId: taskRef.nullable().optional().describe('The task it belongs to.'),
        firstMessage: z
          .union([z.string().max(100_000), z.object(textKeys)])
          .optional()
          .describe('Text of the first message.'),
      })
      .meta({ id: 'ConversationCreate' }),
    reply: conversation,
    status: 201,
    errors: [
      'dm_already_exists',
      'dm_requires_one_agent',
      'dm_requires_one_user',
      'task_already_has_conversation',
      'task_not_found',
      'participant_not_found',
      'empty_message',
      'secret_in_message',
      'conversation_not_found',
      'parent_not_in_conversation',
    ],
    cli: {
      command: 'conversation create',
      flags: {
        participant: {
          target: 'body.participants',
          kind: 'string',
          description: 'Who else is in it: `usr_` id, or any reference to an agent.',
        },
        task: { target: 'body.taskId' },
        message: { target: 'body.firstMessage', kind: 'string' },
      },
      example: 'svc conversation create --kind dm --participant @builder --message "Is the build green?"',
    },
  }),

  list: defineRoute({
    id: 'conversations.list',
    endpoint: 'GET /conversations',
    summary: 'List the conversations you can see, those with the latest activity first, or read several by `ids`',
    query: z.object({
      ids: idsParam,
      taskId: taskRef.optional().describe('Only that of this task; `none`: only those of no task.'),
      participantId: reference.optional().describe('Only those this person (`usr_` id) or agent is in.'),
      archived: z.boolean().optional().describe('Archived ones too.'),
      q: z.string().max(200).optional().describe('Text in the title.'),
      ...idPageParams,
      startingAfter: idPageParams.startingAfter.describe(
        '`nextCursor` of the page before; returns the rows after it. An id of a conversation is read as its place now.',
      ),
      endingBefore: idPageParams.endingBefore.describe(
        '`nextCursor` of the page before, or the id of its first row; returns the rows before it.',
      ),
    }),
    reply: listOrBatchOf(conversation),
    cli: {
      command: 'conversation list',
      flags: { task: { target: 'query.taskId' }, participant: { target: 'query.participantId' } },
      example: 'svc conversation list --participant @builder',
    },
  }),

  get: defineRoute({
    id: 'conversations.get',
    endpoint: 'GET /conversations/{id}',
    summary: 'Read one conversation',
    params,
    query: z.object({ include: includeParam('messages', 'task', 'participantsExpanded', 'runtime') }),
    queryCodes: { invalid: { include: 'invalid_include' } },
    reply: conversationDetail,
    errors: ['conversation_not_found'],
    cli: { command: 'conversation get', positionals, example: `svc conversation get ${example} --include messages` },
  }),

  rename: defineRoute({
    id: 'conversations.rename',
    endpoint: 'POST /conversations/{id}',
    summary: 'Rename a conversation',
    params,
    body: z.object({ title: title.describe('The new title.') }).meta({ id: 'ConversationRename' }),
    reply: conversation,
    errors: ['conversation_not_found', 'not_authorized'],
    cli: {
      command: 'conversation rename',
      positionals: [positional, { name: 'title', target: 'body.title' }],
      example: `svc conversation rename ${example} "Release 2.0"`,
    },
  }),

  read: defineRoute({
    id: 'conversations.read',
    endpoint: 'POST /conversations/{id}/read',
    summary: 'Mark all messages of a conversation as read by you',
    params,
    reply: z.object({ lastReadAt: timestamp }),
    errors: ['conversation_not_found'],
    cli: { command: 'conversation read', positionals, example: `svc conversation read ${example}` },
  }),

  archive: archiving('archive', 'Hide a channel from lists', ['conversation_dm_not_archivable']),

  unarchive: archiving('unarchive', 'Show an archived channel in lists again'),

  delete: defineRoute({
    id: 'conversations.delete',
    endpoint: 'POST /conversations/{id}/delete',
    summary: 'Delete a channel with all its messages, for good',
    ...adminsChange,
    errors: [
      'conversation_not_found',
      'not_authorized',
      'conversation_task_linked',
      'conversation_dm_not_deletable',
      'conversation_has_live_run',
    ],
    cli: { command: 'conversation delete', asks: true, positionals, example: `svc conversation delete ${example}` },
  }),

  addParticipant: defineRoute({
    id: 'conversations.participants.add',
    endpoint: 'POST /conversations/{id}/participants',
    summary: 'Add a person or an agent to a channel',
    ...adminsChange,
    body: z
      .object({
        type: z.enum(['user', 'agent']).optional().describe('Default: what the id says.'),
        id: reference.optional().describe('`usr_` id, or any reference to an agent.'),
        participant: participantInput.optional().describe('Both in one value, instead of `type` and `id`.'),
      })
      .refine((body) => (body.id === undefined) !== (body.participant === undefined), {
        path: ['id'],
        message: 'send id, or participant',
      })
      .meta({ id: 'ParticipantAdd' }),
    reply: conversation,
    errors: ['conversation_not_found', 'not_authorized', 'dm_cannot_add_participant', 'participant_not_found'],
    cli: {
      command: 'conversation participant add',
      positionals: [positional, { name: 'participant', target: 'body.id' }],
      flags: { participant: null },
      example: `svc conversation participant add ${example} @builder`,
    },
  }),

  removeParticipant: defineRoute({
    id: 'conversations.participants.remove',
    endpoint: 'POST /conversations/{id}/participants/{ref}/remove',
    summary: 'Take a person or an agent out of a channel',
    ...adminsChange,
    params: params.extend({ ref: reference.describe('`usr_` id, or any reference to an agent.') }),
    reply: conversation,
    errors: ['conversation_not_found', 'not_authorized', 'participant_not_found'],
    cli: {
      command: 'conversation participant remove',
      positionals: [positional, { name: 'participant', target: 'params.ref' }],
      example: `svc conversation participant remove ${example} @builder`,
    },
  }),

  updateRuntime: defineRoute({
    id: 'conversations.runtime.update',
    endpoint: 'PATCH /conversations/{id}/runtime',
    summary: 'Switch model, harness, reasoning effort or speed; the next turn starts a fresh harness session',
    params,
    body: z
      .object({
        modelId: modelId.nullable().describe("Model of its runs; null: the agent's."),
        harness: z.enum(harnessNames).nullable().describe("Agent program; null: the model's, else the agent's."),
        reasoningEffort: z.enum(reasoningEfforts).nullable().describe("Reasoning effort; null: the agent's."),
        speed: z.enum(speeds).nullable().describe('How fast the model answers; null: as usual.'),
      })
      .partial()
      .refine((body) => Object.values(body).some((value) => value !== undefined), 'nothing to change')
      .meta({ id: 'ConversationRuntimeUpdate' }),
    reply: conversationDetail,
    errors: [
      'conversation_not_found',
      'not_authorized',
      'conversation_busy',
      'model_not_found',
      'harness_model_unsupported',
      'reasoning_effort_unsupported',
      'speed_unsupported',
    ],
    cli: {
      command: 'conversation runtime set',
      positionals,
      flags: { model: { target: 'body.modelId' }, effort: { target: 'body.reasoningEffort' } },
      example: `svc conversation runtime set ${example} --model claude-opus-4-5 --effort high`,
    },
  }),

  send: defineRoute({
    id: 'conversations.send',
    endpoint: 'POST /conversations/{id}/send',
    summary: 'Say something to an agent and read its reply as it is produced',
    description:
      'The answer is a stream of server-sent events: `message` (yours, as it was posted), `run` (the run that answers, and each change of its status), `delta` (a piece of what the agent says), and as the last one `done` (with its posted reply) or `error`. A reader that was cut off calls again with `Last-Event-ID` and gets the events after it; nothing is posted then. Calling again with the same Idempotency-Key and text also continues the same turn. With `Accept: application/json` alone the answer is the message and its run, at once.',
    params,
    callers: peopleOnly,
    transaction: false,
    stream: 'sse',
    body: z
      .object({
        ...textKeys,
        agentId: agentRef.nullable().optional().describe('Who is to answer; needed where several agents are.'),
      })
      .meta({ id: 'ConversationSend' }),
    reply: z.object({ message, runId }),
    errors: [
      'conversation_not_found',
      'not_a_participant',
      'participant_not_found',
      'send_target_required',
      'empty_message',
      'secret_in_message',
      'parent_not_in_conversation',
      'rate_limited',
    ],
    cli: {
      command: 'conversation send',
      positionals: [positional, textPositional],
      flags: { ...textFlags, agent: { target: 'body.agentId' } },
      flow: true,
      example: `svc conversation send ${example} "Is the build green?"`,
    },
  }),

  events: defineRoute({
    id: 'conversations.events',
    endpoint: 'GET /conversations/{id}/events',
    summary: 'Read what the runs of a conversation did: their events, run by run, and the runs',
    params,
    query: z.object({
      limit: limitParam({ max: 500, default: 100 }),
      after: z.string().max(1024).optional().describe('`nextCursor` of the page before.'),
    }),
    reply: listOf(runEvent).extend({ runs: z.array(run).describe('The runs that these events belong to.') }),
    errors: ['conversation_not_found'],
    cli: { command: 'conversation events', positionals, example: `svc conversation events ${example}` },
  }),
} as const

export function firstText(first: string | z.infer<z.ZodObject<typeof textKeys>> | undefined): string | undefined {
  return typeof first === 'object' ? (sentText(first) ?? '') : first
}
