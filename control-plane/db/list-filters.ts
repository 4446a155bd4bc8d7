import type { Knex } from 'knex'
import { holdsPattern, likeContaining } from './like.ts'

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

/** Keeps rows in which one of these columns contains the text, ignoring case. Without a text all rows stay. */
export function onlyContaining(query: Knex.QueryBuilder, columns: readonly string[], text = ''): void {
  if (text === '') return
  const like = likeContaining(text)
  void query.where((any) => {
    for (const column of columns) void any.orWhereRaw(holdsPattern(column), [like])
  })
}
