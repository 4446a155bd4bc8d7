import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { subjectOf } from '../../conversations/rules.ts'
import { lookUpRun } from '../../runs/lookup.ts'
import { findRun } from '../../runs/store.ts'
import { lookUpTask } from '../lookup.ts'

/** Who wrote something, and on what occasion. */
export interface Authored {
  author: ReturnType<typeof subjectOf>
  taskId: string | null
  runId: string | null
  /** Of the run. */
  conversationId: string | null
}

interface Named {
  taskId?: string | null | undefined
  runId?: string | null | undefined
}

/**
 * Who writes, and on which task and run. For an agent its token says that: naming another task or run is refused. A person may name
 * those that they see.
 */
export async function authoredBy(db: Db, caller: Caller, named: Named = {}): Promise<Authored> {
  const author = subjectOf(caller)
  const task = named.taskId == null ? null : await lookUpTask(db, caller, named.taskId)
  if (named.taskId != null && task === null)
    fail('resource_not_found', { param: 'taskId', message: 'There is no such task that you can see.' })
  const run = named.runId == null ? null : await lookUpRun(db, caller, named.runId)
  if (named.runId != null && run?.isVisible !== true) fail('run_not_found', { param: 'runId' })
  if (caller.kind === 'person')
    return { author, taskId: task?.id ?? null, runId: run?.run.id ?? null, conversationId: null }
  const own = await findRun(db, caller.runId)
  const taskId = own?.taskId ?? null
  if (run !== null && run.run.id !== caller.runId) notOwn('runId', 'run')
  if (task !== null && task.id !== taskId) notOwn('taskId', 'task')
  return { author, taskId, runId: caller.runId, conversationId: own?.conversationId ?? null }
}

const notOwn = (param: keyof Named, what: string): never =>
  fail('validation_error', {
    param,
    message: `Within a run, what it writes belongs to the ${what} of the run; leave ${param} out.`,
  })
