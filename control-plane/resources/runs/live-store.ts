import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { parseRun, runQuery, type RunRow } from './store.ts'

/** Runs that have not ended. They are few beside the others, and have indexes of their own. */

/** Runs of a workspace that no device holds, oldest first. */
export async function listQueued(db: Db, filter: { workspaceId?: string; limit: number }): Promise<RunRow[]> {
  const query = db('runs').whereNull('ended_at').where({ status: 'queued' })
  if (filter.workspaceId !== undefined) void query.where({ workspace_id: filter.workspaceId })
  const rows: unknown[] = await query.orderBy([{ column: 'created_at' }, { column: 'id' }]).limit(filter.limit)
  return rows.map(parseRun)
}

/** Live runs that a device holds or is offered. */
export async function listLiveOfDevice(db: Db, device: string): Promise<RunRow[]> {
  const rows: unknown[] = await db('runs').whereNull('ended_at').where({ device }).whereNot({ lease_state: 'none' })
  return rows.map(parseRun)
}

const liveOfDevices = query(
  `select device, count(*) as n from runs
   where ended_at is null and lease_state <> 'none' and device in ? group by device`,
  z.object({ device: text, n: int }),
)

export async function countLiveOfDevices(db: Db, devices: readonly string[]): Promise<Map<string, number>> {
  const rows = await liveOfDevices.list(db, [devices])
  return new Map(rows.map((r) => [r.device, r.n]))
}

export async function listLiveRuns(db: Db, filter: { status: 'queued' | 'running'; limit: number }): Promise<RunRow[]> {
  const rows: unknown[] = await db('runs')
    .whereNull('ended_at')
    .where({ status: filter.status })
    .orderBy('created_at')
    .limit(filter.limit)
  return rows.map(parseRun)
}

export async function listLiveOfWorkspace(db: Db, workspaceId: string): Promise<RunRow[]> {
  const rows: unknown[] = await db('runs')
    .whereNull('ended_at')
    .where({ workspace_id: workspaceId })
    .orderBy('created_at')
  return rows.map(parseRun)
}

/** Live runs of a task, oldest first. */
export const listLiveOfTask = (db: Db, taskId: string): Promise<RunRow[]> => listLiveOfTasks(db, [taskId])

const liveOfTasks = runQuery('where ended_at is null and task_id in ? order by created_at, id')

export async function listLiveOfTasks(db: Db, taskIds: readonly string[]): Promise<RunRow[]> {
  if (taskIds.length === 0) return []
  return liveOfTasks.list(db, [taskIds])
}

/** Live runs of a conversation, oldest first; of one agent when it is named. */
export async function listLiveOfConversation(
  db: Db,
  of: { conversationId: string; agentId?: string },
): Promise<RunRow[]> {
  const query = db('runs').whereNull('ended_at').where({ conversation_id: of.conversationId })
  if (of.agentId !== undefined) void query.where({ agent_id: of.agentId })
  const rows: unknown[] = await query.orderBy([{ column: 'created_at' }, { column: 'id' }])
  return rows.map(parseRun)
}

export async function listLiveOfAgent(db: Db, agentId: string): Promise<RunRow[]> {
  const rows: unknown[] = await db('runs').whereNull('ended_at').where({ agent_id: agentId }).orderBy('created_at')
  return rows.map(parseRun)
}
