import { z } from 'zod'
import { fail } from '../../../../shared/api/errors.ts'
import { cursorOf } from '../../../../shared/api/paging.ts'
import { parseRunEventId, runEventRoutes } from '../../../../shared/api/run-events.ts'
import { linkLimits } from '../../../../shared/device/limits.ts'
import { decodeCursor, encodeCursor } from '../../../../shared/lib/cursor.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { EventStream } from '../../../http/sse.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findEvent, listEvents, listEventsBackward, pageBytes } from '../event-log.ts'
import { followRun } from '../follow.ts'
import { readableRun } from '../lookup.ts'

type Dependencies = Pick<ResourceDependencies, 'bus'>

const cursorKey = z.tuple([z.number().int().nonnegative()])

export function runEventHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(runEventRoutes, {
    eventsList: (input) => (input.stream === null ? list(input) : follow(input, deps)),

    async eventsGet({ db, caller, params, room }) {
      const run = await readableRun(db, caller, params.runId)
      const place = parseRunEventId(run.id, params.eventId)
      await room.hold(Math.min(run.eventBytes, linkLimits.lineBytes))
      const event = place === null ? null : await findEvent(db, { runId: run.id, ...place })
      return event ?? fail('resource_not_found', { param: 'eventId', message: 'The run has no such event.' })
    },
  })
}

type List = HandlerInput<typeof runEventRoutes.eventsList>

async function list({ db, caller, params, query, room }: List) {
  const run = await readableRun(db, caller, params.runId)
  const key = cursorOf({ after: query.after }, cursorKey)
  const range = { runId: run.id, limit: query.limit }
  await room.hold(Math.min(run.eventBytes, pageBytes))
  const { events, hasMore } =
    query.sort === 'asc'
      ? await listEvents(db, { ...range, afterSeq: key?.[0] ?? 0 })
      : await listEventsBackward(db, { ...range, beforeSeq: key?.[0] ?? Number.MAX_SAFE_INTEGER })
  const last = events.at(-1)
  const nextCursor = hasMore && last !== undefined ? encodeCursor([last.seq]) : null
  return { object: 'list' as const, data: events, hasMore, nextCursor, cursor: nextCursor }
}

async function follow(input: List, deps: Dependencies) {
  const { db, caller, params, query, world, signal, room, stream } = input
  const run = await readableRun(db, caller, params.runId)
  if (query.sort === 'desc')
    fail('validation_error', { param: 'sort', message: 'A stream follows the events in their order.' })
  // A reader that comes back says how far it got; where it began is then of no more use.
  const lastEventId = stream?.lastEventId || null
  const key = lastEventId === null ? cursorOf({ after: query.after }, cursorKey) : decodeCursor(lastEventId, cursorKey)
  if (lastEventId !== null && key === null) fail('invalid_cursor', { param: 'Last-Event-ID' })
  const source = followRun({ db, bus: deps.bus, world, signal, room, runId: run.id, afterSeq: key?.[0] ?? 0 })
  return new EventStream(source, (now) => readableRun(db, now, run.id))
}
