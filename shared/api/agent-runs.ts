import { z } from 'zod'
import { exitReasonNames } from '../runs/exit-reasons.ts'
import { harnessNames } from '../runs/harnesses.ts'
import { reasoningEfforts } from '../runs/spec.ts'
import { agentParams, agentPositional, modelId } from './agents.ts'
import { approvalId, questionId, runId, taskRef } from './ids.ts'
import { defineRoute } from './route.ts'
import { fileFlag } from './command.ts'

/** The reasons for which a queued run waits. */
export const gateReasons = [
  'rate_limit',
  'capacity',
  'no_device',
  'task_locked',
  'no_ready_route',
  'pinned_route_not_ready',
  'governance_refused',
  'provider_overloaded',
] as const
export type GateReason = (typeof gateReasons)[number]

export const notDispatchedReasons = [
  'agent_inactive',
  'agent_tombstoned',
  'workspace_agents_paused',
  'budget_blocked',
  'timer_all_tasks_hitl_paused',
  'task_hitl_open',
  'task_blocked_dependency',
  'task_already_finished',
  'task_not_started',
  'task_unassigned',
  'folder_bind_failed',
  'route_gate_declined',
  'internal_error',
  'dispatch_build_failed',
] as const

export const startRunReply = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('queued'), runPublicId: runId }),
    z.object({ kind: z.literal('pending'), runPublicId: runId, gateReason: z.enum(gateReasons) }),
    z.object({ kind: z.literal('coalesced'), coalescedIntoRunPublicId: runId }),
    z.object({ kind: z.literal('declined'), runPublicId: runId, exitReason: z.enum(exitReasonNames) }),
    z.object({
      kind: z.literal('not_dispatched'),
      reason: z.enum(notDispatchedReasons),
      message: z.string(),
      blockedBy: z
        .object({ kind: z.enum(['approval', 'question']), id: z.union([approvalId, questionId]) })
        .optional()
        .describe('With reason `task_hitl_open`: what waits for a person.'),
    }),
  ])
  .meta({ id: 'StartRunReply' })
export type StartRunReply = z.infer<typeof startRunReply>

const maxSchemas = 16
const maxSchemaBytes = 64 * 1024

/** JSON Schemas (draft 2020-12) by name. */
export const jsonSchemas = z
  .record(
    z.string().regex(/^[A-Za-z][\w.-]{0,199}$/, 'must be 1 to 200 letters, digits, `.`, `-` and `_`, a letter first'),
    z.record(z.string(), z.unknown()),
  )
  .refine((schemas) => Object.keys(schemas).length <= maxSchemas, `at most ${maxSchemas} schemas`)
  .refine((schemas) => JSON.stringify(schemas).length <= maxSchemaBytes, `at most ${maxSchemaBytes} bytes`)
export type JsonSchemas = z.infer<typeof jsonSchemas>

const dropped = { target: null, hidden: true, dropped: true, description: 'Accepted and ignored.' } as const

export const agentRunRoutes = {
  start: defineRoute({
    id: 'agents.runs.start',
    endpoint: 'POST /agents/{agentId}/runs',
    aliases: { '/agents/{agentId}/wakeup': 'agents.wake' },
    summary: 'Wake an agent',
    description:
      'Always answers 200; `kind` says what became of the wake. A wake with an `idempotencyKey` that was used for this agent gets the first answer.',
    params: agentParams,
    body: z.object({
      taskId: taskRef.optional(),
      prompt: z.string().max(1_000_000).optional().describe('What the agent is asked to do.'),
      source: z.enum(['on_demand', 'assignment', 'mention']).default('on_demand').describe('Why it is woken.'),
      idempotencyKey: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe('A wake of this agent with the same key is not repeated.'),
      model: modelId.optional().describe('Model for this run alone.'),
      reasoningEffort: z.enum(reasoningEfforts).optional().describe('Reasoning effort for this run alone.'),
      harness: z
        .enum(harnessNames)
        .optional()
        .describe('Harness for this run alone. An agent that runs a command keeps it, and no other agent gets one.'),
      outputSchemas: jsonSchemas
        .optional()
        .describe('JSON Schemas by name: the output that the run records under one of these names must fit it.'),
    }),
    reply: startRunReply,
    errors: [
      'task_not_found',
      'credits_harness_unsupported',
      'credential_unbrokerable',
      'model_not_found',
      'reasoning_effort_unsupported',
      'harness_model_unsupported',
    ],
    cli: [
      {
        command: 'agent run',
        positionals: [agentPositional],
        flags: { model: dropped, effort: dropped, env: dropped, harness: null, 'reasoning-effort': null },
        example: 'svc agent run @builder --prompt "Fix the failing test"',
      },
      {
        command: 'run create',
        flags: {
          agent: { target: 'params.agentId', description: 'The agent to wake.' },
          prompt: {},
          'prompt-file': fileFlag('body.prompt', 'the prompt'),
          wait: {
            kind: 'number',
            bare: 300_000,
            description:
              'Wait for the end, this many milliseconds at most (300,000 without a number; up to 86,400,000).',
          },
          'reasoning-effort': { aliases: ['effort'] },
          env: dropped,
        },
        flow: true,
        example: 'svc run create --agent @builder --prompt "Fix the failing test" --wait',
      },
    ],
  }),
} as const
