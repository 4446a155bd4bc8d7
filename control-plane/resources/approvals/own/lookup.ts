import type { ApprovalId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { seesWork } from '../../projects/work-visibility.ts'
import { findApproval, type ApprovalRow } from '../store.ts'

/**
 * An approval is visible to those who see the work that it is about, and to the person it is assigned to. Fails with
 * `approval_not_found`.
 */
export async function visibleApproval(db: Db, caller: Caller, id: ApprovalId): Promise<ApprovalRow> {
  const approval = await findApproval(db, caller.workspaceId, id)
  if (approval === null) return unknownApproval()
  const isTheirs = caller.kind === 'person' && approval.assignedRef === caller.personRef
  return isTheirs || (await seesWork(db, caller, { table: 'approvals', id })) ? approval : unknownApproval()
}

export function unknownApproval(): never {
  return fail('approval_not_found', { param: 'approvalId' })
}
