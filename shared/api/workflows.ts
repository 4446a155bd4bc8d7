import { z } from 'zod'
import { fileFlag } from './command.ts'
import { taskRef, workflowRunId } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { refersTo } from './references.ts'
import { defineRoute } from './route.ts'
import { startedWorkflowRun, workflow, workflowProgram, workflowRow, workflowRun } from './workflow-fields.ts'
import { flawCodes, maxSourceChars, toolModes, workflowRunStatuses } from './workflow-words.ts'

// Workflows: stored programs that lead agents, and their runs.

const workflowRef = refersTo(
  z.string().min(1).max(200).describe('The name of the workflow.'),
  'workflow',
  'the name of a workflow',
)

const params = z.object({ name: workflowRef })
const positionals = [{ name: 'name', target: 'params.name', description: 'The name of a workflow.' }] as const
const runParams = z.object({ workflowRunId })
const runPositionals = [{ name: 'workflow-run', target: 'params.workflowRunId' }] as const
const exampleRun = 'flr_9mZ2pL5yRd7Vf0Jg'

const source = z.string().min(1).max(maxSourceChars).describe('The program (docs/workflows.md).')
const file = fileFlag('body.source', 'the program')
const details = 'A refused program is named by its code; `details` has its `line` and `column`, from 1.'

export const workflowRoutes = {
  start: defineRoute({
    id: 'workflows.runs.start',
    endpoint: 'POST /workflows/runs',
    summary: 'Start a workflow',
    body: z
      .object({
        workflow: workflowRef,
        input: z
          .record(z.string().max(200), z.unknown())
          .optional()
          .describe('Its inputs by key; `taskRef` names the task, too.'),
        taskId: taskRef.nullable().optional(),
        toolPermissionMode: z
          .enum(toolModes)
          .nullable()
          .optional()
          .describe("Of its steps; null: the workflow's own. It never loosens an agent's."),
      })
      .meta({ id: 'WorkflowStart' }),
    reply: startedWorkflowRun,
    status: 201,
    errors: ['resource_not_found', 'workflows_not_configured'],
    cli: {
      command: 'workflow start',
      positionals: [{ name: 'name', target: 'body.workflow', description: 'The name of a workflow.' }],
      flags: {
        input: { target: null, repeatable: true, description: 'An input, as key=value.' },
        wait: {
          target: null,
          kind: 'number',
          bare: 300_000,
          description:
            'Watch it to its end, this many milliseconds at most (300,000 without a number; up to 86,400,000).',
        },
        mode: { target: 'body.toolPermissionMode' },
        task: { target: 'body.taskId' },
      },
      flow: true,
      example: 'svc workflow start review --input branch=main --task WEB-12',
    },
  }),

  runs: defineRoute({
    id: 'workflows.runs.list',
    endpoint: 'GET /workflows/runs',
    summary: 'List runs of workflows, newest first',
    query: z.object({
      status: z.enum(workflowRunStatuses).optional().describe('Only those with this status.'),
      workflow: refersTo(z.string().max(200), 'workflow', 'the name of a workflow')
        .optional()
        .describe('Only those of the workflow with this name.'),
      ...pageParams,
    }),
    reply: listOf(workflowRun),
    cli: {
      command: 'workflow runs list',
      flags: { after: { aliases: ['cursor'] } },
      example: 'svc workflow runs list --status running',
    },
  }),

  run: defineRoute({
    id: 'workflows.runs.get',
    endpoint: 'GET /workflows/runs/{workflowRunId}',
    summary: 'Read one run of a workflow with its steps',
    params: runParams,
    reply: workflowRun,
    cli: {
      command: 'workflow runs get',
      positionals: runPositionals,
      example: `svc workflow runs get ${exampleRun}`,
    },
  }),

  cancel: defineRoute({
    id: 'workflows.runs.cancel',
    endpoint: 'POST /workflows/runs/{workflowRunId}/cancel',
    summary: 'Cancel a run of a workflow, and what is open of it',
    params: runParams,
    reply: workflowRun,
    errors: ['invalid_status_transition'],
    cli: {
      command: 'workflow runs cancel',
      positionals: runPositionals,
      example: `svc workflow runs cancel ${exampleRun}`,
    },
  }),

  catalog: defineRoute({
    id: 'workflows.catalog',
    endpoint: 'GET /workflows/catalog',
    summary: 'List the built-in programs and their inputs',
    reply: z.object({ object: z.literal('list'), data: z.array(workflowProgram) }),
    errors: ['workflows_not_configured', 'workflows_catalog_unavailable'],
    cli: { command: 'workflow catalog', example: 'svc workflow catalog' },
  }),

  source: defineRoute({
    id: 'workflows.source',
    endpoint: 'GET /workflows/source',
    summary: 'Read the source of a built-in program',
    query: z.object({ workflow: z.string().min(1).max(200).describe('The name of the program.') }),
    reply: z.object({ object: z.literal('workflow_source'), name: z.string(), source: z.string() }).meta({
      id: 'WorkflowSource',
    }),
    errors: ['resource_not_found', 'workflows_not_configured', 'workflow_source_unavailable'],
    cli: {
      command: 'workflow source',
      positionals: [{ name: 'name', target: 'query.workflow' }],
      print: { stdout: 'source' },
      example: 'svc workflow source implement_and_review',
    },
  }),

  list: defineRoute({
    id: 'workflows.records.list',
    endpoint: 'GET /workflows/records',
    summary: 'List the workflows of the workspace and the built-in ones by name, with their last runs',
    query: z.object(pageParams),
    reply: listOf(workflowRow),
    cli: {
      command: 'workflow list',
      flags: { after: { aliases: ['cursor'] } },
      example: 'svc workflow list',
    },
  }),

  create: defineRoute({
    id: 'workflows.records.create',
    endpoint: 'POST /workflows/records',
    summary: 'Store a workflow; its name comes from the `meta` of the program',
    description: details,
    body: z.object({ source }).meta({ id: 'WorkflowCreate' }),
    reply: workflow,
    status: 201,
    errors: ['workflow_name_taken', 'workflows_not_configured', ...flawCodes],
    cli: {
      command: 'workflow create',
      flags: { file },
      example: 'svc workflow create --file - < review.js',
    },
  }),

  get: defineRoute({
    id: 'workflows.records.get',
    endpoint: 'GET /workflows/records/{name}',
    summary: 'Read one workflow with its program',
    params,
    reply: workflow,
    cli: { command: 'workflow get', positionals, example: 'svc workflow get review' },
  }),

  update: defineRoute({
    id: 'workflows.records.update',
    endpoint: 'PATCH /workflows/records/{name}',
    summary: 'Replace the program of a workflow; runs in progress keep the old one',
    description: `${details} An agent changes only what it wrote.`,
    params,
    body: z.object({ source }).meta({ id: 'WorkflowUpdate' }),
    reply: workflow,
    errors: ['workflow_name_mismatch', 'workflows_not_configured', ...flawCodes],
    cli: {
      command: 'workflow update',
      positionals,
      flags: { file },
      example: 'svc workflow update review --file - < review.js',
    },
  }),

  retire: defineRoute({
    id: 'workflows.records.retire',
    endpoint: 'DELETE /workflows/records/{name}',
    summary: 'Retire a workflow: it starts no more, runs in progress go on',
    description: 'An agent retires only what it wrote. Retiring again answers the same.',
    params,
    reply: workflow,
    cli: { command: 'workflow delete', positionals, example: 'svc workflow delete review' },
  }),
} as const
