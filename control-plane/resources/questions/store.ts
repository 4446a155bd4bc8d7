import { z } from 'zod'
import {
  answerModes,
  gateStatuses,
  questionAnswer,
  questionOption,
  secretRequest,
  type QuestionAnswer,
} from '../../../shared/api/approval-words.ts'
import { int, nullableJson, nullableText, nullableTime, text, time, toNullableJson } from '../../db/columns.ts'
import { pageById, type IdPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { hiddenAgents, type GateViewer } from '../agents/hidden-agents.ts'

const row = z
  .object({
    id: text,
    workspace_id: text,
    agent_id: text,
    run_id: text,
    task_id: nullableText,
    conversation_id: nullableText,
    session_id: text,
    status: z.enum(gateStatuses),
    prompt: text,
    answer_mode: z.enum(answerModes),
    options: nullableJson(z.array(questionOption)),
    secret_request: nullableJson(secretRequest),
    answer: nullableJson(questionAnswer),
    answered_by: nullableText,
    answered_at: nullableTime,
    message_id: nullableText,
    version: int,
    created_at: time,
    updated_at: time,
  })
  .transform((r) => ({
    id: r.id,
    workspaceId: r.workspace_id,
    /** The agent that asks. */
    agentId: r.agent_id,
    runId: r.run_id,
    /** `tsk_...` */
    taskId: r.task_id,
    conversationId: r.conversation_id,
    sessionId: r.session_id,
    status: r.status,
    prompt: r.prompt,
    answerMode: r.answer_mode,
    options: r.options,
    secretRequest: r.secret_request,
    answer: r.answer,
    /** `usr_...` */
    answeredBy: r.answered_by,
    answeredAt: r.answered_at,
    messageId: r.message_id,
    version: r.version,
    createdAt: r.created_at,
    updatedAt: r.updated_at,
  }))
export type QuestionRow = z.infer<typeof row>
export type NewQuestion = Omit<
  QuestionRow,
  'status' | 'answer' | 'answeredBy' | 'answeredAt' | 'version' | 'updatedAt' | 'messageId'
>

export async function insertQuestion(db: Db, question: NewQuestion): Promise<void> {
  await db('questions').insert({
    id: question.id,
    workspace_id: question.workspaceId,
    agent_id: question.agentId,
    run_id: question.runId,
    task_id: question.taskId,
    conversation_id: question.conversationId,
    session_id: question.sessionId,
    status: 'open',
    prompt: question.prompt,
    answer_mode: question.answerMode,
    options: toNullableJson(question.options),
    secret_request: toNullableJson(question.secretRequest),
    created_at: question.createdAt,
    updated_at: question.createdAt,
  })
}

export async function findQuestion(db: Db, workspaceId: string, id: string): Promise<QuestionRow | null> {
  const found: unknown = await db('questions').where({ workspace_id: workspaceId, id }).first()
  return found === undefined ? null : row.parse(found)
}

/** The open question that this message shows. */
export async function findQuestionByMessage(db: Db, messageId: string): Promise<QuestionRow | null> {
  const found: unknown = await db('questions').where({ message_id: messageId, status: 'open' }).first()
  return found === undefined ? null : row.parse(found)
}

/** The message that shows the question, and the conversation it stands in. */
export async function setQuestionMessage(
  db: Db,
  shown: { questionId: string; messageId: string; conversationId: string },
): Promise<void> {
  await db('questions')
    .where({ id: shown.questionId })
    .update({ message_id: shown.messageId, conversation_id: shown.conversationId })
}

/** Closes an open question. `by` null: the system. False when somebody else was first. */
export async function resolveQuestion(
  db: Db,
  question: QuestionRow,
  resolution: { answer: QuestionAnswer | null; by: string | null; at: number },
): Promise<boolean> {
  const changed = await db('questions')
    .where({ id: question.id, version: question.version, status: 'open' })
    .update({
      status: 'resolved',
      answer: toNullableJson(resolution.answer),
      answered_by: resolution.by,
      answered_at: resolution.by === null ? null : resolution.at,
      updated_at: resolution.at,
      version: question.version + 1,
    })
  return changed === 1
}

export interface QuestionFilter extends IdPage {
  workspaceId: string
  status?: string
  taskId?: string
  runId?: string
  sessionId?: string
  conversationId?: string
  agentId?: string
  /** When set, those of private agents are listed only for whom they concern. */
  visibleTo?: GateViewer
}

/** Newest first (with a cursor that pages back, from it upwards); one row more than `limit`. */
export async function listQuestions(db: Db, filter: QuestionFilter): Promise<QuestionRow[]> {
  const query = db('questions').where({ workspace_id: filter.workspaceId })
  const equal = {
    status: filter.status,
    task_id: filter.taskId,
    run_id: filter.runId,
    session_id: filter.sessionId,
    conversation_id: filter.conversationId,
    agent_id: filter.agentId,
  }
  for (const [column, value] of Object.entries(equal)) if (value !== undefined) void query.where(column, value)
  const { visibleTo } = filter
  if (visibleTo) void query.whereNotExists((hidden) => hiddenAgents(hidden, { viewer: visibleTo, table: 'questions' }))
  const rows: unknown[] = await pageById(query, filter)
  return rows.map((value) => row.parse(value))
}

/** Open questions of runs or tasks, oldest first. */
export async function listOpenQuestions(
  db: Db,
  column: 'run_id' | 'task_id',
  ids: readonly string[],
): Promise<QuestionRow[]> {
  if (ids.length === 0) return []
  const rows: unknown[] = await db('questions')
    .where({ status: 'open' })
    .whereIn(column, [...ids])
    .orderBy([{ column: 'created_at' }, { column: 'id' }])
  return rows.map((value) => row.parse(value))
}
