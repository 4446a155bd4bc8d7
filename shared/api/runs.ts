import { z } from 'zod'
import { exitReasonNames, runStatuses } from '../runs/exit-reasons.ts'
import { harnessNames } from '../runs/harnesses.ts'
import { reasoningEfforts } from '../runs/spec.ts'
import { gateReasons } from './agent-runs.ts'
import { sandboxSizes } from './agents.ts'
import {
  agentId,
  agentRef,
  approvalId,
  conversationId,
  questionId,
  runId,
  runRef,
  taskRef,
  timestamp,
  timestampInput,
} from './ids.ts'
import { idsParam, listOrBatchOf, pageParams, includeParam } from './paging.ts'
import { defineRoute } from './route.ts'
import { runEvent } from './run-events.ts'
import { workflowStepOfRun } from './workflow-fields.ts'

export const triggerSources = [
  'assignment',
  'mention',
  'channel_message',
  'fan_in',
  'dependency_resolved',
  'task_watched',
  'approval_resolved',
  'webhook',
  'cron',
  'workflow_step',
  'agent_request',
  'manual',
  'heartbeat',
  'unknown',
] as const
export type TriggerSource = (typeof triggerSources)[number]

export const runEnvironment = z
  .object({
    id: z.string(),
    type: z.enum(['cloud', 'device']),
    cwd: z.enum(['home', 'sandbox-root', 'repo-root']),
    deviceName: z.string().nullable(),
    deviceId: z.string().nullable(),
    deviceLiveness: z.enum(['connected', 'disconnected', 'retired']).nullable(),
  })
  .meta({ id: 'RunEnvironment' })

export const run = z
  .object({
    object: z.literal('run'),
    id: runId,
    status: z.enum(runStatuses),
    agent: z.object({ id: agentId, handle: z.string(), name: z.string() }).nullable(),
    task: z.object({ id: z.string().describe('The task key.'), title: z.string() }).nullable(),
    triggerSource: z.enum(triggerSources),
    errorCode: z.string().nullable(),
    gateReason: z.enum(gateReasons).nullable().describe('Why a queued run waits.'),
    gateDescription: z.string().nullable(),
    waitingOn: z
      .object({
        kind: z.enum(['approval', 'question']),
        id: z.union([approvalId, questionId]),
        label: z.string(),
        since: timestamp,
      })
      .meta({ id: 'RunWaitingOn' })
      .nullable(),
    harness: z
      .object({
        id: z.enum(harnessNames),
        version: z
          .string()
          .optional()
          .describe('Of its program, once the run has ended; only where the device told it.'),
      })
      .meta({ id: 'RunHarness' }),
    environment: runEnvironment.nullable(),
    costUsd: z.string().nullable().describe('Decimal; null when not measured.'),
    workflowStep: workflowStepOfRun.optional().describe('The step of a workflow that it does; only then is it there.'),
    promptStart: z
      .string()
      .optional()
      .describe(
        'The first words of its prompt, at most 200 characters; only of a run without a task or a step, and where its prompt has words.',
      ),
    createdAt: timestamp,
    startedAt: timestamp.nullable(),
    completedAt: timestamp.nullable(),
  })
  .meta({ id: 'Run' })
export type Run = z.infer<typeof run>

const sinceAsked = z.number().nullable()
/** The steps of a run; null: it has not come to that step, has none, or nobody said when. */
export const runTimings = z
  .object({
    offeredMs: sinceAsked.describe('A device or sandbox was offered it, the last time.'),
    claimedMs: sinceAsked.describe('It was taken there.'),
    wallMs: sinceAsked.describe('The wall around it stood ready.'),
    baseMs: sinceAsked.describe('The state of its folder was recorded.'),
    launchedMs: sinceAsked.describe('The harness was launched.'),
    firstOutputMs: sinceAsked.describe('The harness printed something.'),
    endedMs: sinceAsked.describe('The harness was gone.'),
    reportedMs: sinceAsked.describe('The device reported the end.'),
    storedMs: sinceAsked.describe('The end was written down.'),
    hostCpuMs: z.number().nullable().describe('Processor time of the run host, without the harness.'),
  })
  .meta({ id: 'RunTimings' })
export type RunTimings = z.infer<typeof runTimings>

export const runDetail = run
  .extend({
    sandbox: z
      .object({
        id: z.string(),
        size: z.enum(sandboxSizes),
        image: z
          .string()
          .nullable()
          .describe('By the digest or id that the engine has of it; null: it is not made yet.'),
      })
      .nullable()
      .describe('Where a run of the cloud is, or was, executed; null before it has one, and on a device.'),
    exitReason: z.enum(exitReasonNames).nullable(),
    errorMessage: z.string().nullable(),
    parentRunId: runId.nullable(),
    successorRunId: runId.nullable(),
    conversationId: conversationId.nullable(),
    effectiveSettings: z
      .object({
        modelId: z.string().nullable(),
        accessMode: z.enum(['credits', 'byok', 'subscription']),
        providerKeyId: z.string().nullable(),
        reasoningEffort: z.enum(reasoningEfforts).nullable(),
        mode: z.enum(['agent_default', 'plan', 'ask', 'full']),
      })
      .nullable()
      .describe('null when the run has no session.'),
    toolCallCount: z.number().int().nullable(),
    terminalAt: timestamp.nullable(),
    timings: runTimings.describe(
      'Milliseconds from `createdAt` to each step. Those of the device are there once it has reported the end.',
    ),
    latestEvents: z.array(runEvent).optional().describe('With `expand[]=latestEvents`: the last 20, oldest first.'),
    transcriptRead: z
      .object({
        finalAnswer: z
          .string()
          .nullable()
          .describe('What the agent said last, or what it asked where it stopped to ask; null before it did.'),
        isError: z.boolean(),
        eventCount: z.number().int(),
      })
      .optional()
      .describe('With `expand[]=transcriptRead`.'),
  })
  .meta({ id: 'RunDetail' })
export type RunDetail = z.infer<typeof runDetail>

export const runParams = z.object({ runId: runRef })
export const runPositional = { name: 'run', target: 'params.runId' } as const
const reasonBody = z.object({ reason: z.string().max(2000).optional().describe('Why; kept with the run.') })

export const runRoutes = {
  list: defineRoute({
    id: 'runs.list',
    endpoint: 'GET /runs',
    summary: 'List runs, newest first, or read several by `ids`',
    query: z.object({
      ids: idsParam,
      agent: agentRef.optional(),
      task: taskRef.optional(),
      status: z.array(z.enum(runStatuses)).optional().describe('Only runs with one of these.'),
      triggerSource: z.array(z.enum(triggerSources)).optional().describe('Only runs with one of these sources.'),
      since: timestampInput.optional().describe('Created at this time or later.'),
      until: timestampInput.optional().describe('Created before this time.'),
      ...pageParams,
    }),
    queryCodes: { refuse: { expand: 'expand.not_allowed_on_list' } },
    reply: listOrBatchOf(run),
    errors: ['expand.not_allowed_on_list'],
    cli: { command: 'run list', example: 'svc run list --agent @builder --status running' },
  }),

  get: defineRoute({
    id: 'runs.get',
    endpoint: 'GET /runs/{runId}',
    summary: 'Read one run',
    params: runParams,
    query: z.object({ expand: includeParam('latestEvents', 'transcriptRead') }),
    queryCodes: { invalid: { expand: 'expand_unknown' } },
    reply: runDetail,
    errors: ['expand_unknown'],
    cli: [
      {
        command: 'run get',
        positionals: [{ ...runPositional, variadic: true }],
        batch: 'runs.list',
        example: 'svc run get current --expand latestEvents',
      },
      {
        command: 'run read',
        positionals: [runPositional],
        flags: {
          expand: null,
          full: { kind: 'boolean', description: 'Print the transcript instead of the final answer.' },
        },
        flow: true,
        example: 'svc run read run_3nB7cW1yHsD5jK9q',
      },
    ],
  }),

  cancel: defineRoute({
    id: 'runs.cancel',
    endpoint: 'POST /runs/{runId}/cancel',
    summary: 'Cancel a live run',
    params: runParams,
    body: reasonBody,
    reply: runDetail,
    errors: ['run.not_cancellable', 'run.cancel_forbidden'],
    cli: {
      command: 'run cancel',
      positionals: [runPositional],
      flags: { force: { kind: 'boolean', description: 'Cancel even if the run waits for a person.' } },
      flow: true,
      example: 'svc run cancel run_3nB7cW1yHsD5jK9q --reason "wrong branch"',
    },
  }),

  retry: defineRoute({
    id: 'runs.retry',
    endpoint: 'POST /runs/{runId}/retry',
    summary: 'Wake the agent again for a failed or cancelled run',
    params: runParams,
    body: reasonBody,
    reply: z.object({ runId: runId.describe('The new run; its parentRunId names the old one.') }),
    errors: ['run.not_retriable', 'run.cancel_forbidden', 'credits_harness_unsupported', 'credential_unbrokerable'],
    cli: {
      command: 'run retry',
      positionals: [runPositional],
      flags: { force: { kind: 'boolean', description: 'Retry even while an earlier retry runs.' } },
      flow: true,
      example: 'svc run retry run_3nB7cW1yHsD5jK9q',
    },
  }),
} as const
