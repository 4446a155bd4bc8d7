import type { Tx } from '../../db/open.ts'
import { listAnswerers } from '../../resources/questions/store.ts'
import { authorsOf } from '../../resources/tasks/rules.ts'
import { asked } from '../../trust/askers.ts'
import type { StartedStep } from './new-call.ts'

/**
 * Returns who asked for a step, and whose words it may follow: of whoever wrote the task, and of the people who answered what the
 * program asked, since it may hand their answers on.
 */
export async function askedByStep(tx: Tx, { run, task, calls }: StartedStep) {
  const hasAsked = calls.some(({ kind }) => kind === 'ask')
  const answerers = hasAsked ? await listAnswerers(tx, run.id) : []
  const words = [...(task === null ? [] : authorsOf(task)), ...answerers]
  return asked('workflow_step', { starter: run.causedByUuid }, words)
}
