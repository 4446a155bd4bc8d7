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

/** What is asked about a task, and what became of it, belongs to the task's history. Without effect outside of tasks. */
export async function recordGate(
  tx: Db,
  { taskId, ...gate }: Omit<Activity, 'taskId' | 'kind'> & { taskId: string | null; kind: Kind },
): Promise<void> {
  if (taskId !== null) await recordActivity(tx, { ...gate, taskId })
}
