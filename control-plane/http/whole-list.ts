import type { Page } from '../../shared/api/paging.ts'

/** A list that is never longer than its one page. */
export function wholeList<T>(data: T[]): Page<T> {
  return { object: 'list', data, hasMore: false, nextCursor: null, cursor: null }
}
