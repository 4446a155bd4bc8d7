import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Question } from '../../../../shared/api/questions.ts'
import type { QuestionRow } from '../store.ts'

/** A handler adds the step of a workflow, which is read above the rows of questions. */
export function presentQuestion(question: QuestionRow): Omit<Question, 'workflowStep'> {
  return {
    object: 'question',
    id: question.id,
    workspaceId: question.workspaceId,
    taskId: question.taskId,
    conversationId: question.conversationId,
    runId: question.runId,
    sessionId: question.sessionId,
    status: question.status,
    prompt: question.prompt,
    answerMode: question.answerMode,
    options: question.options,
    secretRequest: question.secretRequest,
    askedBy: question.workflowRunId === null ? { type: 'agent', id: question.agentRef } : { type: 'system', id: null },
    // The answer of a `secret_input` is never shown.
    answer: question.answer && { ...question.answer, secretId: null },
    answeredBy: question.answeredByRef === null ? null : { type: 'user', id: question.answeredByRef },
    answeredAt: toTimestamp(question.answeredAt),
    waitUntil: toTimestamp(question.waitUntil),
    createdAt: toTimestamp(question.createdAt),
    updatedAt: toTimestamp(question.updatedAt),
  }
}
