import type { ConversationId } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import type { conversationRoutes } from '../../../../shared/api/conversations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { runId } from '../../../../shared/api/ids.ts'
import { cursorOf } from '../../../../shared/api/paging.ts'
import type { RunEvent } from '../../../../shared/api/run-events.ts'
import { encodeCursor } from '../../../../shared/lib/cursor.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { listHiddenAgents } from '../../agents/lookup.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { listEvents, pageBytes } from '../../runs/event-log.ts'
import { presentRuns } from '../../runs/steps/present.ts'
import { listRunsOfConversation } from '../../runs/list-store.ts'
import { findRun, type RunRow } from '../../runs/store.ts'
import { readableConversation } from '../lookup.ts'

/** The run in which the previous page ended, and the number of its last event there. */
const place = z.tuple([runId, z.number().int().nonnegative()])
const runsAtOnce = 25
/** Even a page of many runs without events ends here. */
const mostRuns = 100

/** The transcript of a conversation: the events of its runs, one run after another in order of creation. */
export async function listConversationEvents(
  { db, caller, params, query, world, room }: HandlerInput<typeof conversationRoutes.events>,
  { leaseMs }: Pick<ResourceDependencies, 'leaseMs'>,
) {
  const conversation = await readableConversation(db, caller, params.id)
  const cursor = cursorOf({ after: query.after }, place)
  await room.hold(pageBytes)
  const page = await readPage(db, { caller, conversationId: conversation.id, cursor, limit: query.limit })
  const runs = await presentRuns(db, page.runs, { now: world.now(), leaseMs })
  const { events, nextCursor } = page
  return { object: 'list' as const, data: events, runs, hasMore: nextCursor !== null, nextCursor, cursor: nextCursor }
}

interface EventPage {
  events: RunEvent[]
  runs: RunRow[]
  nextCursor: string | null
}

async function readPage(
  db: Db,
  of: { caller: Caller; conversationId: ConversationId; cursor: z.infer<typeof place> | null; limit: number },
): Promise<EventPage> {
  const page: EventPage = { events: [], runs: [], nextCursor: null }
  const [beganIn, beganAfter] = of.cursor ?? [null, 0]
  const begun = beganIn === null ? null : await findRun(db, beganIn)
  if (beganIn !== null && begun?.conversationId !== of.conversationId) fail('invalid_cursor', { param: 'after' })
  let bytes = 0
  let batch = begun === null ? [] : [begun]
  for (;;) {
    for (const run of await onlyVisible(db, of.caller, batch)) {
      const afterSeq: number = run.id === beganIn ? beganAfter : 0
      const limit = of.limit - page.events.length
      const mostBytes = pageBytes - bytes
      const { events, hasMore, bytes: read } = await listEvents(db, { runId: run.id, afterSeq, limit, mostBytes })
      bytes += read
      page.events.push(...events)
      page.runs.push(run)
      const isFull = hasMore || bytes >= pageBytes || page.events.length >= of.limit || page.runs.length >= mostRuns
      if (!isFull) continue
      const follows = hasMore || (await listRunsOfConversation(db, { ...of, after: run, limit: 1 })).length > 0
      if (follows) page.nextCursor = encodeCursor([run.id, events.at(-1)?.seq ?? afterSeq])
      return page
    }
    const after: RunRow | null = batch.at(-1) ?? null
    batch = await listRunsOfConversation(db, { conversationId: of.conversationId, after, limit: runsAtOnce })
    if (batch.length === 0) return page
  }
}

/** Runs of a private agent are visible only to those who see the agent, even if others read its messages. */
async function onlyVisible(db: Db, caller: Caller, runs: readonly RunRow[]): Promise<RunRow[]> {
  const hidden = await listHiddenAgents(
    db,
    caller,
    runs.map((run) => run.agentRef),
  )
  return runs.filter((run) => !hidden.has(run.agentRef))
}
