import type { ApprovalId } from '../../../../shared/lib/ids.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { ModelCatalog } from '../../../catalog/catalog.ts'
import type { Db } from '../../../db/open.ts'
import type { PersonCaller } from '../../../http/callers.ts'
import { createTask } from '../../tasks/create.ts'
import { systemActor } from '../../tasks/rules.ts'
import { defaultRejection, isProposed, taskDescription, taskTitle } from '../own/rules.ts'
import { findLearningOfApproval, replaceLearning, type LearningRow } from '../store.ts'

// Reviews a learning when its approval is resolved, in the transaction in which that is closed: as an approval is resolved once,
// a learning is reviewed once, and becomes one task.

interface Review {
  approvalId: ApprovalId
  world: World
}

/** Makes the task of writing it into the wiki. Nobody is assigned, so nobody is woken. */
export async function acceptLearning(
  tx: Db,
  { approvalId, world, person, catalog }: Review & { person: PersonCaller; catalog: ModelCatalog },
): Promise<void> {
  const learning = await proposedOf(tx, approvalId)
  if (learning === null) return
  await replaceLearning(tx, learning, { ...learning, status: 'accepted', updatedAt: world.now() })
  const body = { title: taskTitle(learning), description: taskDescription(learning), force: true }
  await createTask({ db: tx, caller: person, world, catalog, author: systemActor }, { body, parent: null })
}

export async function rejectLearning(
  tx: Db,
  { approvalId, world, note }: Review & { note: string | null },
): Promise<void> {
  const learning = await proposedOf(tx, approvalId)
  if (learning === null) return
  const rejectedReason = note ?? defaultRejection
  await replaceLearning(tx, learning, { ...learning, status: 'rejected', rejectedReason, updatedAt: world.now() })
}

async function proposedOf(tx: Db, approvalId: ApprovalId): Promise<LearningRow | null> {
  const learning = await findLearningOfApproval(tx, approvalId)
  return learning !== null && isProposed(learning) ? learning : null
}
