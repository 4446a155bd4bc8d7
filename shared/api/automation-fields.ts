import { z } from 'zod'
import { runStatuses } from '../runs/exit-reasons.ts'
import { environments } from './agents.ts'
import { agentId, automationId, runId, timestamp, workflowRunId, workspaceUuid } from './ids.ts'

// The words of automations, and the records that clients read.

export const automationStatuses = ['active', 'paused', 'archived'] as const
export type AutomationStatus = (typeof automationStatuses)[number]
export const triggerTypes = ['schedule', 'github', 'webhook'] as const
export type TriggerType = (typeof triggerTypes)[number]
export const githubEvents = ['pull_request.merged', 'pull_request.checks_passed'] as const
export type GithubEvent = (typeof githubEvents)[number]
export const concurrencyPolicies = ['skip_if_running', 'allow_concurrent'] as const
export type ConcurrencyPolicy = (typeof concurrencyPolicies)[number]

/**
 * The reasons for which a fire started no run. `not_admitted`: the agent could not be woken, or the event lacks an input that the workflow
 * needs. `workflow_unavailable`: the workflow that it names is not there or retired, or this server runs none.
 */
export const fireSkipReasons = [
  'rate_limited',
  'concurrency',
  'paused',
  'archived',
  'stale_head',
  'verdict_exists',
  'carried',
  'not_admitted',
  'workflow_unavailable',
] as const
export type SkipReason = (typeof fireSkipReasons)[number]

export const automationTrigger = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('schedule'), cron: z.string(), timezone: z.string() }),
    z.object({ type: z.literal('github'), event: z.enum(githubEvents), repo: z.string() }),
    z.object({ type: z.literal('webhook') }),
  ])
  .meta({ id: 'AutomationTrigger' })
export type AutomationTrigger = z.infer<typeof automationTrigger>

export const automation = z
  .object({
    object: z.literal('automation'),
    id: automationId,
    workspaceId: workspaceUuid,
    projectId: z.string().nullable(),
    name: z.string(),
    description: z.string().nullable(),
    status: z.enum(automationStatuses),
    trigger: automationTrigger,
    prompt: z.string(),
    workflow: z.string().nullable().describe('Workflow that a git event starts instead of a run.'),
    agentId,
    modelId: z.string().nullable().describe("null: the agent's."),
    environment: z.enum(environments).nullable().describe("null: the agent's."),
    concurrencyPolicy: z.enum(concurrencyPolicies),
    createdBy: z.object({ type: z.enum(['user', 'agent', 'system']), id: z.string().nullable() }),
    lastRun: z
      .object({
        id: runId,
        status: z.enum(runStatuses),
        startedAt: timestamp.describe('When it fired.'),
        workflowRunId: workflowRunId
          .nullable()
          .describe('The workflow run that it started: `id` is then the run of its last step, `status` its own.'),
      })
      .nullable(),
    nextRunAt: timestamp
      .nullable()
      .describe('When its schedule fires next; null without one, and while it is not active.'),
    archivedAt: timestamp.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
    webhookUrl: z
      .string()
      .optional()
      .describe('Secret; only in the answer that made it (create, rotate, a switch of the trigger to webhook).'),
  })
  .meta({ id: 'Automation' })
export type Automation = z.infer<typeof automation>

export const automationFire = z
  .discriminatedUnion('kind', [
    z.object({
      object: z.literal('automation_fire'),
      kind: z.literal('triggered'),
      runId: runId.nullable().describe('null when no run was admitted.'),
    }),
    z.object({
      object: z.literal('automation_fire'),
      kind: z.literal('skipped'),
      reason: z.enum(['concurrency', 'not_active']),
      runId: z.null(),
    }),
  ])
  .meta({ id: 'AutomationFire' })
export type AutomationFire = z.infer<typeof automationFire>

export const automationSkip = z
  .object({
    object: z.literal('automation_skip'),
    id: z.string(),
    automationId,
    reason: z.enum(fireSkipReasons),
    message: z.string().nullable().describe('What a person should know about it.'),
    createdAt: timestamp,
  })
  .meta({ id: 'AutomationSkip' })
export type AutomationSkip = z.infer<typeof automationSkip>
