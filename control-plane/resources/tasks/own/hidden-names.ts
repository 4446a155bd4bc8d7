import { hasPrefix, type TaskId } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { listHiddenAgents } from '../../agents/lookup.ts'
import { visibleTasks } from '../lookup.ts'
import { listTasksByIds } from '../store.ts'

/** The parts of a task's history that name somebody. */
interface Telling {
  actor: { type: string; id: string | null }
  data: Readonly<Record<string, unknown>>
}

/**
 * Returns the entries without the ids of private agents, and the ids and keys of tasks in private projects, that the caller does not see:
 * what was done stays, who they are does not.
 */
export async function withoutHiddenNames<Entry extends Telling>(
  db: Db,
  caller: Caller,
  entries: readonly Entry[],
): Promise<Entry[]> {
  const named = entries.flatMap(({ actor, data }) => [actor.id, ...valuesIn(data)])
  const hiddenAgents = await listHiddenAgents(db, caller, idsIn(named, 'agt_'))
  const hidden = new Set<string>([...hiddenAgents, ...(await hiddenTasks(db, caller, named))])
  if (hidden.size === 0) return [...entries]
  const shown = (id: unknown) => (typeof id === 'string' && hidden.has(id) ? null : id)
  return entries.map((entry) => ({
    ...entry,
    actor: { ...entry.actor, id: shown(entry.actor.id) },
    data: replaced(entry.data, shown),
  }))
}

const idsIn = <Prefix extends 'agt_' | 'tsk_'>(values: readonly unknown[], prefix: Prefix) => [
  ...new Set(values.flatMap((value) => (typeof value === 'string' && hasPrefix(value, prefix) ? [value] : []))),
]

async function hiddenTasks(db: Db, caller: Caller, named: readonly unknown[]): Promise<TaskId[]> {
  const ids = idsIn(named, 'tsk_')
  const known = ids.length === 0 ? [] : await listTasksByIds(db, caller.workspaceId, ids)
  const seen = new Set(await visibleTasks(db, caller, known))
  return known.filter((task) => !seen.has(task)).map(({ id }) => id)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The values of an object and of those within it, as of the watcher that was added. */
const valuesIn = (data: Readonly<Record<string, unknown>>): unknown[] =>
  Object.values(data).flatMap((value) => (isObject(value) ? valuesIn(value) : [value]))

/** The `key` beside the id of a hidden task is that task's. */
function replaced(
  data: Readonly<Record<string, unknown>>,
  shown: (value: unknown) => unknown,
): Record<string, unknown> {
  const isHidden = idsIn(Object.values(data), 'tsk_').some((id) => shown(id) === null)
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => {
      if (isObject(value)) return [name, replaced(value, shown)]
      return [name, isHidden && name === 'key' ? null : shown(value)]
    }),
  )
}
