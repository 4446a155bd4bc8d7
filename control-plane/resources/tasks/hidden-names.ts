import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { listAgentIdentities } from '../agents/identity-store.ts'
import { isVisible, viewerOf } from '../agents/rules.ts'

/** The parts of a task's history that name somebody. */
interface Telling {
  actor: { type: string; id: string | null }
  data: Readonly<Record<string, unknown>>
}

const isAgentId = (value: unknown): value is string => typeof value === 'string' && value.startsWith('agt_')

/** The same entries without the ids of private agents that the caller does not see: what they did stays, who they are does not. */
export async function withoutHiddenAgents<Entry extends Telling>(
  db: Db,
  caller: Caller,
  entries: readonly Entry[],
): Promise<Entry[]> {
  const named = new Set(entries.flatMap(({ actor, data }) => [actor.id, ...valuesIn(data)].filter(isAgentId)))
  const viewer = viewerOf(caller)
  const known = await listAgentIdentities(db, [...named])
  const hidden = new Set(known.filter((agent) => !isVisible(agent, viewer)).map(({ id }) => id))
  if (hidden.size === 0) return [...entries]
  const shown = (id: unknown) => (isAgentId(id) && hidden.has(id) ? null : id)
  return entries.map((entry) => ({
    ...entry,
    actor: { ...entry.actor, id: shown(entry.actor.id) },
    data: replaced(entry.data, shown),
  }))
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The values of an object and of those within it, as of the watcher that was added. */
const valuesIn = (data: Readonly<Record<string, unknown>>): unknown[] =>
  Object.values(data).flatMap((value) => (isObject(value) ? valuesIn(value) : [value]))

const replaced = (
  data: Readonly<Record<string, unknown>>,
  shown: (value: unknown) => unknown,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, isObject(value) ? replaced(value, shown) : shown(value)]),
  )
