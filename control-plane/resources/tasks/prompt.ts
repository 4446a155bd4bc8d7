import { toTimestamp } from '../../../shared/api/ids.ts'
import type { TaskRow } from './store.ts'

/** The prompt of an agent that is woken for a task. `reason` is a sentence; `extra` goes below the task. */
export function taskPrompt(task: TaskRow, { reason, extra }: { reason: string; extra?: string | null }): string {
  const facts = [
    `Status: ${task.status}`,
    `Priority: ${task.priority}`,
    ...(task.dueAt === null ? [] : [`Due: ${toTimestamp(task.dueAt)}`]),
    ...(task.branchName === null ? [] : [`Branch: ${task.branchName}`]),
    ...(task.baseBranch === null ? [] : [`Base branch: ${task.baseBranch}`]),
  ]
  const parts = [
    reason,
    `Task ${task.key}: ${task.title}\n${facts.join('\n')}`,
    ...(task.description === null || task.description.trim() === '' ? [] : [task.description]),
    ...(extra == null || extra === '' ? [] : [extra]),
    `The start of this run moved the task to in_progress if it was open; you need not.`,
    `Read it with \`svc task get ${task.key} --include comments\`. When it is done, say so with \`svc task transition ${task.key} --status done\`.`,
  ]
  return parts.join('\n\n')
}
