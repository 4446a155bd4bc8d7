import { z } from 'zod'
import { sandboxStates } from '../runs/sandbox-states.ts'
import { sandboxSizes } from './agents.ts'
import { runId, sandboxId, timestamp } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { adminsOnly, defineRoute } from './route.ts'

// The sandboxes in which runs of the cloud are executed, for admins. They are made and removed by the server alone.

const sandbox = z
  .object({
    id: sandboxId,
    runId,
    size: z.enum(sandboxSizes),
    image: z.string().nullable().describe('By the digest or id that the engine has of it; null: it is not made yet.'),
    state: z
      .enum([...sandboxStates, 'removed'])
      .describe('`linked`: its runner is connected. `ended`: its run is over, and it goes soon.'),
    trouble: z.string().nullable().describe('What went wrong with it.'),
    createdAt: timestamp,
    stateAt: timestamp.describe('Since when it is in its state.'),
    removedAt: timestamp.nullable(),
  })
  .meta({ id: 'Sandbox' })
export type Sandbox = z.infer<typeof sandbox>

const params = z.object({ sandboxId })
const positionals = [{ name: 'sandbox', target: 'params.sandboxId' }] as const
const example = 'sbx_4kR8nV2mQx7T1wZ9'

export const sandboxRoutes = {
  list: defineRoute({
    id: 'sandboxes.list',
    endpoint: 'GET /sandboxes',
    summary: 'List the cloud sandboxes of your workspace, newest first',
    callers: adminsOnly,
    query: z.object({
      removed: z.boolean().default(false).describe('Also those that are gone.'),
      ...pageParams,
    }),
    reply: listOf(sandbox),
    cli: { command: 'sandbox list', example: 'svc sandbox list --removed true' },
  }),

  logs: defineRoute({
    id: 'sandboxes.logs',
    endpoint: 'GET /sandboxes/{sandboxId}/logs',
    summary: 'Read the last lines that the runner of a sandbox wrote, not those of its harness',
    callers: adminsOnly,
    params,
    query: z.object({ lines: z.number().int().min(1).max(1_000).default(100).describe('At most 1,000.') }),
    reply: z.object({ sandboxId, log: z.string() }).meta({ id: 'SandboxLog' }),
    errors: ['sandbox_not_found', 'sandbox_gone', 'sandbox_engine_unavailable'],
    cli: { command: 'sandbox logs', positionals, example: `svc sandbox logs ${example}` },
  }),

  stop: defineRoute({
    id: 'sandboxes.stop',
    endpoint: 'POST /sandboxes/{sandboxId}/stop',
    summary: 'Cancel the run of a sandbox, which is removed then',
    description: 'A harness has the time of a cancelled run to end; after 30 s the engine ends the container.',
    callers: adminsOnly,
    params,
    reply: sandbox,
    errors: ['sandbox_not_found', 'sandbox_gone'],
    cli: { command: 'sandbox stop', positionals, example: `svc sandbox stop ${example}` },
  }),
}
