import type { QuestionId } from '../../../shared/lib/ids.ts'
import type { AnswerMode } from '../../../shared/api/approval-words.ts'
import { maskSecrets } from '../../../shared/lib/secret-patterns.ts'
import { secretIn } from '../../../shared/lib/secret-shapes.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Tx } from '../../db/open.ts'
import { postMessage } from '../../resources/conversations/steps/post.ts'
import { ensureTaskConversation } from '../../resources/conversations/task-conversation.ts'
import { recordAsked } from '../../resources/questions/steps/asked.ts'
import { insertQuestion, setQuestionMessage, type NewQuestion } from '../../resources/questions/store.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { findTaskById } from '../../resources/tasks/store.ts'
import type { WorkflowRunRow } from '../../resources/workflows/run-store.ts'

export interface WorkflowQuestion {
  prompt: string
  answerMode: AnswerMode & ('free_text' | 'single_select' | 'multi_select')
  options: { key: string; label: string }[] | null
  /** The call that asks; null: what to do about a stall. */
  call: number | null
  /** The run whose work the question is about: a question always is about one. */
  about: RunRow
}

/** Opens a question of the workflow, and shows it on the task. Returns its id. */
export async function askPerson(
  tx: Tx,
  run: WorkflowRunRow,
  { world, ...asked }: WorkflowQuestion & { world: World },
): Promise<QuestionId> {
  const { about, call, answerMode, options } = asked
  const question: NewQuestion = {
    id: world.id('qst_'),
    workspaceId: run.workspaceId,
    agentRef: about.agentRef,
    runId: about.id,
    taskId: run.taskId,
    conversationId: null,
    sessionId: about.sessionId ?? about.id,
    prompt: maskSecrets(asked.prompt),
    answerMode,
    options,
    secretRequest: null,
    createdAt: world.now(),
    workflowRunId: run.id,
    workflowCall: call,
  }
  await insertQuestion(tx, question)
  const by = { actor: { type: 'system', id: null }, data: { workflowRunId: run.id } } as const
  await recordAsked(tx, question, { ...by, world })
  await show(tx, question, world)
  return question.id
}

/** Posts it on the task, so that readers can answer in its thread. */
async function show(tx: Tx, { id, prompt, options, taskId }: NewQuestion, world: World): Promise<void> {
  const task = taskId === null ? null : await findTaskById(tx, taskId)
  if (task === null) return
  const lines = (options ?? []).map(({ key, label }) => `- \`${key}\`: ${label}`)
  const body = lines.length === 0 ? prompt : `${prompt}\n\n${lines.join('\n')}`
  const conversation = await ensureTaskConversation(tx, { task, world })
  // A text that would be refused as a message is not posted; the question is there all the same.
  if (conversation.archivedAt !== null || body.trim() === '' || secretIn(body) !== null) return
  const message = await postMessage(tx, { conversation, author: { type: 'system', id: null }, body, world })
  await setQuestionMessage(tx, { questionId: id, messageId: message.id, conversationId: conversation.id })
}
