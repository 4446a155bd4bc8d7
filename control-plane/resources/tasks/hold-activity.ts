import type { TaskId } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { recordActivity, type Activity } from './record.ts'

type Kind =
  | 'approval.requested'
  | 'approval.approved'
  | 'approval.rejected'
  | 'approval.expired'
  | 'question.asked'
  | 'question.answered'
  | 'question.closed'

/** Records in a task's history what is asked about it and how that ends. Does nothing where there is no task. */
export async function recordHold(
  tx: Db,
  { taskId, ...hold }: Omit<Activity, 'taskId' | 'kind'> & { taskId: TaskId | null; kind: Kind },
): Promise<void> {
  if (taskId !== null) await recordActivity(tx, { ...hold, taskId })
}
