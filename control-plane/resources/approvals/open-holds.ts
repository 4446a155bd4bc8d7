import type { ApprovalId, QuestionId, RunId, TaskId, WorkflowRunId } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { listOpenQuestions, type QuestionRow } from '../questions/store.ts'
import { holdingTriggers } from './rules.ts'
import { listHoldingApprovals } from './store.ts'

/** An approval or question that a run or a task waits for. */
export interface OpenHold {
  kind: 'approval' | 'question'
  /** `apr_...` or `qst_...` */
  id: ApprovalId | QuestionId
  /** The hold in one line, for a person. */
  label: string
  /** Milliseconds UTC. */
  since: number
  /** The workflow run that asks; null: an agent does. */
  workflowRunId: WorkflowRunId | null
}

/** Open approvals and questions of tasks (by `tsk_` id), oldest first; a task without any has no entry. */
export async function openHoldsOfTasks(db: Db, taskIds: readonly TaskId[]): Promise<Map<string, OpenHold[]>> {
  return openHolds(db, 'task_id', taskIds)
}

/** Open approvals and questions of runs: the successor of an ended run waits for that run's holds. */
export async function openHoldsOfRuns(db: Db, runIds: readonly RunId[]): Promise<Map<string, OpenHold[]>> {
  return openHolds(db, 'run_id', runIds)
}

async function openHolds(db: Db, column: 'run_id' | 'task_id', ids: readonly (RunId | TaskId)[]) {
  const approvals = await listHoldingApprovals(db, column, { ids, triggers: holdingTriggers })
  const questions = await listOpenQuestions(db, column, ids)
  const holds = [
    ...approvals.map((row) => holdOf('approval', { ...row, workflowRunId: null })),
    ...questions.map((row) => holdOf('question', row)),
  ].toSorted((a, b) => a.hold.since - b.hold.since)
  // Each is of one of `ids`.
  const byOwner = Map.groupBy(holds, (each) => each[column] ?? '')
  return new Map([...byOwner].map(([owner, of]) => [owner, of.map(({ hold }) => hold)]))
}

type Row = Pick<QuestionRow, 'prompt' | 'createdAt' | 'workflowRunId' | 'taskId'> & { id: ApprovalId | QuestionId } & {
  runId: RunId | null
}

function holdOf(kind: OpenHold['kind'], { id, prompt, createdAt: since, workflowRunId, taskId, runId }: Row) {
  const hold: OpenHold = { kind, id, label: labelOf(prompt), since, workflowRunId }
  return { hold, task_id: taskId, run_id: runId }
}

const labelLength = 160

/** The first line, cut between whole characters. */
function labelOf(prompt: string): string {
  const line = prompt.trimStart().split('\n', 1)[0]!.trim()
  const characters = Array.from(line.slice(0, labelLength * 2))
  return characters.length > labelLength ? `${characters.slice(0, labelLength - 1).join('')}…` : line
}
