import { z } from 'zod'
import { timestamp } from './ids.ts'
import { limitParam, listOf, pageParams } from './paging.ts'
import { defineRoute } from './route.ts'
import { actor } from './task-shapes.ts'
import { taskParams, taskPositional } from './tasks.ts'

export const taskActivity = z
  .object({
    id: z.string().meta({ example: 'act_7kP1sD5fGhJ3lZ9x' }),
    kind: z.string().meta({ example: 'task.status_changed' }),
    createdAt: timestamp,
    actor,
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'TaskActivity' })

export const taskHistoryEntry = taskActivity
  .extend({
    id: z.string().describe('Of the comment, the activity, the run or the git event.'),
    source: z.enum(['comment', 'activity', 'run', 'git']),
  })
  .meta({ id: 'TaskHistoryEntry' })
export type TaskHistoryEntry = z.infer<typeof taskHistoryEntry>

export const taskHistoryRoutes = {
  history: defineRoute({
    id: 'tasks.history',
    endpoint: 'GET /tasks/{id}/history',
    summary: 'Read what happened to a task, oldest first: comments, activity, runs and git events',
    description: 'Returns the newest `limit` entries of each source; `hasMore` says that an older one was left out.',
    params: taskParams,
    query: z.object({ limit: limitParam({ max: 500, default: 100 }) }),
    reply: z.object({ object: z.literal('list'), data: z.array(taskHistoryEntry), hasMore: z.boolean() }),
    errors: ['task_not_found'],
    cli: { command: 'task history', positionals: [taskPositional], example: 'svc task history MAI-12' },
  }),

  activity: defineRoute({
    id: 'tasks.activity',
    endpoint: 'GET /tasks/{id}/activity',
    summary: 'Read the activity log of a task, newest first',
    params: taskParams,
    query: z.object(pageParams),
    reply: listOf(taskActivity),
    errors: ['task_not_found'],
    cli: { command: 'task activity', positionals: [taskPositional], example: 'svc task activity MAI-12' },
  }),
} as const
