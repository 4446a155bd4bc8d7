import type { Knex } from 'knex'
import { holding } from './dialect.ts'

/** Keeps live rows (with one of these statuses, when there are any), and deleted rows when they are asked for. */
export function onlyLive(
  query: Knex.QueryBuilder,
  { statuses, withDeleted = false }: { statuses?: readonly string[]; withDeleted?: boolean },
): void {
  void query.where((either) => {
    void either.where((live) => {
      void live.whereNull('deleted_at')
      if (statuses) void live.whereIn('status', [...statuses])
    })
    if (withDeleted) void either.orWhereNotNull('deleted_at')
  })
}

/** Keeps rows in which one of these columns contains the text, whatever the case of its letters. Without a text all rows stay. */
export function onlyContaining(query: Knex.QueryBuilder, columns: readonly string[], text = ''): void {
  if (text === '') return
  void query.where((any) => {
    for (const column of columns) {
      const { sql, values } = holding(query, column, text)
      void any.orWhereRaw(sql, values)
    }
  })
}
