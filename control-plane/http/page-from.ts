import { fail } from '../../shared/api/errors.ts'
import { idCursorOf, type IdCursor, type IdPageQuery } from '../../shared/api/id-paging.ts'
import type { IdPage } from '../db/id-page.ts'

/** The start of the requested page. Fails with `invalid_cursor` when `find` knows no row of the cursor's id. */
export async function pageFrom(
  query: IdPageQuery,
  find: (id: string) => Promise<{ id: string; createdAt: number } | null>,
): Promise<{ cursor: IdCursor | null; page: IdPage }> {
  const cursor = idCursorOf(query)
  if (cursor === null) return { cursor, page: { limit: query.limit } }
  const row = await find(cursor.id)
  if (row === null) return fail('invalid_cursor', { param: cursor.param })
  const { direction } = cursor
  return { cursor, page: { limit: query.limit, from: { createdAt: row.createdAt, id: row.id, direction } } }
}
