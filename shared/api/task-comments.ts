import { z } from 'zod'
import { authorTypes } from './conversation-fields.ts'
import { messageId, taskRef, timestamp } from './ids.ts'
import { attachment, attachmentIds, named, parentMessageId, textFlags, textKeys, textPositional } from './messages.ts'
import { listOf, limitParam } from './paging.ts'
import { defineRoute } from './route.ts'

// Comments of tasks: messages of the conversation of a task.

export const comment = z
  .object({
    id: messageId,
    body: z.string(),
    author: z.object({ type: z.enum(authorTypes), ...named.shape }),
    taskId: z.string().describe('The task key.'),
    parentMessageId: messageId.nullable(),
    attachments: z.array(attachment),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Comment' })
export type Comment = z.infer<typeof comment>

const params = z.object({ taskId: taskRef })
const positional = { name: 'task', target: 'params.taskId' } as const
const addFlags = {
  ...textFlags,
  attach: { target: 'body.attachmentIds', repeatable: true, description: 'Id of a file.' },
  parent: { target: 'body.parentMessageId' },
} as const

export const taskCommentRoutes = {
  list: defineRoute({
    id: 'tasks.comments.list',
    endpoint: 'GET /tasks/{taskId}/comments',
    summary: 'List the comments of a task, oldest first',
    params,
    query: z.object({
      limit: limitParam({ max: 100, default: 25 }),
      after: z.string().max(200).optional().describe('Id of the last comment of the page before.'),
    }),
    reply: listOf(comment),
    plainErrors: ['plain.comment_task_missing'],
    cli: ['comment list', 'task comment list'].map((command) => ({
      command,
      positionals: [positional],
      example: `svc ${command} MAI-12`,
    })),
  }),

  create: defineRoute({
    id: 'tasks.comments.create',
    endpoint: 'POST /tasks/{taskId}/comments',
    summary: 'Comment on a task; its assignee is woken',
    description:
      'Agents that the text @mentions are woken, too. A reply in the thread of an open question answers it. Comments are edited and deleted as messages.',
    params,
    body: z
      .object({
        ...textKeys,
        attachmentIds,
        parentMessageId: parentMessageId.nullable().optional(),
        reopen: z.boolean().default(false).describe('Open the finished task again; the comment is the reason.'),
        interrupt: z.boolean().default(false).describe("Cancel the assignee's run of this task first."),
      })
      .meta({ id: 'CommentCreate' }),
    reply: comment,
    status: 201,
    errors: ['empty_comment', 'secret_in_message', 'parent_not_in_conversation', 'invalid_task_transition'],
    plainErrors: ['plain.comment_task_missing'],
    cli: ['comment add', 'task comment add'].map((command) => ({
      command,
      positionals: [positional, textPositional],
      flags: addFlags,
      example: `svc ${command} MAI-12 "The build is green again."`,
    })),
  }),
} as const
