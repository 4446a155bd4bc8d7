import { z } from 'zod'
import { conversation } from './conversation-shapes.ts'
import { idPageParams } from './id-paging.ts'
import { agentRef, taskRef, timestamp } from './ids.ts'
import { idsParam, listOrBatchOf, includeParam } from './paging.ts'
import { defineRoute } from './route.ts'
import { run } from './runs.ts'
import { comment } from './task-comments.ts'
import { taskPriorities, taskStatuses } from './task-fields.ts'
import {
  assigneeInput,
  batchDefaults,
  batchItem,
  task,
  taskCreate,
  taskDependencies,
  taskSummary,
  taskWatcher,
  title,
  writable,
} from './task-shapes.ts'
import { fileFlag } from './command.ts'

export const taskIncludes = [
  'description',
  'comments',
  'dependencies',
  'watchers',
  'parent',
  'subtasks',
  'runs',
  'conversation',
] as const
export type TaskInclude = (typeof taskIncludes)[number]

export const taskWithIncluded = task
  .extend({
    dependencies: taskDependencies.optional(),
    watchers: z.array(taskWatcher).optional(),
    parent: taskSummary.nullable().optional(),
    subtasks: z.array(taskSummary).optional().describe('Direct ones, oldest first.'),
    runs: z.array(run).optional().describe('The last 25, newest first.'),
    comments: z.array(comment).optional().describe('The last 25, oldest first.'),
    conversation: conversation
      .nullable()
      .optional()
      .describe('Holds its comments; null before the first one, and for callers who may not read it.'),
  })
  .meta({ id: 'TaskWithIncluded' })

export const taskParams = z.object({ id: taskRef })
export const taskPositional = { name: 'task', target: 'params.id' } as const
/** A change of one task that must not be made twice. */
export const keyedChange = { params: taskParams, idempotency: 'required' } as const

const runCodes = [
  'base_branch_without_repo',
  'model_not_found',
  'reasoning_effort_unsupported',
  'harness_model_unsupported',
  'repo_not_found',
] as const
const createCodes = [
  'task_duplicate',
  'task_key_contention',
  'assignee_not_found',
  'assignee_lacks_access',
  'parent_task_not_found',
  'parent_task_depth_exceeded',
  'dependency_cycle',
  'dependency_task_not_found',
  'cross_company_dependency',
  // The project.
  'resource_not_found',
  ...runCodes,
] as const

const taskFlags = {
  'project-id': { aliases: ['project'] },
  'model-id': { aliases: ['model'] },
  'reasoning-effort': { aliases: ['effort'] },
  'repo-id': { aliases: ['repo'] },
  'branch-name': { aliases: ['branch'] },
  description: {},
  'description-file': fileFlag('body.description', 'the description'),
} as const

const archiving = (verb: 'archive' | 'unarchive', summary: string) =>
  defineRoute({
    id: `tasks.${verb}`,
    endpoint: `POST /tasks/{id}/${verb}`,
    summary,
    ...keyedChange,
    reply: task,
    errors: ['task_not_found'],
    cli: { command: `task ${verb}`, positionals: [taskPositional], example: `svc task ${verb} MAI-12` },
  })

export const taskRoutes = {
  list: defineRoute({
    id: 'tasks.list',
    endpoint: 'GET /tasks',
    summary: 'List tasks, newest first, or read several by `ids`',
    query: z.object({
      ids: idsParam,
      status: z.array(z.enum(taskStatuses)).optional().describe('Only with one of these.'),
      assignee: agentRef.optional().describe('Only those of this agent; `none`: of nobody.'),
      projectId: z.string().min(1).max(100).optional().describe('Only of this project; `none`: of no project.'),
      parentTaskId: taskRef.optional().describe('Only subtasks of this task; `none`: root tasks.'),
      priority: z.array(z.enum(taskPriorities)).optional().describe('Only with one of these.'),
      archived: z.boolean().optional().describe('Archived ones, too.'),
      q: z.string().max(100).optional().describe('Text in title, key or description.'),
      include: includeParam('description'),
      ...idPageParams,
    }),
    queryCodes: { invalid: { include: 'invalid_include' } },
    reply: listOrBatchOf(task),
    errors: ['too_many_ids', 'ids_exclusive'],
    cli: {
      command: 'task list',
      flags: { 'project-id': { aliases: ['project'] }, 'parent-task-id': { aliases: ['parent'] } },
      example: 'svc task list --assignee me --status open',
    },
  }),

  create: defineRoute({
    id: 'tasks.create',
    endpoint: 'POST /tasks',
    summary: 'Create a task; its assignee is woken',
    idempotency: 'required',
    body: taskCreate,
    reply: task,
    status: 201,
    errors: createCodes,
    cli: {
      command: 'task create',
      flags: {
        ...taskFlags,
        'parent-task-id': { aliases: ['parent'] },
        assignee: { kind: 'string', nullWord: 'none' },
        checklist: { kind: 'string', aliases: ['checklist-item'] },
      },
      example: 'svc task create --title "Fix the login page" --assignee @builder',
    },
  }),

  batch: defineRoute({
    id: 'tasks.batch',
    endpoint: 'POST /tasks/batch',
    summary: 'Create several tasks, all or none',
    description:
      'Tasks are created in their order. `defaults` apply to every task that does not say otherwise. `parentTaskId` may name an earlier task of the batch, `dependsOn` any of them: by `ref` or by index from 0. A bare list of tasks is accepted, too.',
    idempotency: 'required',
    body: z.union([
      z.object({ defaults: batchDefaults.optional(), tasks: z.array(batchItem).min(1).max(100) }),
      z
        .array(batchItem)
        .min(1)
        .max(100)
        .transform((tasks) => ({ defaults: undefined, tasks })),
    ]),
    reply: z.object({ object: z.literal('list'), data: z.array(task) }),
    status: 201,
    errors: [...createCodes, 'invalid_batch'],
    cli: {
      command: 'task batch',
      positionals: [
        {
          name: 'file',
          target: null,
          isOptional: true,
          description: 'JSON file with the tasks; left out or `-`: standard input.',
        },
      ],
      flow: true,
      example: 'svc task batch tasks.json',
    },
  }),

  get: defineRoute({
    id: 'tasks.get',
    endpoint: 'GET /tasks/{id}',
    summary: 'Read one task',
    params: taskParams,
    query: z.object({ include: includeParam(...taskIncludes) }),
    queryCodes: { invalid: { include: 'invalid_include' } },
    reply: taskWithIncluded,
    errors: ['task_not_found'],
    cli: {
      command: 'task get',
      positionals: [taskPositional],
      flags: { history: { kind: 'boolean', description: 'Print its history, too.' } },
      flow: true,
      example: 'svc task get current --include dependencies',
    },
  }),

  update: defineRoute({
    id: 'tasks.update',
    endpoint: 'POST /tasks/{id}',
    summary: 'Change fields of a task; not its status or assignee',
    params: taskParams,
    body: z
      .object({ title, ...writable })
      .partial()
      .meta({ id: 'TaskUpdate' }),
    // The fields that are refused have routes of their own, with effects of their own.
    refusedBodyKeys: { status: 'validation_error', assignee: 'validation_error', parentTaskId: 'validation_error' },
    reply: task,
    errors: ['task_not_found', 'task_branch_immutable', 'assignee_lacks_access', ...runCodes],
    cli: {
      command: 'task update',
      positionals: [taskPositional],
      flags: taskFlags,
      example: 'svc task update MAI-12 --priority high',
    },
  }),

  transition: defineRoute({
    id: 'tasks.transition',
    endpoint: 'POST /tasks/{id}/transition',
    summary: 'Move a task to another status',
    description:
      'open: in_progress, done, cancelled. in_progress: in_review, done, open, cancelled. in_review: in_progress, done, open, cancelled. done and cancelled: open, with a reason.',
    ...keyedChange,
    body: z
      .object({
        status: z.enum(taskStatuses).describe('Where to.'),
        reason: z.string().max(2_000).optional().describe('Why; needed to reopen.'),
        comment: z.string().max(100_000).optional().describe('Posted as a comment of the task.'),
      })
      .meta({ id: 'TaskTransition' }),
    reply: task,
    errors: [
      'task_not_found',
      'invalid_task_transition',
      'reopen_reason_required',
      'empty_comment',
      'secret_in_message',
    ],
    cli: {
      command: 'task transition',
      positionals: [taskPositional],
      example: 'svc task transition current --status done --comment "Merged."',
    },
  }),

  assign: defineRoute({
    id: 'tasks.assign',
    endpoint: 'POST /tasks/{id}/assign',
    summary: 'Give a task to an agent, which is woken, or to nobody',
    description:
      'The run that works on a task may hand it on; the run of the other agent begins when that one has ended.',
    ...keyedChange,
    body: z.union([
      z.object({ assignee: assigneeInput }),
      z.object({ type: z.literal('agent'), id: agentRef }).transform((given) => ({ assignee: given })),
      z.null().transform(() => ({ assignee: null })),
    ]),
    reply: task,
    errors: ['task_not_found', 'task_archived', 'task_has_active_run', 'assignee_not_found', 'assignee_lacks_access'],
    cli: {
      command: 'task assign',
      positionals: [taskPositional],
      flags: {
        assignee: { description: 'The agent: `agt_` id, @handle, name, UUID or `me`.' },
        unassign: { kind: 'boolean', description: 'Take it from its assignee.' },
      },
      flow: true,
      example: 'svc task assign MAI-12 --assignee @builder',
    },
  }),

  move: defineRoute({
    id: 'tasks.move',
    endpoint: 'POST /tasks/{id}/move',
    summary: 'Put a task below another one, or at the root',
    ...keyedChange,
    body: z
      .object({ parentTaskId: taskRef.nullable().describe('The new parent; null: the root.') })
      .meta({ id: 'TaskMove' }),
    reply: task,
    errors: ['task_not_found', 'parent_task_not_found', 'parent_task_cycle', 'parent_task_depth_exceeded'],
    cli: {
      command: 'task move',
      positionals: [taskPositional],
      flags: {
        'parent-task-id': null,
        parent: { description: 'The new parent.' },
        'to-root': { kind: 'boolean', description: 'No parent.' },
      },
      flow: true,
      example: 'svc task move MAI-12 --parent MAI-3',
    },
  }),

  archive: archiving('archive', 'Archive a task: lists hide it'),
  unarchive: archiving('unarchive', 'Bring an archived task back'),

  read: defineRoute({
    id: 'tasks.read',
    endpoint: 'POST /tasks/{id}/read',
    summary: 'Mark a task and its comments as read by you',
    params: taskParams,
    reply: z.object({ lastReadAt: timestamp }).meta({ id: 'TaskReadMark' }),
    errors: ['task_not_found'],
    cli: { command: 'task read', positionals: [taskPositional], example: 'svc task read MAI-12' },
  }),
} as const
