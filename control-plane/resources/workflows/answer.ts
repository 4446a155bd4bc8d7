import type { WorkflowRunId } from '../../../shared/lib/ids.ts'
import type { QuestionAnswer } from '../../../shared/api/approval-words.ts'
import type { Db } from '../../db/open.ts'
import type { QuestionRow } from '../questions/store.ts'
import { endCall, resetAttempts } from './call-store.ts'
import { requestWorkflowCancel } from './cancel.ts'
import { publishChange } from './notify.ts'
import { chosenKeys, valueOfAnswer } from './rules.ts'
import { lockWorkflowRun, replaceWorkflowRun } from './run-store.ts'

/** Takes a person's answer to a question of a workflow: the program waits for it, or it ends the stall. */
export async function takeAnswer(
  db: Db,
  question: Pick<QuestionRow, 'answerMode' | 'options' | 'workspaceId' | 'workflowCall'> & {
    workflowRunId: WorkflowRunId
  },
  { answer, at }: { answer: QuestionAnswer | null; at: number },
): Promise<void> {
  const { workflowRunId, workflowCall: seq, workspaceId } = question
  if (seq === null) return endStall(db, question, { answer, at })
  const result = JSON.stringify(valueOfAnswer(question, answer))
  if (await endCall(db, { workflowRunId, seq }, { at, isValue: true, result }))
    await publishChange(db, { id: workflowRunId, workspaceId }, at)
}

/** Tries again, from the beginning of all attempts; or has the run cancelled. */
async function endStall(
  db: Db,
  question: Pick<QuestionRow, 'options'> & { workflowRunId: WorkflowRunId },
  { answer, at }: { answer: QuestionAnswer | null; at: number },
): Promise<void> {
  const run = await lockWorkflowRun(db, question.workflowRunId)
  if (run === null || run.status !== 'stalled') return
  if (chosenKeys(question, answer)[0] === 'cancel') return requestWorkflowCancel(db, run, at)
  await resetAttempts(db, run.id)
  await replaceWorkflowRun(db, run, { status: 'running', retriedAt: at, changedAt: at })
  await publishChange(db, run, at)
}
