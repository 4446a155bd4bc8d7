import { z } from 'zod'
import { fail } from './errors.ts'
import { limitParam, type Page } from './paging.ts'

// Lists that page by the ids of their rows, in both directions.

export const idPageParams = {
  limit: limitParam({ max: 100, default: 25 }),
  startingAfter: z
    .string()
    .max(200)
    .optional()
    .describe('Id of the last row of the previous page; returns the rows after it.'),
  endingBefore: z
    .string()
    .max(200)
    .optional()
    .describe('Id of the first row of the next page; returns the rows before it.'),
}

export type IdPageQuery = z.infer<z.ZodObject<typeof idPageParams>>

export interface IdCursor {
  id: string
  direction: 'after' | 'before'
  param: 'startingAfter' | 'endingBefore'
}

/** The row to start from, or null on the first page. Fails with `invalid_cursor` when both are sent. */
export function idCursorOf(query: IdPageQuery): IdCursor | null {
  const { startingAfter, endingBefore } = query
  if (startingAfter !== undefined && endingBefore !== undefined)
    fail('invalid_cursor', { param: 'endingBefore', message: 'Send startingAfter or endingBefore, not both.' })
  if (startingAfter !== undefined) return { id: startingAfter, direction: 'after', param: 'startingAfter' }
  return endingBefore === undefined ? null : { id: endingBefore, direction: 'before', param: 'endingBefore' }
}

/**
 * Makes a page of `limit + 1` rows, read in the direction of travel (with `endingBefore` from that row upwards) and shown
 * in the order of the list. `nextCursor` is the id, or the place, with which to travel on.
 */
export function idPageOf<Row extends { id: string }, T>(options: {
  rows: readonly Row[]
  limit: number
  cursor: Pick<IdCursor, 'direction'> | null
  /** Returns the place of a row as of now, instead of its id, for a list in which rows move. */
  placeOf?: (row: Row) => string
  present: (row: Row) => T
}): Page<T> {
  const isBackward = options.cursor?.direction === 'before'
  const read = options.rows.slice(0, options.limit)
  const hasMore = options.rows.length > options.limit
  const last = read.at(-1)
  const nextCursor = !hasMore || last === undefined ? null : (options.placeOf?.(last) ?? last.id)
  const shown = isBackward ? read.toReversed() : read
  return { object: 'list', data: shown.map(options.present), hasMore, nextCursor, cursor: nextCursor }
}
