import type { Knex } from 'knex'

/** The row at which a page by id starts, as its cursor names it. */
export interface IdPage {
  limit: number
  from?: { createdAt: number; id: string; direction: 'after' | 'before' }
}

/** Orders newest first (from the cursor upwards when it pages back), one row more than `limit`. */
export function pageById(query: Knex.QueryBuilder, { limit, from }: IdPage): Knex.QueryBuilder {
  return pageByTime(query, 'created_at', { limit, ...(from && { from: { ...from, at: from.createdAt } }) })
}

/** A place in a list by time and id; its row may have moved on since. */
export interface TimePage {
  limit: number
  from?: { at: number; id: string; direction: 'after' | 'before' }
}

/** Orders like `pageById`, for a list whose order is that of another time: a column, or an expression that is indexed as it stands. */
export function pageByTime(
  query: Knex.QueryBuilder,
  time: string,
  { limit, from, id = 'id' }: TimePage & { id?: string },
): Knex.QueryBuilder {
  const isBackward = from?.direction === 'before'
  // A row comparison, so that both databases walk the index instead of filtering.
  if (from) void query.whereRaw(`(${time}, ${id}) ${isBackward ? '>' : '<'} (?, ?)`, [from.at, from.id])
  const order = isBackward ? 'asc' : 'desc'
  return query.orderByRaw(`${time} ${order}, ${id} ${order}`).limit(limit + 1)
}

/** A page that begins after this row, and goes on with older ones. */
export interface OlderPage {
  limit: number
  before?: { createdAt: number; id: string }
  /** Instead: the rows after this one, oldest first. */
  after?: { createdAt: number; id: string }
}

/** Newest first (with `after` oldest first), one row more than `limit`. `of`: the table whose rows they are, in a query of several: `t.`. */
export function newestFirst(query: Knex.QueryBuilder, { before, after, limit }: OlderPage, of = ''): Knex.QueryBuilder {
  const row = after ?? before
  const direction = after === undefined ? 'after' : 'before'
  const from = row && ({ at: row.createdAt, id: row.id, direction } as const)
  return pageByTime(query, `${of}created_at`, { limit, id: `${of}id`, ...(from && { from }) })
}
