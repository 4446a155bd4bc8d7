import { z } from 'zod'
import { runId, timestamp, timestampInput } from './ids.ts'
import { defineRoute } from './route.ts'
import { runParams, runPositional } from './runs.ts'

// What runs cost: money as the harness told it, or by the prices of its model, tokens, and time.

const tokens = z.number().int().describe('0 where no harness told any.')
const spent = {
  inputTokens: tokens,
  outputTokens: tokens,
  cacheReadTokens: tokens,
  cacheWriteTokens: tokens,
  durationMs: z.number().int().describe('From the start of each run to its end, or until now.'),
}

const costSums = {
  runs: z.number().int(),
  runsWithoutCost: z
    .number()
    .int()
    .describe('Of these nobody knows what they cost: they are missing in `costUsd`, and are not free.'),
  costUsd: z.string().nullable().describe('Decimal; null: of no run is it known.'),
  ...spent,
}

export const cost = z
  .object({
    id: z
      .string()
      .nullable()
      .describe('Id of the agent or task, UUID of the project, or the day (`2026-03-14`); null: runs without one.'),
    name: z.string().describe('As people read it: handle, key and title, or name.'),
    ...costSums,
  })
  .meta({ id: 'Cost' })
export type Cost = z.infer<typeof cost>

export const runCost = z
  .object({
    runId,
    costUsd: z.string().nullable().describe('Decimal; null: nobody knows it, which does not mean that it was free.'),
    model: z.string().nullable().describe('As the harness named it, else as it was chosen.'),
    ...spent,
    isFinal: z.boolean().describe('false: the run still works, and has cost this until now.'),
  })
  .meta({ id: 'RunCost' })
export type RunCost = z.infer<typeof runCost>

export const costGroupings = ['agent', 'project', 'task', 'day'] as const
export type CostGrouping = (typeof costGroupings)[number]

/** The newest runs that one answer adds up. */
export const mostCountedRuns = 20_000
/** The groups of one answer. */
export const mostCosts = 100

export const costRoutes = {
  list: defineRoute({
    id: 'costs.list',
    endpoint: 'GET /costs',
    summary: 'Add up what runs cost, by agent, project, task or day',
    description:
      'Counts the runs that the caller sees and that were created in this time; dearest first, days newest first. At most 20,000 runs are added up, the newest of them: `since` of the answer says from when on they are all there.',
    query: z.object({
      by: z.enum(costGroupings).default('agent').describe('What is added up.'),
      since: timestampInput.optional().describe('Created at this time or later; default: seven days ago.'),
      until: timestampInput.optional().describe('Created before this time; default: now.'),
      timezone: z
        .string()
        .max(100)
        .refine(isTimeZone, 'Must be an IANA time zone, such as Europe/Berlin.')
        .default('UTC')
        .describe('IANA time zone of the days.'),
    }),
    reply: z.object({
      by: z.enum(costGroupings),
      since: timestamp,
      until: timestamp,
      total: z.object(costSums),
      data: z.array(cost),
      leftOut: z.number().int().describe('Groups that are not among the 100 shown; `total` has them, too.'),
    }),
    cli: {
      command: 'costs',
      flags: {
        since: { description: 'Since when: `7d`, `12h`, `2w`, or a time such as 2026-03-14T00:00:00Z; default 7d.' },
        until: { description: 'Until when, in the same forms; default: now.' },
      },
      flow: true,
      example: 'svc costs --by project',
    },
  }),

  run: defineRoute({
    id: 'runs.cost',
    endpoint: 'GET /runs/{runId}/cost',
    summary: 'Read what a run cost: money, tokens and time',
    params: runParams,
    reply: runCost,
    cli: { command: 'run cost', positionals: [runPositional], example: 'svc run cost run_3nB7cW1yHsD5jK9q' },
  }),
} as const

function isTimeZone(name: string): boolean {
  // An offset, which newer engines take, is no name of a zone.
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
