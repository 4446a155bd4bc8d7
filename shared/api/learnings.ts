import { z } from 'zod'
import { approvalId, conversationId, learningId, taskRef } from './ids.ts'
import { learning, learningKeys, learningStatuses } from './learning-fields.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute, peopleOnly } from './route.ts'

/** Learnings: what agents and people propose for the wiki, and people accept or reject. */

const params = z.object({ id: learningId })
const positionals = [{ name: 'learning', target: 'params.id' }] as const
const exampleId = 'lrn_5vN8dR2kWq7Tz1Bc'
export const learningRoutes = {
  list: defineRoute({
    id: 'learnings.list',
    endpoint: 'GET /learnings',
    summary: 'List learnings, newest first',
    query: z.object({
      status: z.enum(learningStatuses).optional().describe('Only those that are so.'),
      entityType: z.string().min(1).max(64).optional().describe('Only those with a tag of this type.'),
      entityName: z.string().min(1).max(128).optional().describe('Only those with a tag of this name.'),
      conversationId: conversationId.optional().describe('Only those that come from it.'),
      approvalId: approvalId.optional().describe('The one about which it decides.'),
      ...pageParams,
    }),
    reply: listOf(learning),
    cli: {
      command: 'learning list',
      flags: {
        after: { aliases: ['cursor'] },
        conversation: { target: 'query.conversationId' },
        approval: { target: 'query.approvalId' },
      },
      example: 'svc learning list --status proposed',
    },
  }),

  create: defineRoute({
    id: 'learnings.create',
    endpoint: 'POST /learnings',
    summary: 'Propose something for the wiki; a person accepts or rejects it',
    body: z
      .object({
        ...learningKeys,
        entities: learningKeys.entities.optional(),
        conversationId: conversationId
          .nullable()
          .optional()
          .describe('Where it was learned; default: that of the run.'),
        taskId: taskRef.nullable().optional().describe('The task it was learned from; within a run, that of the run.'),
        runId: z.string().min(1).max(100).nullable().optional().describe('`run_` id; within a run, that one.'),
      })
      .meta({ id: 'LearningCreate' }),
    reply: learning,
    status: 201,
    errors: ['resource_not_found', 'run_not_found', 'conversation_not_found'],
    cli: {
      command: 'learning add',
      flags: {
        bullets: null,
        entities: null,
        'task-id': null,
        task: { target: 'body.taskId' },
        'run-id': null,
        'conversation-id': null,
        conversation: { target: 'body.conversationId' },
        bullet: {
          target: null,
          kind: 'string',
          repeatable: true,
          description: 'One instruction; its sources follow it.',
        },
        source: {
          target: null,
          kind: 'string',
          repeatable: true,
          description: 'What the bullet before it is known from: an https:// URL, or pinework://<object>/<id>.',
        },
        entity: { target: null, kind: 'string', repeatable: true, description: 'A tag, as type:name.' },
      },
      flow: true,
      example:
        'svc learning add --topic "Release notes" --bullet "Write them before the tag." --source https://example.com/notes',
    },
  }),

  get: defineRoute({
    id: 'learnings.get',
    endpoint: 'GET /learnings/{id}',
    summary: 'Read one learning',
    params,
    reply: learning,
    errors: ['learning_not_found'],
    cli: { command: 'learning get', positionals, example: `svc learning get ${exampleId}` },
  }),

  update: defineRoute({
    id: 'learnings.update',
    endpoint: 'PATCH /learnings/{id}',
    summary: 'Change topic, bullets or tags of a learning that is still proposed',
    description: 'Bullets and tags are replaced as a whole. The prompt of its approval stays as it was.',
    callers: peopleOnly,
    params,
    body: z.object(learningKeys).partial().meta({ id: 'LearningUpdate' }),
    reply: learning,
    errors: ['learning_not_found', 'learning_not_editable'],
    cli: {
      command: 'learning update',
      positionals,
      example: `svc learning update ${exampleId} --topic "Release notes"`,
    },
  }),
} as const
