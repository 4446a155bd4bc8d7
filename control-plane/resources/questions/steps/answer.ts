import type { MessageId, PersonRef } from '../../../../shared/lib/ids.ts'
import type { QuestionAnswer } from '../../../../shared/api/approval-words.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { asked } from '../../../trust/askers.ts'
import { requestWake } from '../../../run/wakes/wakes.ts'
import { causeOf, speakersOf } from '../../runs/cause.ts'
import { findRun } from '../../runs/store.ts'
import { recordHold } from '../../tasks/hold-activity.ts'
import { takeAnswer } from '../../workflows/answer.ts'
import { recordEvent } from '../../webhooks/event-store.ts'
import { answeredPrompt, questionWakeKey, systemAnswer } from '../rules.ts'
import { findQuestionByMessage, resolveQuestion, type QuestionRow } from '../store.ts'

/** The person who answers. */
export interface Answerer {
  /** `usr_...` */
  personRef: PersonRef
  name: string
}

/**
 * A reply in the thread that an open question's message starts answers it with its text, whatever the mode, except a
 * `secret_input`, whose value must not be in a message. Returns true when it did, and wakes the asking agent.
 */
export async function answerFromReply(
  tx: Db,
  reply: { threadStart: MessageId; body: string; person: Answerer; world: World },
): Promise<boolean> {
  const question = await findQuestionByMessage(tx, reply.threadStart)
  if (question === null || question.answerMode === 'secret_input') return false
  return closeAnswered(tx, question, {
    answer: { text: reply.body, selected: null },
    person: reply.person,
    world: reply.world,
  })
}

/**
 * Stores the answer and wakes the agent in the session in which it asked. A run that waits for it reads it itself, and one of a
 * workflow moves its program. Returns false when another answer was first.
 */
export async function closeAnswered(
  tx: Db,
  question: QuestionRow,
  given: { answer: QuestionAnswer | null; person: Answerer; world: World },
): Promise<boolean> {
  const { answer, person, world } = given
  const resolution = { answer, by: person.personRef, at: world.now() }
  if (!(await resolveQuestion(tx, question, resolution))) return false
  const { id: subjectId, workspaceId } = question
  await recordEvent(tx, { type: 'question.answered', workspaceId, subjectId, world })
  await recordHold(tx, {
    taskId: question.taskId,
    kind: 'question.answered',
    actor: { type: 'user', id: person.personRef },
    // An answer never holds a secret.
    data: { questionId: question.id, answer },
    world,
  })
  if (question.workflowRunId !== null) {
    const { workflowRunId, workflowCall } = question
    await takeAnswer(tx, { ...question, workflowRunId, workflowCall }, { answer, at: resolution.at })
    return true
  }
  const run = await findRun(tx, question.runId)
  if (question.waitUntil !== null && run?.endedAt === null) return true
  await requestWake(
    tx,
    {
      // The wake goes on with that run, and so with the words that the run follows.
      ...asked('approval_resolved', { answerer: await causeOf(tx, person.personRef) }, speakersOf(run)),
      workspaceId: question.workspaceId,
      agentRef: question.agentRef,
      requestedByRef: person.personRef,
      prompt: answeredPrompt(question, { answer, by: { id: person.personRef, name: person.name } }),
      taskId: question.taskId,
      conversationId: question.conversationId,
      parentRunId: question.runId,
      key: questionWakeKey(question.id),
    },
    world,
  )
  return true
}

/** Closes a question that nobody can answer any more; nobody is woken. */
export async function closeBySystem(
  tx: Db,
  question: QuestionRow,
  { reason, world }: { reason: Parameters<typeof systemAnswer>[1]; world: World },
): Promise<void> {
  const answer = systemAnswer(question, reason)
  if (!(await resolveQuestion(tx, question, { answer, by: null, at: world.now() }))) return
  const { id: subjectId, workspaceId } = question
  await recordEvent(tx, { type: 'question.closed', workspaceId, subjectId, world })
  await recordHold(tx, {
    taskId: question.taskId,
    kind: 'question.closed',
    actor: { type: 'system', id: null },
    data: { questionId: question.id, reason },
    world,
  })
}
