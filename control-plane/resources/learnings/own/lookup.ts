import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { findApproval } from '../../approvals/store.ts'
import { seesWork } from '../../projects/work-visibility.ts'
import { mayRead } from './rules.ts'
import { findLearning, type LearningRow } from '../store.ts'

/** Fails with `learning_not_found`, also when the caller may not read it. */
export async function readableLearning(db: Db, caller: Caller, id: string): Promise<LearningRow> {
  const learning = await findLearning(db, caller.workspaceId, id)
  if (learning === null) return unknownLearning()
  const isReviewer = async () => {
    if (caller.kind !== 'person') return false
    return (await findApproval(db, caller.workspaceId, learning.approvalId))?.assignedRef === caller.personRef
  }
  const isSeen = await seesWork(db, caller, { table: 'learnings', id })
  return mayRead(learning, { seesWork: isSeen, isReviewer: !isSeen && (await isReviewer()) })
    ? learning
    : unknownLearning()
}

export function unknownLearning(): never {
  return fail('learning_not_found', { param: 'id' })
}
