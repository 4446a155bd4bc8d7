import { fail } from '../../../../shared/api/errors.ts'
import type { learningRoutes } from '../../../../shared/api/learnings.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { lookUpConversation } from '../../conversations/lookup.ts'
import { lookUpRun } from '../../runs/lookup.ts'
import { findRun, type RunRow } from '../../runs/store.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import type { LearningRow } from '../store.ts'

type Named = Pick<HandlerInput<typeof learningRoutes.create>['body'], 'runId' | 'taskId' | 'conversationId'>

/**
 * Finds where a new learning comes from. An agent's comes from its own run, and unless it says otherwise from the task and the conversation
 * of that. Fails with `run_not_found`, `task_not_found` or `conversation_not_found`.
 */
export async function originOf(
  db: Db,
  caller: Caller,
  { runId, taskId, conversationId }: Named,
): Promise<Pick<LearningRow, 'runId' | 'taskId' | 'conversationId'>> {
  const run = await runOf(db, caller, runId)
  const own = caller.kind === 'agent' ? run : null
  const task =
    taskId === undefined ? null : ((await lookUpTask(db, caller, taskId)) ?? unknown('task_not_found', 'taskId'))
  const conversation =
    conversationId === undefined
      ? null
      : ((await lookUpConversation(db, caller, conversationId)) ?? unknown('conversation_not_found', 'conversationId'))
  return {
    runId: run?.id ?? null,
    taskId: task?.id ?? own?.taskId ?? null,
    conversationId: conversation?.id ?? own?.conversationId ?? null,
  }
}

async function runOf(db: Db, caller: Caller, reference: string | undefined): Promise<RunRow | null> {
  if (caller.kind === 'agent') {
    const isOwn = reference === undefined || reference === 'current' || reference === caller.runId
    return isOwn ? findRun(db, caller.runId) : unknown('run_not_found', 'runId')
  }
  if (reference === undefined) return null
  const found = await lookUpRun(db, caller, reference)
  return found?.isVisible === true ? found.run : unknown('run_not_found', 'runId')
}

const unknown = (code: 'run_not_found' | 'task_not_found' | 'conversation_not_found', param: keyof Named): never =>
  fail(code, { param })
