import { z } from 'zod'
import { runId, timestamp } from './ids.ts'
import { defineRoute } from './route.ts'
import { runParams, runPositional } from './runs.ts'

export const runWhy = z
  .object({
    object: z.literal('why'),
    run: runId,
    state: z.enum(['waits', 'works', 'asks', 'ended']).describe('`asks`: it waits for a person.'),
    reason: z
      .string()
      .nullable()
      .describe(
        'As a code: what gates it (`gateReason`), `approval` or `question`, `device_away`, how it ended (`exitReason`); null: nothing holds it.',
      ),
    because: z.string().describe('The same in a sentence.'),
    since: timestamp,
    next: z.string().describe('What happens next by itself.'),
    nextAt: timestamp.nullable().describe('When that is at the latest; null: no time is set.'),
    command: z.string().nullable().describe('The command to begin with; null: it passes by itself.'),
  })
  .meta({ id: 'RunWhy' })
export type RunWhy = z.infer<typeof runWhy>

export const runWhyRoutes = {
  why: defineRoute({
    id: 'runs.why',
    endpoint: 'GET /runs/{runId}/why',
    summary: 'Say why a run waits, works on or ended, what happens next, and what to do',
    params: runParams,
    reply: runWhy,
    cli: {
      command: 'why',
      positionals: [{ ...runPositional, name: 'run-or-task' }],
      example: 'svc why run_3nB7cW1yHsD5jK9q',
    },
  }),
} as const
