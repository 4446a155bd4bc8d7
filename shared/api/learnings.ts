import type { ApprovalId, ConversationId } from '../lib/ids.ts'
import { idIn } from '../lib/id-schema.ts'
import { z } from 'zod'
import { learningId, runRef, taskRef } from './ids.ts'
import { entityKeys, learning, learningKeys, learningStatuses } from './learning-fields.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute, peopleOnly } from './route.ts'

// Learnings: proposals for the wiki, with their sources, which a person accepts or rejects.

const bulletFlags = {
  bullets: null,
  bullet: { repeatable: true, description: 'What was learned, in at most 25 words; its --source flags follow it.' },
  source: {
    repeatable: true,
    description: 'What shows that the --bullet before it is so: https://... or pinework://<object>/<id>.',
  },
  entities: null,
  entity: { repeatable: true, description: 'What it is about, as type:name.' },
} as const

const params = z.object({ id: learningId })
const positionals = [{ name: 'learning', target: 'params.id' }] as const
export const exampleLearning = 'lrn_7vT2mX9qLbR4kD1s'

export const learningRoutes = {
  list: defineRoute({
    id: 'learnings.list',
    endpoint: 'GET /learnings',
    summary: 'List the learnings you can see, newest first',
    query: z.object({
      status: z.enum(learningStatuses).optional().describe('Only those with this status.'),
      entityType: entityKeys.type.optional().describe('Only those about a thing of this kind.'),
      entityName: entityKeys.name.optional().describe('Only those about a thing of this name.'),
      conversationId: idIn<ConversationId>(z.string().max(100)).optional().describe('Only those of this conversation.'),
      approvalId: idIn<ApprovalId>(z.string().max(100))
        .optional()
        .describe('Only the one that this approval is about.'),
      ...pageParams,
    }),
    reply: listOf(learning),
    cli: { command: 'learning list', example: 'svc learning list --status proposed' },
  }),

  create: defineRoute({
    id: 'learnings.create',
    endpoint: 'POST /learnings',
    summary: 'Propose something you learned for the wiki; a person accepts or rejects it',
    body: z
      .object({
        topic: learningKeys.topic,
        bullets: learningKeys.bullets,
        entities: learningKeys.entities.default([]),
        conversationId: z.string().min(1).max(100).optional().describe("Default: that of the agent's run."),
        taskId: taskRef.optional().describe("A task; default that of the agent's run."),
        runId: runRef.optional().describe("The run in which it was learned; an agent's is its own."),
      })
      .meta({ id: 'LearningCreate' }),
    reply: learning,
    status: 201,
    errors: ['run_not_found', 'task_not_found', 'conversation_not_found'],
    cli: {
      command: 'learning add',
      flags: {
        ...bulletFlags,
        bullet: { ...bulletFlags.bullet, required: true },
        source: { ...bulletFlags.source, required: true },
        task: { target: 'body.taskId' },
        run: { target: 'body.runId' },
        conversation: { target: 'body.conversationId' },
      },
      flow: true,
      example:
        'svc learning add --topic "Builds" --bullet "Run make clean first." --source https://example.com/builds --entity repo:web',
    },
  }),

  get: defineRoute({
    id: 'learnings.get',
    endpoint: 'GET /learnings/{id}',
    summary: 'Read one learning',
    params,
    reply: learning,
    errors: ['learning_not_found'],
    cli: { command: 'learning get', positionals, example: `svc learning get ${exampleLearning}` },
  }),

  update: defineRoute({
    id: 'learnings.update',
    endpoint: 'PATCH /learnings/{id}',
    summary: 'Replace the topic, the bullets or the entities of a learning that is not reviewed yet',
    callers: peopleOnly,
    params,
    body: z.object(learningKeys).partial().meta({ id: 'LearningUpdate' }),
    reply: learning,
    errors: ['learning_not_found', 'learning_not_editable'],
    cli: {
      command: 'learning update',
      positionals,
      flags: bulletFlags,
      flow: true,
      example: `svc learning update ${exampleLearning} --topic "Builds of the web client"`,
    },
  }),
} as const
