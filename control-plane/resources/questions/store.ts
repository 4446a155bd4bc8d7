import type {
  ConversationId,
  MessageId,
  PersonRef,
  PersonUuid,
  QuestionId,
  WorkflowRunId,
  WorkspaceUuid,
} from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import {
  answerModes,
  holdStatuses,
  questionAnswer,
  questionOption,
  secretRequest,
  type QuestionAnswer,
} from '../../../shared/api/approval-words.ts'
import { withoutUndefined } from '../../../shared/lib/without-undefined.ts'
import { int, nullableInt, nullableJson, nullableTime, text, time } from '../../db/columns.ts'
import {
  agentRef,
  conversationId,
  messageId,
  personRef,
  questionId,
  runId,
  taskId,
  workflowRunId,
  workspaceUuid,
} from '../../db/id-columns.ts'
import { pageById, type IdPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import { onlyVisibleWork, type WorkViewer } from '../projects/work-visibility.ts'

const questions = table(
  'questions',
  {
    id: questionId,
    workspaceId: workspaceUuid,
    /** The asking agent. */
    agentRef,
    runId,
    /** `tsk_...` */
    taskId: taskId.nullable(),
    conversationId: conversationId.nullable(),
    sessionId: text,
    status: z.enum(holdStatuses),
    prompt: text,
    answerMode: z.enum(answerModes),
    options: nullableJson(z.array(questionOption)),
    secretRequest: nullableJson(secretRequest),
    answer: nullableJson(questionAnswer),
    /** `usr_...` */
    answeredByRef: personRef.nullable(),
    answeredAt: nullableTime,
    messageId: messageId.nullable(),
    /** The workflow run (`flr_`) that asks; null: the agent does. */
    workflowRunId: workflowRunId.nullable(),
    /** The number of its call that asks; null: what to do about a stall. */
    workflowCall: nullableInt,
    /** The asking run waits for the answer until then, and reads it itself; null: it stops. */
    waitUntil: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { agentRef: 'agent_id', answeredByRef: 'answered_by' } },
)
export type QuestionRow = RowOf<typeof questions>
export type NewQuestion = Omit<
  QuestionRow,
  | 'status'
  | 'answer'
  | 'answeredByRef'
  | 'answeredAt'
  | 'version'
  | 'updatedAt'
  | 'messageId'
  | 'workflowRunId'
  | 'workflowCall'
  | 'waitUntil'
> &
  Partial<Pick<QuestionRow, 'workflowRunId' | 'workflowCall' | 'waitUntil'>>

/** Written out, as the indexes of what is open have it: SQLite takes them for no bound value. */
const isOpen = "status = 'open'"

export async function insertQuestion(db: Db, question: NewQuestion): Promise<void> {
  await questions.insert(db, { ...question, status: 'open', updatedAt: question.createdAt })
}

export async function findQuestion(db: Db, workspaceId: WorkspaceUuid, id: QuestionId): Promise<QuestionRow | null> {
  return questions.find(db, { workspaceId, id })
}

/** The open question that this message shows. */
export async function findQuestionByMessage(db: Db, messageId: MessageId): Promise<QuestionRow | null> {
  return questions.find(db, { messageId, status: 'open' })
}

/** Stores the message that shows the question, and its conversation. */
export async function setQuestionMessage(
  db: Db,
  shown: { questionId: QuestionId; messageId: MessageId; conversationId: ConversationId },
): Promise<void> {
  const { questionId: id, messageId, conversationId } = shown
  await questions.update(db, { id }, { messageId, conversationId })
}

/** Closes an open question. `by` null: the system. Returns false when somebody else was first. */
export async function resolveQuestion(
  db: Db,
  question: QuestionRow,
  resolution: { answer: QuestionAnswer | null; by: PersonRef | null; at: number },
): Promise<boolean> {
  const { id, version } = question
  const changed = await questions.update(
    db,
    { id, version, status: 'open' },
    {
      status: 'resolved',
      answer: resolution.answer,
      answeredByRef: resolution.by,
      answeredAt: resolution.by === null ? null : resolution.at,
      updatedAt: resolution.at,
      version: version + 1,
    },
  )
  return changed === 1
}

type SearchedFields = 'status' | 'taskId' | 'runId' | 'sessionId' | 'conversationId' | 'agentRef'
export interface QuestionFilter extends IdPage, Partial<Pick<QuestionRow, SearchedFields>> {
  workspaceId: WorkspaceUuid
  /** The viewer whose visible questions are listed; left out: all questions. */
  visibleTo?: WorkViewer
}

/** Lists questions newest first (upwards from a cursor that pages back); returns one row more than `limit`. */
export async function listQuestions(db: Db, filter: QuestionFilter): Promise<QuestionRow[]> {
  const { workspaceId, status, taskId, runId, sessionId, conversationId, agentRef, visibleTo } = filter
  const equal = withoutUndefined({ workspaceId, taskId, runId, sessionId, conversationId, agentRef })
  const query = questions.from(db).where(questions.toColumns(equal))
  if (status !== undefined) void (status === 'open' ? query.whereRaw(isOpen) : query.where({ status }))
  if (visibleTo) onlyVisibleWork(query, { viewer: visibleTo, table: 'questions' })
  return questions.list(pageById(query, filter))
}

/** UUIDs of the people who answered what the program of a workflow run asked. */
export async function listAnswerers(db: Db, workflowRunId: WorkflowRunId): Promise<PersonUuid[]> {
  return db('questions')
    .join('users', 'users.public_id', 'questions.answered_by')
    .where({ workflow_run_id: workflowRunId })
    .distinct()
    .pluck('users.id')
}

/**
 * Lists open questions of runs, agents, tasks or workflow runs, oldest first; those that a program asked in the same millisecond
 * in the order of its calls. What a workflow asks after a run is no question of the run, nor of its agent.
 */
export async function listOpenQuestions(
  db: Db,
  column: 'run_id' | 'agent_id' | 'task_id' | 'workflow_run_id',
  ids: readonly string[],
): Promise<QuestionRow[]> {
  if (ids.length === 0) return []
  const query = questions
    .from(db)
    .whereRaw(isOpen)
    .whereIn(column, [...ids])
  if (column === 'run_id' || column === 'agent_id') void query.whereNull('workflow_run_id')
  return questions.list(query.orderBy(['created_at', 'workflow_call', 'id']))
}

/** Lists open questions whose runs have waited long enough, oldest first. */
export async function listOverdueQuestions(
  db: Db,
  { now, limit }: { now: number; limit: number },
): Promise<QuestionRow[]> {
  return questions.list(
    questions.from(db).whereRaw(isOpen).where('wait_until', '<=', now).orderBy('wait_until').limit(limit),
  )
}
