import { z } from 'zod'
import { isBranchName } from '../runs/repo.ts'
import { harnessNames } from '../runs/harnesses.ts'
import { reasoningEfforts } from '../runs/spec.ts'
import { environments, sandboxSizes } from './agents.ts'
import { agentId, agentRef, repoUuid, taskId, taskRef, timestamp, timestampInput, workspaceUuid } from './ids.ts'
import { taskPriorities, taskStatuses } from './task-fields.ts'

// Tasks as clients read them, and the fields that clients write.

export const actor = z
  .object({
    type: z.enum(['user', 'agent', 'system']),
    id: z.string().nullable().describe('`usr_` or `agt_` id; null for the system.'),
  })
  .meta({ id: 'Actor' })

export const checklistItem = z
  .object({
    id: z.string().meta({ example: 'chk_2mV6bN0xQeW4rT8y' }),
    text: z.string(),
    done: z.boolean(),
    completedAt: timestamp.nullable(),
    completedBy: z.object({ type: z.enum(['user', 'agent']), id: z.string() }).nullable(),
  })
  .meta({ id: 'TaskChecklistItem' })
export type ChecklistItem = z.infer<typeof checklistItem>

export const taskCondition = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('blocked'), reason: z.enum(['dependency', 'approval', 'question']) }),
    z.object({ type: z.literal('active_run') }),
    z.object({ type: z.literal('scheduled'), startAt: timestamp }),
  ])
  .meta({ id: 'TaskCondition' })

export const assignee = z.object({ type: z.literal('agent'), id: agentId }).meta({ id: 'TaskAssignee' })

export const task = z
  .object({
    object: z.literal('task'),
    id: taskId,
    key: z.string().meta({ example: 'MAI-12' }),
    workspaceId: workspaceUuid,
    projectId: z.string().nullable().describe('`prj_` id; writes take the UUID, too.'),
    parentTaskId: taskId.nullable(),
    goalId: z.string().nullable(),
    workflowRef: z.string().nullable(),
    title: z.string(),
    description: z.string().nullable().optional().describe('Left out of lists unless `include=description`.'),
    checklist: z
      .array(checklistItem)
      .describe(
        'The first 200 items that are not archived, in their order; on a page of tasks, 2,000 of all together.',
      ),
    status: z.enum(taskStatuses),
    conditions: z.array(taskCondition).describe('Derived: what holds the task up or works on it.'),
    assignee: assignee.nullable(),
    priority: z.enum(taskPriorities),
    dueAt: timestamp.nullable(),
    startAt: timestamp.nullable(),
    createdBy: actor,
    startedAt: timestamp.nullable(),
    completedAt: timestamp.nullable(),
    cancelledAt: timestamp.nullable(),
    archivedAt: timestamp.nullable(),
    branchName: z.string().nullable(),
    repoId: repoUuid.nullable(),
    baseBranch: z.string().nullable(),
    pullRequest: z.object({ number: z.number().int(), url: z.string() }).nullable(),
    environment: z.enum(environments).nullable(),
    harness: z.enum(harnessNames).nullable(),
    modelId: z.string().nullable(),
    reasoningEffort: z.enum(reasoningEfforts).nullable(),
    sandboxSize: z.enum(sandboxSizes).nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Task' })
export type Task = z.infer<typeof task>

export const taskSummary = task
  .pick({ id: true, key: true, title: true, status: true, priority: true, assignee: true })
  .meta({ id: 'TaskSummary' })
export type TaskSummary = z.infer<typeof taskSummary>

export const taskDependency = z
  .object({
    taskId,
    dependsOnTaskId: taskId,
    type: z.enum(['blocks', 'related']),
    createdAt: timestamp,
  })
  .meta({ id: 'TaskDependency' })
export type TaskDependency = z.infer<typeof taskDependency>

const linkedTask = taskSummary
  .extend({ type: z.enum(['blocks', 'related']).describe('Only `blocks` holds work up.'), createdAt: timestamp })
  .meta({ id: 'LinkedTask' })

export const taskDependencies = z
  .object({
    blockedBy: z.array(linkedTask).describe('What the task depends on.'),
    blocking: z.array(linkedTask).describe('What depends on the task.'),
  })
  .meta({ id: 'TaskDependencies' })
export type TaskDependencies = z.infer<typeof taskDependencies>

export const taskWatcher = z
  .object({
    subject: z.object({ type: z.enum(['user', 'agent']), id: z.string() }),
    addedBy: z.enum(['auto', 'manual']),
    origin: z
      .string()
      .nullable()
      .describe('`tsk_` or `cnv_` id: where an agent is woken when the task changes; null: it is not.'),
    createdAt: timestamp,
  })
  .meta({ id: 'TaskWatcher' })
export type TaskWatcher = z.infer<typeof taskWatcher>

const branch = z.string().min(1).max(255).refine(isBranchName, 'not a name of a branch')

export const title = z.string().trim().min(1).max(500).describe('What is to be done, in a line.')

/** Fields that may be written when a task is created and later. */
export const writable = {
  description: z.string().max(100_000).nullable().describe('Markdown; null clears.'),
  projectId: z.string().min(1).max(100).nullable().describe('The project: UUID or `prj_` id.'),
  goalId: z
    .string()
    .regex(/^goal_[0-9A-Za-z_-]{1,64}$/, 'must be a `goal_` id')
    .nullable()
    .describe('The goal it serves.'),
  priority: z.enum(taskPriorities).describe('How urgent it is.'),
  dueAt: timestampInput.nullable().describe('When it should be done.'),
  startAt: timestampInput.nullable().describe('The assignee is woken then; null: at once.'),
  branchName: branch.nullable().describe('Git branch; cannot change once it is set.'),
  repoId: z.string().min(1).max(100).nullable().describe('The repo to work in.'),
  baseBranch: branch.nullable().describe("Where the branch starts; null: the repo's default branch."),
  environment: z.enum(environments).nullable().describe("Where runs execute; null: the agent's choice."),
  harness: z.enum(harnessNames).nullable().describe('Harness of its runs; null: what the model needs.'),
  modelId: z.string().trim().min(1).max(200).nullable().describe("Model of its runs; null: the agent's."),
  reasoningEffort: z.enum(reasoningEfforts).nullable().describe("Effort of its runs; null: the agent's."),
  sandboxSize: z.enum(sandboxSizes).nullable().describe("Size of cloud runs; null: the agent's."),
} as const

/** The agent a task is assigned to: the object that replies hold, or just a reference. */
export const assigneeInput = z
  .union([z.object({ type: z.literal('agent'), id: agentRef }), agentRef])
  .nullable()
  .describe('The agent to do it: `agt_` id, @handle, name or UUID.')

const itemText = z.string().trim().min(1).max(2_000)
export const createFields = {
  title,
  ...z.object(writable).partial().shape,
  priority: writable.priority.default('normal'),
  parentTaskId: taskRef.nullable().optional().describe('The task it is a part of.'),
  assignee: assigneeInput.optional(),
  checklist: z
    .array(z.union([itemText, z.object({ text: itemText })]))
    .max(200)
    .optional()
    .describe('Items of its checklist.'),
  dependsOn: z.array(taskRef).max(50).optional().describe('Tasks that must be finished first.'),
  force: z.boolean().optional().describe('Create it although an open task looks like the same work.'),
} as const
export const taskCreate = z.object(createFields).meta({ id: 'TaskCreate' })
export type TaskCreate = z.infer<typeof taskCreate>

/** The reference names another task of the batch by its `ref` or its index from 0, or any existing task. */
const batchTaskRef = z.union([taskRef, z.number().int().min(0).max(99)])
export const batchItem = z
  .object({
    ...createFields,
    priority: writable.priority.optional(),
    ref: z.string().min(1).max(100).optional().describe('A name for it within the batch.'),
    parentTaskId: batchTaskRef.nullable().optional().describe('Also an earlier task of the batch: its `ref` or index.'),
    dependsOn: z.array(batchTaskRef).max(50).optional().describe('Also tasks of the batch: their `ref` or index.'),
  })
  .meta({ id: 'TaskBatchItem' })
export type BatchItem = z.infer<typeof batchItem>

export const batchDefaults = z
  .object({ ...createFields, priority: writable.priority, parentTaskId: taskRef.nullable() })
  .omit({ title: true, dependsOn: true, checklist: true })
  .partial()
  .meta({ id: 'TaskBatchDefaults' })
export type BatchDefaults = z.infer<typeof batchDefaults>
