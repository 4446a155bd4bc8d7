import { z } from 'zod'
import { agentRef, taskRef } from './ids.ts'
import { listOf } from './paging.ts'
import { defineRoute } from './route.ts'
import { checklistItem, taskDependencies, taskDependency, taskWatcher } from './task-shapes.ts'
import { keyedChange, taskParams, taskPositional } from './tasks.ts'

const itemPositional = { name: 'item', target: 'params.itemId' } as const
const blockerPositional = { name: 'blocker', target: 'params.dependencyId' } as const

const subject = z
  .object({
    type: z.enum(['user', 'agent']).describe('What the watcher is.'),
    id: agentRef.describe('A person: `usr_` id or UUID. An agent: `agt_` id, @handle, name or UUID. `me`: the caller.'),
  })
  .meta({ id: 'TaskWatcherSubject' })
/** The flags that name the subject; without them it is the caller. */
const subjectFlags = {
  type: { target: null, description: '`user` or `agent`. Default: the type of the caller.' },
  id: { target: null, description: 'The person or agent. Default: you.' },
} as const

export const taskLinkRoutes = {
  addItem: defineRoute({
    id: 'tasks.checklist.add',
    endpoint: 'POST /tasks/{id}/checklist',
    summary: 'Add an item at the end of a checklist',
    ...keyedChange,
    body: z
      .object({ text: z.string().max(2_000).nullable().optional().describe('What is to be done.') })
      .meta({ id: 'TaskChecklistAdd' }),
    reply: checklistItem,
    status: 201,
    errors: ['task_not_found', 'invalid_checklist_item'],
    cli: {
      command: 'task checklist add',
      positionals: [taskPositional, { name: 'text', target: 'body.text' }],
      example: 'svc task checklist add current "Write the test"',
    },
  }),

  updateItem: defineRoute({
    id: 'tasks.checklist.update',
    endpoint: 'POST /tasks/{id}/checklist/{itemId}',
    summary: 'Change, tick off, move or archive an item of a checklist',
    params: taskParams.extend({ itemId: z.string().min(1).max(100).describe('`chk_` id of the item.') }),
    idempotency: 'required',
    body: z
      .object({
        text: z.string().max(2_000).nullable().describe('What is to be done.'),
        done: z.boolean().describe('Whether it is done.'),
        position: z.number().int().min(0).max(100_000).describe('Its place, from 0; beyond the end means the end.'),
        archived: z.boolean().describe('Archived items leave the checklist.'),
      })
      .partial()
      .meta({ id: 'TaskChecklistUpdate' }),
    reply: checklistItem,
    errors: ['task_not_found', 'invalid_checklist_item', 'checklist_item_not_found'],
    cli: {
      command: 'task checklist update',
      positionals: [taskPositional, itemPositional],
      example: 'svc task checklist update current chk_2mV6bN0xQeW4rT8y --done',
    },
  }),

  dependencies: defineRoute({
    id: 'tasks.dependencies.list',
    endpoint: 'GET /tasks/{id}/dependencies',
    summary: 'Show what a task depends on and what depends on it',
    params: taskParams,
    reply: taskDependencies,
    errors: ['task_not_found'],
    cli: { command: 'task dependency list', positionals: [taskPositional], example: 'svc task dependency list MAI-12' },
  }),

  addDependency: defineRoute({
    id: 'tasks.dependencies.add',
    endpoint: 'POST /tasks/{id}/dependencies',
    summary: 'Make a task wait for another one',
    description: 'A dependency that exists already answers 200 and takes the given type.',
    ...keyedChange,
    body: z
      .object({
        dependsOnTaskId: taskRef,
        type: z.enum(['blocks', 'related']).default('blocks').describe('`related` holds nothing up.'),
      })
      .meta({ id: 'TaskDependencyAdd' }),
    reply: taskDependency,
    status: 201,
    otherReplies: { 200: taskDependency },
    errors: ['task_not_found', 'dependency_cycle', 'dependency_task_not_found', 'cross_company_dependency'],
    cli: {
      command: 'task dependency add',
      positionals: [taskPositional, { name: 'blocker', target: 'body.dependsOnTaskId' }],
      example: 'svc task dependency add MAI-12 MAI-3',
    },
  }),

  removeDependency: defineRoute({
    id: 'tasks.dependencies.remove',
    endpoint: 'POST /tasks/{id}/dependencies/{dependencyId}/remove',
    summary: 'Stop a task from waiting for another one',
    params: taskParams.extend({ dependencyId: taskRef.describe('The task it depends on: `tsk_` id or key.') }),
    idempotency: 'required',
    body: z
      .object({ type: z.enum(['blocks', 'related']).optional().describe('Only if it has this type.') })
      .meta({ id: 'TaskDependencyRemove' }),
    reply: taskDependency,
    errors: ['task_not_found', 'dependency_not_found'],
    cli: {
      command: 'task dependency remove',
      positionals: [taskPositional, blockerPositional],
      example: 'svc task dependency remove MAI-12 MAI-3',
    },
  }),

  watchers: defineRoute({
    id: 'tasks.watchers.list',
    endpoint: 'GET /tasks/{id}/watchers',
    summary: 'Show who watches a task',
    params: taskParams,
    reply: listOf(taskWatcher),
    errors: ['task_not_found'],
    cli: { command: 'task watch list', positionals: [taskPositional], example: 'svc task watch list MAI-12' },
  }),

  addWatcher: defineRoute({
    id: 'tasks.watchers.add',
    endpoint: 'POST /tasks/{id}/watchers',
    summary: 'Add a person or an agent as a watcher of a task; an agent is woken when the task changes',
    params: taskParams,
    body: subject,
    reply: taskWatcher,
    status: 201,
    otherReplies: { 200: taskWatcher },
    errors: ['task_not_found', 'watcher_not_found'],
    cli: {
      command: 'task watch add',
      positionals: [taskPositional],
      flags: subjectFlags,
      flow: true,
      example: 'svc task watch add MAI-12 --type agent --id @builder',
    },
  }),

  removeWatcher: defineRoute({
    id: 'tasks.watchers.remove',
    endpoint: 'POST /tasks/{id}/watchers/remove',
    summary: 'Remove a watcher of a task',
    params: taskParams,
    body: subject,
    reply: taskWatcher,
    errors: ['task_not_found', 'watcher_not_found'],
    cli: {
      command: 'task watch remove',
      positionals: [taskPositional],
      flags: subjectFlags,
      flow: true,
      example: 'svc task watch remove MAI-12 --type agent --id @builder',
    },
  }),
} as const
