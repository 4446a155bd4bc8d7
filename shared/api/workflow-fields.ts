import { z } from 'zod'
import { runStatuses } from '../runs/exit-reasons.ts'
import {
  agentId,
  approvalId,
  questionId,
  runId,
  taskId,
  timestamp,
  userPublicId,
  workflowId,
  workflowRunId,
} from './ids.ts'
import { inputKinds, stepStates, toolModes, workflowRunStatuses } from './workflow-words.ts'

// The records of workflows that clients read.

const agentOf = z.object({ id: agentId, name: z.string(), handle: z.string() }).meta({ id: 'AgentName' })

export const workflowInput = z
  .object({ key: z.string(), label: z.string(), kind: z.enum(inputKinds), required: z.boolean() })
  .meta({ id: 'WorkflowInput' })

const recordFields = {
  object: z.literal('workflow'),
  id: workflowId.nullable().describe('null: built in.'),
  name: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  inputs: z.array(workflowInput),
  toolPermissionMode: z.enum(toolModes).describe('Of its runs, unless a start says otherwise.'),
  source: z.string().describe('The program.'),
  version: z.number().int().nullable().describe('Starts at 1; each update adds 1. null: built in.'),
  author: agentOf.nullable().describe('The agent that wrote it; null: a person did.'),
  retiredAt: timestamp.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
}

export const workflow = z.object(recordFields).meta({ id: 'Workflow' })
export type Workflow = z.infer<typeof workflow>

export const workflowRow = z
  .object({
    ...recordFields,
    lastRun: z.object({ id: workflowRunId, status: z.enum(workflowRunStatuses), startedAt: timestamp }).nullable(),
    runCount: z.number().int(),
  })
  .meta({ id: 'WorkflowRow' })
export type WorkflowRow = z.infer<typeof workflowRow>

/** A program that comes with the server. */
export const workflowProgram = z
  .object({
    object: z.literal('workflow_program'),
    name: z.string(),
    title: z.string(),
    description: z.string().nullable(),
    inputs: z.array(workflowInput),
    toolPermissionMode: z.enum(toolModes),
  })
  .meta({ id: 'WorkflowProgram' })

export const workflowStep = z
  .object({
    stepOrdinal: z.number().int().describe('From 0.'),
    state: z.enum(stepStates),
    label: z.string().nullable(),
    phase: z.string().nullable(),
    run: z
      .object({
        id: runId,
        status: z.enum(runStatuses),
        error: z.string().nullable(),
        exitReason: z.string().nullable(),
      })
      .nullable()
      .describe('null: no run could be started; `error` says why.'),
    error: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .describe('The failure that the program is given; null: it has not ended, or came to a value.'),
    agent: agentOf.nullable(),
    resumeAttempts: z.number().int().describe('How often its result was sent again.'),
    pendingApproval: z.object({ id: approvalId, prompt: z.string() }).nullable(),
    gate: z
      .object({
        argv: z.array(z.string()),
        exitCode: z.number().int().nullable(),
        output: z.string().nullable(),
        cwd: z.string().nullable(),
        ranArgv: z.array(z.string()).nullable(),
      })
      .nullable()
      .describe('null: an agent step.'),
    dispatchedAt: timestamp,
    advancedAt: timestamp.nullable(),
  })
  .meta({ id: 'WorkflowStep' })
export type WorkflowStep = z.infer<typeof workflowStep>

/** A step with its workflow run, and with what it asks. */
export const workflowStepOfRun = z
  .object({
    workflowRunId,
    workflow: z.string().describe('The name of the workflow.'),
    step: z
      .number()
      .int()
      .nullable()
      .describe('From 0, as `stepOrdinal`; null: no step alone, as of what the program asks.'),
    label: z
      .string()
      .nullable()
      .describe('In lists null where the prompt of the step is longer than 16,000 characters.'),
    phase: z.string().nullable(),
    writtenBy: z
      .object({ type: z.enum(['user', 'agent']), id: z.union([userPublicId, agentId]) })
      .nullable()
      .describe('Who wrote the program that runs; null: it is built in, or a private agent wrote it.'),
  })
  .meta({ id: 'WorkflowStepOfRun' })
export type WorkflowStepOfRun = z.infer<typeof workflowStepOfRun>

const runFields = {
  object: z.literal('workflow_run'),
  id: workflowRunId,
  workflow: z.string().describe('The name of the workflow.'),
  status: z.enum(workflowRunStatuses),
  input: z.record(z.string(), z.unknown()),
  summary: z.string().nullable().describe('What the program returned, or why it failed.'),
  error: z
    .object({ message: z.string(), line: z.number().int().nullable(), column: z.number().int().nullable() })
    .meta({ id: 'WorkflowError' })
    .nullable()
    .describe('Why it failed, and where in the program.'),
  toolPermissionMode: z.enum(toolModes),
  parkedQuestion: z
    .object({
      id: questionId,
      prompt: z.string(),
      options: z.array(z.object({ key: z.string(), label: z.string() })).nullable(),
      askedAt: timestamp,
    })
    .meta({ id: 'ParkedQuestion' })
    .nullable()
    .describe('The open question that it waits for.'),
  parkedChecks: z
    .object({
      branch: z.string(),
      deadlineAt: timestamp,
      checks: z.array(z.object({ name: z.string(), status: z.string(), url: z.string().nullable() })),
    })
    .meta({ id: 'ParkedChecks' })
    .nullable()
    .describe('The checks that it waits for.'),
  log: z.array(z.string()).describe('The last lines that the program logged.'),
  startedAt: timestamp,
  completedAt: timestamp.nullable().describe('null while it is running or stalled.'),
}

export const workflowRun = z
  .object({
    ...runFields,
    task: z.object({ id: taskId, title: z.string() }).nullable(),
    steps: z.array(workflowStep).describe('One for each dispatched step, in their order.'),
  })
  .meta({ id: 'WorkflowRun' })
export type WorkflowRun = z.infer<typeof workflowRun>

export const startedWorkflowRun = z
  .object({ ...runFields, taskId: taskId.nullable() })
  .meta({ id: 'StartedWorkflowRun' })
export type StartedWorkflowRun = z.infer<typeof startedWorkflowRun>
