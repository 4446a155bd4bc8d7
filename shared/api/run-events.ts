import type { RunId } from '../lib/ids.ts'
import { z } from 'zod'
import { runId, runRef, timestamp, uuid } from './ids.ts'
import { limitParam, listOf } from './paging.ts'
import { defineRoute } from './route.ts'

export const runEvent = z
  .object({
    id: uuid,
    object: z.literal('run_event'),
    runId,
    seq: z.number().int().positive().describe('Place in the run; begins at 1.'),
    kind: z
      .string()
      .describe(
        'started, session, text, thinking, tool_call, tool_result, usage, error, result, raw, permission, gap, input, folder_shared (another run works in the folder) or ended.',
      ),
    createdAt: timestamp,
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'RunEvent' })
export type RunEvent = z.infer<typeof runEvent>

const params = z.object({ runId: runRef })
const positional = { name: 'run', target: 'params.runId' } as const

export const runEventRoutes = {
  eventsList: defineRoute({
    id: 'runs.events.list',
    endpoint: 'GET /runs/{runId}/events',
    summary: "List a run's events, oldest first, or follow them",
    description:
      'With `Accept: text/event-stream` the answer is a stream: one message per event (`id`: the cursor after it, `event`: its kind, `data`: the event as JSON), and a last message `end` with the run’s status and exit reason, which also ends the stream of a run that never began. When `ended` comes, the run’s ending is recorded. With `Last-Event-ID` the stream continues after that message.',
    params,
    query: z.object({
      limit: limitParam({ max: 500, default: 100 }),
      after: z
        .string()
        .max(1024)
        .optional()
        .describe('`nextCursor` of the previous page, or the id of an event message.'),
      sort: z.enum(['asc', 'desc']).default('asc').describe('`desc` reads the newest first.'),
    }),
    reply: listOf(runEvent),
    stream: 'sse',
    cli: {
      command: 'run events',
      positionals: [positional],
      flags: { follow: { kind: 'boolean', description: 'Go on printing events as they come, until the run ends.' } },
      flow: true,
      example: 'svc run events current --sort desc --limit 20',
    },
  }),

  eventsGet: defineRoute({
    id: 'runs.events.get',
    endpoint: 'GET /runs/{runId}/events/{eventId}',
    summary: 'Read one event',
    params: z.object({ runId: runRef, eventId: uuid }),
    reply: runEvent,
    cli: {
      command: 'run event',
      positionals: [
        positional,
        { name: 'event', target: 'params.eventId', description: 'An event of the run: its UUID.' },
      ],
      example: 'svc run event current 00000001-1c9e-8b52-800e-000000000011',
    },
  }),
} as const

/**
 * The id of an event. Events are stored in frames without ids, so the id is made of (run, fence, seq) as a UUID of
 * version 8: eight digits of the fence, eight of a hash of the run's id, twelve of seq.
 */
export function runEventId(run: RunId, fence: number, seq: number): string {
  const hash = hash32(run).toString(16).padStart(8, '0')
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')
  return `${hex(fence, 8)}-${hash.slice(0, 4)}-8${hash.slice(4, 7)}-80${hash.slice(7)}0-${hex(seq, 12)}`
}

/** The (fence, seq) of an event's id, or null when it is not an event of this run. */
export function parseRunEventId(run: RunId, id: string): { fence: number; seq: number } | null {
  const fence = Number.parseInt(id.slice(0, 8), 16)
  const seq = Number.parseInt(id.slice(24), 16)
  return runEventId(run, fence, seq) === id ? { fence, seq } : null
}

/** FNV-1a, 32 bits. */
function hash32(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0
  return hash
}
