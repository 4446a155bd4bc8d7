import type { ConversationId } from '../lib/ids.ts'
import { idIn } from '../lib/id-schema.ts'
import { z } from 'zod'
import { included, staged } from './approval-includes.ts'
import {
  approvalOutcomes,
  approvalScopes,
  approvalTriggers,
  gatedKinds,
  holdStatuses,
  storedGatedThing,
} from './approval-words.ts'
import {
  agentId,
  agentRef,
  approvalId,
  runId,
  runRef,
  taskId,
  taskRef,
  timestamp,
  userPublicId,
  workspaceUuid,
} from './ids.ts'
import { idPageParams } from './id-paging.ts'
import { listOf, includeParam } from './paging.ts'
import { defineRoute } from './route.ts'
import { workflowStepOfRun } from './workflow-fields.ts'

// Approvals: yes-or-no questions about one action, which hold it.

const byPersonOrSystem = z
  .object({ type: z.enum(['user', 'system']), id: userPublicId.nullable() })
  .meta({ id: 'PersonOrSystem' })

export const askingParty = z
  .object({
    type: z.enum(['agent', 'system']),
    id: agentId.nullable().describe('null for the system.'),
  })
  .meta({ id: 'AskingParty' })

const platformChangeDetails = z.object({
  method: z.string(),
  path: z.string(),
  body: z.unknown().describe('As it was sent, secrets masked. In lists null where it is longer than 20,000 bytes.'),
  source: z.string().describe('`cli`: the agent called `svc`; `api`: another client.'),
  commands: z
    .array(z.string())
    .describe(
      'The same as commands of `svc`, secrets masked and long values cut; none where `svc` has no flag for all of it.',
    ),
  expiresAt: timestamp,
  result: z
    .object({ status: z.number().int(), body: z.unknown() })
    .nullable()
    .describe('What the route answered when the change was approved, refusals too.'),
})

export const gatedThing = storedGatedThing
  .extend({
    platformChange: platformChangeDetails.optional().describe('The stored write of a `platform_change`.'),
  })
  .meta({ id: 'GatedThing' })
export type GatedThing = z.infer<typeof gatedThing>

export const approval = z
  .object({
    object: z.literal('approval'),
    id: approvalId,
    workspaceId: workspaceUuid,
    taskId: taskId.nullable(),
    sessionId: z.string().nullable(),
    runId: runId.nullable(),
    workflowStep: workflowStepOfRun
      .optional()
      .describe('The step of a workflow whose run asks; only then is it there.'),
    trigger: z.enum(approvalTriggers),
    status: z.enum(holdStatuses),
    prompt: z.string().describe('What is gated, secrets masked.'),
    gatedThing,
    requestedBy: askingParty,
    assignedTo: byPersonOrSystem
      .nullable()
      .describe('The one person who may resolve it; null: any person. `system`: the platform alone.'),
    result: z.object({ outcome: z.enum(approvalOutcomes), reason: z.string().nullable() }).nullable(),
    appliedScope: z.enum(approvalScopes).nullable(),
    resolvedBy: byPersonOrSystem.nullable(),
    resolvedAt: timestamp.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Approval' })
export type Approval = z.infer<typeof approval>

export const approvalSummary = approval.omit({ workspaceId: true, sessionId: true }).meta({ id: 'ApprovalSummary' })
export type ApprovalSummary = z.infer<typeof approvalSummary>

const params = z.object({ approvalId })
const positionals = [{ name: 'approval', target: 'params.approvalId' }] as const
const exampleId = 'apr_6tG4kV2zMxF8pL0w'
/** Commands that resolve the approvals of learnings; their flow finds the approval of the learning that is named. */
const ofLearnings = {
  positionals: [
    { name: 'learning', target: 'params.approvalId', description: 'A learning: `lrn_` id.', isOptional: true },
  ],
  flags: {
    note: { target: 'body.reason' },
    ids: { description: 'Several learnings: `lrn_` ids with commas between.' },
    'all-proposed-before': {
      description: 'All learnings that were filed before this date or time and are not reviewed.',
    },
  },
  flow: true,
} as const
const resolveErrors = [
  'approval_not_found',
  'approval_resolved',
  'approval_assignee_mismatch',
  'user_cannot_resolve_system_approval',
] as const
const exampleLearning = 'lrn_7vT2mX9qLbR4kD1s'
const reason = z.string().max(2000)

const statusFilter = z
  .enum([...holdStatuses, 'all'])
  .optional()
  .describe('`open`, `resolved` or `all`.')

const raisedThing = z.object({
  kind: z.enum(gatedKinds).optional().describe("Default: the trigger's own."),
  name: z.string().trim().min(1).max(200).optional().describe('What is to be done, in a word.'),
  inputDigest: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
    .optional()
    .describe('SHA-256 (hex) of the exact call; made from the rest when left out.'),
  safeSummary: z.string().max(2000).optional().describe('One line without secrets.'),
  scope: z.enum(approvalScopes).default('once'),
  toolArgs: z.record(z.string(), z.unknown()).optional().describe('Arguments, for a tool call.'),
  instructions: z
    .object({
      agentId: agentRef.default('me'),
      agentMd: z.string().max(262_144),
      agentMdHash: z.string().max(128).optional().describe('Hash of the AGENT.md you read.'),
    })
    .optional()
    .describe('The proposed AGENT.md, for `instruction_publish`.'),
})

const createBody = z
  .object({
    trigger: z.enum(approvalTriggers).default('connection_action').describe('What kind of gate it is.'),
    prompt: z.string().trim().min(1).max(20_000).describe('What the person is asked.'),
    gatedThing: raisedThing.optional(),
    taskId: taskRef.optional().describe("The task it is about; by default the run's."),
    runId: runRef.optional(),
    requestedBy: z
      .object({ type: z.enum(['agent', 'system']), id: z.string().max(100).nullable().optional() })
      .optional(),
  })
  .meta({ id: 'ApprovalCreate' })

export const approvalRoutes = {
  list: defineRoute({
    id: 'approvals.list',
    endpoint: 'GET /approvals',
    summary: 'List approvals, newest first',
    query: z.object({
      status: statusFilter,
      trigger: z.array(z.enum(approvalTriggers)).optional().describe('Only with one of these triggers.'),
      taskId: taskRef.optional(),
      runId: runRef.optional(),
      conversationId: idIn<ConversationId>(z.string().max(100))
        .optional()
        .describe('Only those whose run or task belongs to it.'),
      assignedToUserId: z.string().max(100).optional().describe('Only those assigned to this person (`usr_` id).'),
      ...idPageParams,
    }),
    reply: listOf(approvalSummary),
    errors: ['invalid_cursor'],
    cli: {
      command: 'approval list',
      flags: {
        status: { default: 'open' },
        task: { target: 'query.taskId' },
        run: { target: 'query.runId' },
        conversation: { target: 'query.conversationId' },
      },
      example: 'svc approval list --task current',
    },
  }),

  get: defineRoute({
    id: 'approvals.get',
    endpoint: 'GET /approvals/{approvalId}',
    summary: 'Read one approval',
    params,
    query: z.object({ include: includeParam('task', 'run', 'session', 'files') }),
    queryCodes: { invalid: { include: 'invalid_include' } },
    reply: approval.extend({ ...included, ...staged }),
    errors: ['approval_not_found', 'invalid_include'],
    cli: { command: 'approval get', positionals, example: `svc approval get ${exampleId} --include files` },
  }),

  create: defineRoute({
    id: 'approvals.create',
    endpoint: 'POST /approvals',
    summary: 'Ask a person to approve an action; the run stops and goes on when it is resolved',
    callers: { person: { refused: 'user_cannot_create_approval' }, agent: 'allowed' },
    idempotency: 'required',
    body: createBody,
    reply: z.object({ approval, sentinel: z.string().describe('Print it and stop.') }),
    status: 201,
    errors: [
      'user_cannot_create_approval',
      'platform_change_not_raisable',
      'run_not_found',
      'hitl_stop_failed',
      'author_must_be_self',
      'task_not_found',
    ],
    cli: {
      command: 'approval request',
      positionals: [
        {
          name: 'task',
          target: 'body.taskId',
          isOptional: true,
          description: 'The task it is about: a `tsk_` id or a key. Default: the one of the run.',
        },
      ],
      flags: {
        'run-id': null,
        description: { target: 'body.prompt' },
        type: { target: 'body.gatedThing.name', description: 'What is to be done, in a word.' },
      },
      example: 'svc approval request --type deploy --description "Deploy build 17 to production"',
    },
  }),

  approve: defineRoute({
    id: 'approvals.approve',
    endpoint: 'POST /approvals/{approvalId}/approve',
    summary: 'Approve: what was asked for is done, and the run that waits goes on',
    callers: { person: 'member', agent: { refused: 'agent_cannot_resolve_approval' } },
    idempotency: 'required',
    params,
    body: z.object({
      reason: reason.optional().describe('A note, kept with the approval.'),
      appliedScope: z
        .enum(approvalScopes)
        .optional()
        .describe('`always` also allows such calls from now on; for tool calls only.'),
    }),
    reply: approval,
    errors: [...resolveErrors, 'agent_md_stale'],
    cli: [
      {
        command: 'approval approve',
        positionals,
        flags: { note: { target: 'body.reason' }, 'applied-scope': { aliases: ['scope'] } },
        example: `svc approval approve ${exampleId} --note "go ahead"`,
      },
      {
        command: 'learning accept',
        shows: 'Learning',
        ...ofLearnings,
        flags: { ...ofLearnings.flags, 'applied-scope': null },
        example: `svc learning accept ${exampleLearning}`,
      },
    ],
  }),

  reject: defineRoute({
    id: 'approvals.reject',
    endpoint: 'POST /approvals/{approvalId}/reject',
    summary: 'Reject: nothing is done, and the run that waits goes on with your reason',
    callers: { person: 'member', agent: { refused: 'agent_cannot_resolve_approval' } },
    idempotency: 'required',
    params,
    body: z.object({ reason: reason.optional().describe('Why; the agent reads it.') }),
    reply: approval,
    errors: resolveErrors,
    cli: [
      {
        command: 'approval reject',
        positionals,
        flags: { note: { target: 'body.reason' } },
        example: `svc approval reject ${exampleId} --note "not before Monday"`,
      },
      {
        command: 'learning reject',
        shows: 'Learning',
        ...ofLearnings,
        example: `svc learning reject ${exampleLearning} --note "true only for the old build"`,
      },
    ],
  }),

  assign: defineRoute({
    id: 'approvals.assign',
    endpoint: 'POST /approvals/{approvalId}/assign',
    summary: 'Name the person who may resolve an approval (workspace admins)',
    callers: { person: 'member', agent: { refused: 'not_authorized' } },
    idempotency: 'required',
    params,
    body: z.object({
      assignedTo: z.object({
        type: z.literal('user').default('user'),
        id: z.string().min(1).max(100).describe('The person: `usr_` id or UUID.'),
      }),
      reason: z.string().trim().min(1).max(2000).describe('Why it is given to somebody else.'),
    }),
    reply: approval,
    errors: [
      'approval_not_found',
      'approval_resolved',
      'approval_not_user_assignable',
      'assignee_not_found',
      'not_authorized',
    ],
    cli: {
      command: 'approval assign',
      positionals,
      flags: { to: { target: 'body.assignedTo.id' } },
      example: `svc approval assign ${exampleId} --to usr_7aZ1qX5vNmG9kT3r --reason "on call this week"`,
    },
  }),
} as const
