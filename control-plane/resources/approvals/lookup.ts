import { fail } from '../../../shared/api/errors.ts'
import type { IdPageQuery } from '../../../shared/api/id-paging.ts'
import { idCursorOf, type IdCursor } from '../../../shared/api/id-paging.ts'
import type { IdPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { seesWork } from '../projects/work-visibility.ts'
import { findApproval, type ApprovalRow } from './store.ts'

/**
 * An approval is visible to those who see the work that it is about, and to the person it is assigned to. Fails with
 * `approval_not_found`.
 */
export async function visibleApproval(db: Db, caller: Caller, id: string): Promise<ApprovalRow> {
  const approval = await findApproval(db, caller.workspaceId, id)
  if (approval === null) return unknownApproval()
  const isTheirs = caller.kind === 'person' && approval.assignedId === caller.userPublicId
  return isTheirs || (await seesWork(db, caller, { table: 'approvals', id })) ? approval : unknownApproval()
}

export function unknownApproval(): never {
  return fail('approval_not_found', { param: 'approvalId' })
}

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
