import type { RunId, TaskId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import { actorOf, type Caller } from '../../../http/callers.ts'
import { lookUpRun } from '../../runs/lookup.ts'
import { findRun } from '../../runs/store.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import type { RevisionDraft } from '../steps/own/publish.ts'

export type Authored = Pick<RevisionDraft, 'author'> & { taskId: TaskId | null; runId: RunId | null }

interface Named {
  taskId?: string | null | undefined
  runId?: string | null | undefined
}

/**
 * Returns who writes, and on which task and run. The token of an agent says that: naming another task or run is refused. A person may name
 * those that they see.
 */
export async function authorOf(db: Db, caller: Caller, named: Named = {}): Promise<Authored> {
  const who = { author: actorOf(caller) }
  const task = named.taskId == null ? null : await lookUpTask(db, caller, named.taskId)
  if (named.taskId != null && task === null) unknown('taskId', 'task')
  const run = named.runId == null ? null : await lookUpRun(db, caller, named.runId)
  if (named.runId != null && run?.isVisible !== true) unknown('runId', 'run')
  if (caller.kind === 'person') return { ...who, taskId: task?.id ?? null, runId: run?.run.id ?? null }
  const { runId } = caller
  const taskId = (await findRun(db, runId))?.taskId ?? null
  if (run !== null && run.run.id !== runId) notOwn('runId', 'run')
  if (task !== null && task.id !== taskId) notOwn('taskId', 'task')
  return { ...who, taskId, runId }
}

const unknown = (param: keyof Named, what: string): never =>
  fail('resource_not_found', { param, message: `There is no such ${what} that you can see.` })

const notOwn = (param: keyof Named, what: string): never =>
  fail('validation_error', {
    param,
    message: `Within a run a page belongs to the ${what} of the run; leave ${param} out.`,
  })
