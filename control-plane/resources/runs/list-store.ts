import type { AgentRef, ConversationId, RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import type { Db } from '../../db/open.ts'
import { onlyVisibleWork, type WorkViewer } from '../projects/work-visibility.ts'
import { runs, type RunRow } from './store.ts'

// Runs as people and agents list them, with those left out that they may not see.

export async function listRunsByIds(
  db: Db,
  workspaceId: WorkspaceUuid,
  ids: readonly RunId[],
  visibleTo?: WorkViewer,
): Promise<RunRow[]> {
  if (ids.length === 0) return []
  const query = runs
    .from(db)
    .where({ workspace_id: workspaceId })
    .whereIn('id', [...ids])
  if (visibleTo) onlyVisibleWork(query, { viewer: visibleTo, table: 'runs' })
  return runs.list(query)
}

export interface RunFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  agentRef?: AgentRef
  /** The viewer whose visible runs are listed; left out: all runs. */
  visibleTo?: WorkViewer
  taskId?: TaskId
  statuses?: readonly string[]
  triggerSources?: readonly string[]
  since?: number
  until?: number
}

/** Newest first; asks for one row more than `limit` so that the caller knows whether there is a next page. */
export async function listRuns(db: Db, filter: RunFilter): Promise<RunRow[]> {
  const query = runs.from(db).where({ workspace_id: filter.workspaceId })
  if (filter.agentRef !== undefined) void query.where({ agent_id: filter.agentRef })
  if (filter.visibleTo) onlyVisibleWork(query, { viewer: filter.visibleTo, table: 'runs' })
  if (filter.taskId !== undefined) void query.where({ task_id: filter.taskId })
  if (filter.statuses) onlyOfStatuses(query, filter.statuses)
  if (filter.triggerSources) void query.whereIn('trigger_source', [...filter.triggerSources])
  if (filter.since !== undefined) void query.where('created_at', '>=', filter.since)
  if (filter.until !== undefined) void query.where('created_at', '<', filter.until)
  return runs.list(newestFirst(query, filter))
}

/** Live runs are few, and have indexes of their own. `of`: the table of the runs, in a query of several: `r.`. */
export function onlyOfStatuses(query: Knex.QueryBuilder, statuses: readonly string[], of = ''): void {
  void query.whereIn(`${of}status`, [...statuses])
  if (statuses.every((status) => liveStatuses.has(status))) void query.whereNull(`${of}ended_at`)
}
const liveStatuses: ReadonlySet<string> = new Set(['queued', 'running'])

/** Runs of a conversation, oldest first, after this one. */
export async function listRunsOfConversation(
  db: Db,
  of: { conversationId: ConversationId; after: { createdAt: number; id: RunId } | null; limit: number },
): Promise<RunRow[]> {
  const query = runs.from(db).where({ conversation_id: of.conversationId })
  if (of.after) void query.whereRaw('(created_at, id) > (?, ?)', [of.after.createdAt, of.after.id])
  return runs.list(query.orderBy(['created_at', 'id']).limit(of.limit))
}
