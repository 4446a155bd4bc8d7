import { z } from 'zod'
import { runId, taskId, timestamp } from './ids.ts'
import { defineRoute } from './route.ts'
import { runWhy } from './run-why.ts'
import { taskSummary } from './task-shapes.ts'
import { taskParams, taskPositional } from './tasks.ts'

export const taskWhy = runWhy
  .omit({ run: true, reason: true, since: true })
  .extend({
    task: z.object({ id: taskId, key: z.string() }),
    reason: z
      .string()
      .nullable()
      .describe(
        'As a code: why a wake of its agent is not let through (`task_blocked_dependency`, `agent_inactive`, `budget_blocked`, ...), `unassigned`, `not_woken`, `wake_on_assignment_off`, `in_review`, `workflow_running`, its status once it is finished, `archived`, or the reason of the run that it waits for; null: nothing holds it.',
      ),
    since: timestamp.nullable().describe('null: that was not written down.'),
    run: runId.nullable().describe('The run that works on it or waits to, else the last one; null: none that you see.'),
    blockedBy: z
      .array(taskSummary.pick({ id: true, key: true, title: true, status: true }))
      .describe('The first ten unfinished tasks that block it and that you see.'),
    moreBlockers: z
      .number()
      .int()
      .describe('Unfinished tasks that block it beside those, also those that you do not see.'),
  })
  .meta({ id: 'TaskWhy' })
export type TaskWhy = z.infer<typeof taskWhy>

export const taskWhyRoutes = {
  why: defineRoute({
    id: 'tasks.why',
    endpoint: 'GET /tasks/{id}/why',
    summary: 'Say what holds a task or works on it, what happens next, and what to do',
    params: taskParams,
    reply: taskWhy,
    errors: ['task_not_found'],
    cli: { command: 'task why', positionals: [taskPositional], example: 'svc task why MAI-12' },
  }),
} as const
