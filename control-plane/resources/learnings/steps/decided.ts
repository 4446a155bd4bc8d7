import { fail } from '../../../../shared/api/errors.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { createTask, type Creating } from '../../tasks/create.ts'
import { taskOf, withoutNote } from '../rules.ts'
import { findLearningOfApproval, replaceLearning, type LearningRow } from '../store.ts'

/**
 * What a decision does to the learning about which it is, in the transaction that resolves its approval.
 *
 *   proposed --accept--> accepted, and a task is there to write it into the wiki
 *   proposed --reject--> rejected, with the reviewer's note
 */

/** The task is the platform's, and nobody's yet. */
export async function acceptLearning(creating: Creating, approvalId: string): Promise<void> {
  const { db, world } = creating
  const learning = await proposed(db, approvalId)
  await replaceLearning(db, learning, { ...learning, status: 'accepted', updatedAt: world.now() })
  await createTask({ ...creating, isSystem: true }, { body: { ...taskOf(learning), force: true }, parent: null })
}

export async function rejectLearning(
  db: Db,
  approvalId: string,
  { reason, world }: { reason: string | null; world: World },
): Promise<void> {
  const learning = await proposed(db, approvalId)
  const after = { ...learning, status: 'rejected', rejectedReason: reason ?? withoutNote } as const
  await replaceLearning(db, learning, { ...after, updatedAt: world.now() })
}

/** Only its approval decides about a learning, and that is resolved once. */
async function proposed(db: Db, approvalId: string): Promise<LearningRow> {
  return (await findLearningOfApproval(db, approvalId)) ?? fail('learning_not_found')
}
