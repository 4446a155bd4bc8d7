import { z } from 'zod'
import { decodeCursor, encodeCursor } from '../lib/cursor.ts'
import { fail } from './errors.ts'

// Lists and batch reads.

export const limitParam = (options: { max: number; default: number }) =>
  z.number().int().min(1).max(options.max).default(options.default).describe(`Rows per page, at most ${options.max}.`)

/** Query keys of a list that pages forward with `after`; `cursor` is another name for it. */
export const pageParams = {
  limit: limitParam({ max: 100, default: 25 }),
  after: z.string().max(1024).optional().describe('`nextCursor` of the page before.'),
  cursor: z.string().max(1024).optional().describe('Another name for `after`.'),
}

/**
 * Query key of a batch read. More than 100 ids are refused as `too_many_ids`, and ids with a filter or paging as
 * `ids_exclusive`. The server checks both before validation, because defaults would hide what was sent.
 */
export const idsParam = z
  .array(z.string().max(200))
  .optional()
  .describe('Up to 100 ids: reads these, one slot each; the slot of an unknown id is null.')
export const maxIds = 100
/** Query key that adds related records to the answer of a read. */
export const includeParam = <const T extends readonly [string, ...string[]]>(...values: T) =>
  z.array(z.enum(values)).optional().describe('Related records to add to the answer.')

const paging = {
  hasMore: z.boolean(),
  nextCursor: z.string().nullable().describe('Send it as `after` to get the next page; null on the last.'),
  cursor: z.string().nullable().describe('The same as nextCursor.'),
}

export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ object: z.literal('list'), data: z.array(item), ...paging })

/** The reply of a list that also takes `ids`: a page, or one slot per id in the order asked. */
export const listOrBatchOf = <T extends z.ZodType>(item: T) =>
  z.union([listOf(item), z.object({ object: z.literal('list'), data: z.array(item.nullable()) })])

export interface Page<T> {
  object: 'list'
  data: T[]
  hasMore: boolean
  nextCursor: string | null
  cursor: string | null
}

/** Makes a page of `limit + 1` rows read from the store. The extra row only shows that there are more. */
export function pageOf<Row, T>(options: {
  rows: readonly Row[]
  limit: number
  keyOf: (row: Row) => readonly (string | number)[]
  present: (row: Row) => T
}): Page<T> {
  const shown = options.rows.slice(0, options.limit)
  const last = shown.at(-1)
  const hasMore = options.rows.length > options.limit && last !== undefined
  const nextCursor = hasMore ? encodeCursor(options.keyOf(last)) : null
  return { object: 'list', data: shown.map(options.present), hasMore, nextCursor, cursor: nextCursor }
}

/** A reply to a request that names ids: it has a slot for each of them in their order, also for one that is named twice. */
export function batchOf<T>(
  ids: readonly string[],
  find: (id: string) => T | null | undefined,
): { object: 'list'; data: (T | null)[] } {
  return { object: 'list', data: ids.map((id) => find(id) ?? null) }
}

/**
 * The sort key of a list by time and id. Its parts go into a query as they are, and PostgreSQL fails on a fraction or a
 * NUL. The form of the id tells the cursors of most lists apart.
 */
export const timeAndId = <T extends z.ZodType<string>>(id: T) => z.tuple([z.number().int().nonnegative(), id])

/**
 * The sort key in `after` (or `cursor`), or null on the first page. Fails with `invalid_cursor` when it does not belong
 * to this list, or when both names are sent with different values.
 */
export function cursorOf<T extends z.ZodType>(query: CursorQuery, schema: T): z.output<T> | null {
  const { after, cursor } = query
  if (after !== undefined && cursor !== undefined && after !== cursor) fail('invalid_cursor', { param: 'cursor' })
  const sent = after ?? cursor
  if (sent === undefined) return null
  return decodeCursor(sent, schema) ?? fail('invalid_cursor', { param: after === undefined ? 'cursor' : 'after' })
}

type CursorQuery = Omit<z.infer<z.ZodObject<typeof pageParams>>, 'limit'>

/** The place where a page of a list by time and id begins, newest first; empty on the first page. Fails like `cursorOf`. */
export function beforeOf(
  query: CursorQuery,
  key: z.ZodType<readonly [number, string]>,
): { before?: { createdAt: number; id: string } } {
  const place = cursorOf(query, key)
  return place === null ? {} : { before: { createdAt: place[0], id: place[1] } }
}

/** Makes a page of a list by time and id from `limit + 1` rows. */
export function pageByTime<Row extends { createdAt: number; id: string }, T>(
  rows: readonly Row[],
  limit: number,
  present: (row: Row) => T,
): Page<T> {
  return pageOf({ rows, limit, keyOf: ({ createdAt, id }) => [createdAt, id], present })
}
