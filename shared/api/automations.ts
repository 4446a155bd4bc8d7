import { runStatuses } from '../runs/exit-reasons.ts'
import { z } from 'zod'
import {
  automation,
  automationFire,
  automationSkip,
  automationStatuses,
  concurrencyPolicies,
  githubEvents,
  triggerTypes,
} from './automation-fields.ts'
import { environments, modelId } from './agents.ts'
import { agentRef, automationId } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute, mebibyte, rawBody } from './route.ts'
import { run } from './runs.ts'
import { fileFlag } from './command.ts'

// Automations start runs by a schedule, by a git event or by a call from outside.

/** `type` may be left out when the other keys determine it. */
const triggerBody = z
  .object({
    type: z.enum(triggerTypes).optional().describe('`schedule`, `github` or `webhook`; the other keys determine it.'),
    cron: z
      .string()
      .trim()
      .max(200)
      .regex(/^\S+(\s+\S+){4}$/, 'must be five fields with spaces between, such as `0 3 * * *`')
      .optional()
      .describe('When: minute, hour, day of month, month, day of week.'),
    timezone: z.string().min(1).max(100).optional().describe('IANA time zone of the cron fields; default UTC.'),
    event: z.enum(githubEvents).optional().describe('Which git event.'),
    repo: z
      .string()
      .max(140)
      .regex(/^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})\/[A-Za-z0-9._-]{1,100}$/, 'must be owner/name')
      .toLowerCase()
      .optional()
      .describe('Repository of the git events: owner/name.'),
  })
  .meta({ id: 'AutomationTriggerInput' })
export type TriggerBody = z.output<typeof triggerBody>

const fields = {
  name: z.string().trim().min(1).max(200).describe('Name.'),
  description: z.string().max(100_000).nullable().describe('Markdown.'),
  prompt: z.string().min(1).max(100_000).describe('Prompt of the run that a fire starts.'),
  workflow: z
    .string()
    .regex(/^[a-z0-9_]{1,64}$/, 'must be 1 to 64 lower-case letters, digits and underscores')
    .nullable()
    .describe('Workflow that a git event starts instead of a run.'),
  agentId: agentRef,
  modelId: modelId.nullable().describe("Model; null: the agent's."),
  environment: z.enum(environments).nullable().describe("Where its runs work; null: the agent's choice."),
  concurrencyPolicy: z
    .enum(concurrencyPolicies)
    .describe('Default: skip_if_running for a schedule, allow_concurrent for the others.'),
}

const createBody = z
  .object({ ...fields, trigger: triggerBody })
  .partial({ description: true, workflow: true, modelId: true, environment: true, concurrencyPolicy: true })
  .meta({ id: 'AutomationCreate' })

const updateBody = z
  .strictObject({
    ...fields,
    status: z.enum(automationStatuses).describe('New status; any may follow any other.'),
    trigger: triggerBody,
  })
  .partial()
  .meta({ id: 'AutomationUpdate' })

const params = z.object({ automationId })
const positionals = [{ name: 'automation', target: 'params.automationId' }] as const
const exampleId = 'aut_2xC6vB9nMq4WsE8r'

const triggerFlags = {
  trigger: { target: 'body.trigger.type' },
  cron: { target: 'body.trigger.cron' },
  tz: { target: 'body.trigger.timezone', aliases: ['timezone'] },
  event: { target: 'body.trigger.event' },
  repo: { target: 'body.trigger.repo' },
} as const
const promptFile = { ...fileFlag('body.prompt', 'the prompt'), required: false } as const
const pageFlags = { after: { aliases: ['cursor'] } } as const
const runsQuery = z.object({
  status: z.array(z.enum(runStatuses)).optional().describe('Only runs with one of these.'),
  ...pageParams,
})

const one = { params, errors: ['automation_not_found'] } as const

/** A change of the status that needs no body. */
const move = (verb: 'pause' | 'resume' | 'archive' | 'unarchive', summary: string) =>
  defineRoute({
    id: `automations.${verb}`,
    endpoint: `POST /automations/{automationId}/${verb}`,
    summary,
    params,
    reply: automation,
    errors: ['automation_not_found', 'invalid_status_transition'],
    cli: { command: `automation ${verb}`, positionals, example: `svc automation ${verb} ${exampleId}` },
  })

export const automationRoutes = {
  create: defineRoute({
    id: 'automations.create',
    endpoint: 'POST /automations',
    summary: 'Create an automation: runs by schedule, git event or webhook',
    // The answer holds the URL of a webhook.
    isSecret: true,
    body: createBody,
    reply: automation,
    status: 201,
    errors: ['agent_not_found', 'github_not_installed', 'workflow_needs_github_trigger'],
    cli: {
      command: 'automation create',
      flags: {
        ...triggerFlags,
        agent: { target: 'body.agentId', aliases: ['agent-id'] },
        prompt: { required: false },
        'prompt-file': promptFile,
      },
      example:
        'svc automation create --name Nightly --cron "0 3 * * *" --tz Europe/Berlin --agent me --prompt "Update"',
    },
  }),

  list: defineRoute({
    id: 'automations.list',
    endpoint: 'GET /automations',
    summary: 'List automations, newest first',
    query: z.object({
      status: z.array(z.enum(automationStatuses)).optional().describe('Only those with one of these.'),
      agentId: agentRef.optional().describe('Only those that wake this agent.'),
      q: z.string().max(100).optional().describe('Text in the name or the description.'),
      ...pageParams,
    }),
    reply: listOf(automation),
    cli: {
      command: 'automation list',
      flags: { ...pageFlags, 'agent-id': { aliases: ['agent'] } },
      example: 'svc automation list --status active',
    },
  }),

  allRuns: defineRoute({
    id: 'automations.runs.all',
    endpoint: 'GET /automations/runs',
    summary: 'List the runs that automations started, newest first',
    query: runsQuery,
    reply: listOf(run),
    cli: { command: 'automation all-runs', flags: pageFlags, example: 'svc automation all-runs --status failed' },
  }),

  get: defineRoute({
    id: 'automations.get',
    endpoint: 'GET /automations/{automationId}',
    summary: 'Read one automation',
    ...one,
    reply: automation,
    cli: { command: 'automation get', positionals, example: `svc automation get ${exampleId}` },
  }),

  update: defineRoute({
    id: 'automations.update',
    endpoint: 'POST /automations/{automationId}',
    summary: 'Change an automation; a new trigger replaces the old one entirely',
    // The answer holds the URL of a webhook.
    isSecret: true,
    params,
    body: updateBody,
    reply: automation,
    errors: ['automation_not_found', 'agent_not_found', 'github_not_installed', 'workflow_needs_github_trigger'],
    cli: {
      command: 'automation update',
      positionals,
      flags: {
        ...triggerFlags,
        agent: { target: 'body.agentId', aliases: ['agent-id'] },
        prompt: {},
        'prompt-file': promptFile,
      },
      example: `svc automation update ${exampleId} --status paused`,
    },
  }),

  pause: move('pause', 'Pause an automation: its fires are skipped'),
  resume: move('resume', 'Let a paused or archived automation fire again'),
  archive: move('archive', 'Archive an automation; it is never deleted'),
  unarchive: move('unarchive', 'Bring an archived automation back'),

  rotate: defineRoute({
    id: 'automations.rotate',
    endpoint: 'POST /automations/{automationId}/rotate',
    summary: 'Give a webhook automation a new secret URL; the old one stops at once',
    // The answer holds the URL of a webhook.
    isSecret: true,
    params,
    reply: automation,
    errors: ['automation_not_found', 'not_a_webhook_trigger'],
    cli: { command: 'automation rotate', positionals, example: `svc automation rotate ${exampleId}` },
  }),

  run: defineRoute({
    id: 'automations.run',
    endpoint: 'POST /automations/{automationId}/run',
    summary: 'Fire an automation once, now',
    params,
    reply: automationFire,
    errors: ['automation_not_found', 'workflow_needs_github_event'],
    cli: { command: 'automation run', positionals, example: `svc automation run ${exampleId}` },
  }),

  runs: defineRoute({
    id: 'automations.runs.list',
    endpoint: 'GET /automations/{automationId}/runs',
    summary: 'List the runs that an automation started, newest first',
    ...one,
    query: runsQuery,
    reply: listOf(run),
    cli: { command: 'automation runs', positionals, flags: pageFlags, example: `svc automation runs ${exampleId}` },
  }),

  skips: defineRoute({
    id: 'automations.skips.list',
    endpoint: 'GET /automations/{automationId}/skips',
    summary: 'List the fires of an automation that started no run, newest first',
    ...one,
    query: z.object(pageParams),
    reply: listOf(automationSkip),
    cli: { command: 'automation skips', positionals, flags: pageFlags, example: `svc automation skips ${exampleId}` },
  }),

  hook: defineRoute({
    id: 'automationHooks.fire',
    endpoint: 'POST /automation-hooks/{token}',
    summary: 'Fire a webhook automation by its secret URL',
    description:
      'The body, of any kind, becomes part of the prompt (its first 32 KiB). The same body sent again within 24 hours gets the run that the first one started; a call without a body always fires. Each automation takes 60 calls an hour.',
    callers: 'none',
    idempotency: 'none',
    bodyLimit: mebibyte,
    params: z.object({ token: z.string().describe('The last segment of `webhookUrl`.') }),
    body: rawBody,
    reply: automationFire,
    status: 202,
    // The handler chooses its transactions: the record of a refused call must stay.
    transaction: false,
    errors: one.errors,
    cli: {
      command: 'automation hook',
      positionals: [{ name: 'token', target: 'params.token' }],
      flags: {
        body: { description: 'The body to send, as text.' },
        'body-file': { description: 'File with the body (`-`: standard input).' },
      },
      flow: true,
      example: 'svc automation hook 8fK2mQ0xPzL4tR7v... --body "deploy of main is done"',
    },
  }),
} as const
