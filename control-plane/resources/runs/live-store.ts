import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { runs, type RunRow } from './store.ts'

/** Runs that have not ended. They are few beside the others, and have indexes of their own. */

/** Runs of a workspace that no device holds, oldest first. */
export async function listQueued(db: Db, of: { workspaceId: string; limit: number }): Promise<RunRow[]> {
  return runs.list(
    runs
      .from(db)
      .whereNull('ended_at')
      .where({ status: 'queued', workspace_id: of.workspaceId })
      .orderBy([{ column: 'created_at' }, { column: 'id' }])
      .limit(of.limit),
  )
}

/** Live runs that a device holds or is offered. */
export async function listLiveOfDevice(db: Db, device: string): Promise<RunRow[]> {
  return runs.list(runs.from(db).whereNull('ended_at').where({ device }).whereNot({ lease_state: 'none' }))
}

const occupancy = query(
  `select device as one, '' as other, count(*) as live from runs
   where ended_at is null and lease_state <> 'none' and device in ? group by device
   union all
   select agent_id, harness, 0 from runs where workspace_id = ? and exit_reason = 'rate_limited' and ended_at > ?`,
  z.object({ one: text, other: text, live: int }),
)

/** What a new run finds taken. One query, since a wake waits for it. */
export interface Occupancy {
  /** Live runs that each device holds or is offered; devices without any are not in it. */
  used: Map<string, number>
  /** Agents and harnesses of the workspace whose run was ended by its provider's rate limit after `since`. */
  limited: { agentId: string; harness: string }[]
}

export async function loadOccupancy(
  db: Db,
  of: { devices: readonly string[]; workspaceId: string; since: number },
): Promise<Occupancy> {
  const rows = await occupancy.list(db, [of.devices, of.workspaceId, of.since])
  const used = new Map(rows.filter((row) => row.live > 0).map((row) => [row.one, row.live]))
  const limited = rows.filter((row) => row.live === 0).map((row) => ({ agentId: row.one, harness: row.other }))
  return { used, limited }
}

/** Of all workspaces, oldest first. */
export async function listRunning(db: Db, limit: number): Promise<RunRow[]> {
  return runs.list(runs.from(db).whereNull('ended_at').where({ status: 'running' }).orderBy('created_at').limit(limit))
}

export async function listLiveOfWorkspace(db: Db, workspaceId: string): Promise<RunRow[]> {
  return runs.list(runs.from(db).whereNull('ended_at').where({ workspace_id: workspaceId }).orderBy('created_at'))
}

/** Live runs at whose root is this person, in one workspace or in all of them. */
export async function listLiveCausedBy(db: Db, of: { userId: string; workspaceId?: string }): Promise<RunRow[]> {
  return runs.list(
    runs
      .from(db)
      .whereNull('ended_at')
      .where({
        caused_by_user_id: of.userId,
        ...(of.workspaceId !== undefined && { workspace_id: of.workspaceId }),
      })
      .orderBy('created_at'),
  )
}

/** Live runs of a task, oldest first. */
export const listLiveOfTask = (db: Db, taskId: string): Promise<RunRow[]> => listLiveOfTasks(db, [taskId])

const liveOfTasks = runs.query('where ended_at is null and task_id in ? order by created_at, id')

export async function listLiveOfTasks(db: Db, taskIds: readonly string[]): Promise<RunRow[]> {
  if (taskIds.length === 0) return []
  return liveOfTasks.list(db, [taskIds])
}

/** Live runs of a conversation, oldest first; of one agent when it is named. */
export async function listLiveOfConversation(
  db: Db,
  of: { conversationId: string; agentId?: string },
): Promise<RunRow[]> {
  const query = runs.from(db).whereNull('ended_at').where({ conversation_id: of.conversationId })
  if (of.agentId !== undefined) void query.where({ agent_id: of.agentId })
  return runs.list(query.orderBy([{ column: 'created_at' }, { column: 'id' }]))
}

export async function listLiveOfAgent(db: Db, agentId: string): Promise<RunRow[]> {
  return runs.list(runs.from(db).whereNull('ended_at').where({ agent_id: agentId }).orderBy('created_at'))
}
