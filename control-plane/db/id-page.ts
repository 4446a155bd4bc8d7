import type { Knex } from 'knex'

/** The row at which a page by id starts, as its cursor names it. */
export interface IdPage {
  limit: number
  from?: { createdAt: number; id: string; direction: 'after' | 'before' }
}

/** Orders newest first (from the cursor upwards when it pages back), one row more than `limit`. */
export function pageById(query: Knex.QueryBuilder, { limit, from }: IdPage, table = ''): Knex.QueryBuilder {
  const [time, id] = [`${table}created_at`, `${table}id`]
  const isBackward = from?.direction === 'before'
  // A row comparison, so that both databases walk the index instead of filtering.
  if (from) void query.whereRaw(`(${time}, ${id}) ${isBackward ? '>' : '<'} (?, ?)`, [from.createdAt, from.id])
  const order = isBackward ? 'asc' : 'desc'
  return query
    .orderBy([
      { column: time, order },
      { column: id, order },
    ])
    .limit(limit + 1)
}

/** Newest first from a cursor on, one row more than `limit`, so that the caller knows whether there is a next page. */
export function newestFirst(
  query: Knex.QueryBuilder,
  { before, limit }: { before?: { createdAt: number; id: string }; limit: number },
): Knex.QueryBuilder {
  return pageById(query, { limit, ...(before && { from: { ...before, direction: 'after' } }) })
}
