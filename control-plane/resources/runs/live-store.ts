import {
  idFrom,
  type AgentRef,
  type ConversationId,
  type DeviceRef,
  type PersonUuid,
  type TaskId,
  type WorkspaceUuid,
} from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { countBy } from '../../db/reads.ts'
import { query } from '../../db/statement.ts'
import type { QuotaWindow } from '../quotas/store.ts'
import { runs, type RunRow } from './store.ts'

// Runs that have not ended. They are few beside the others, and have indexes of their own.

/**
 * A run's place among those that wait. In the order of this very expression SQLite takes the index of live runs, and not that of
 * all runs of the workspace.
 */
export const placeInLine = 'coalesce(in_line_since, created_at)'

const liveOfDevice = runs.query(`where ended_at is null and device = ? and lease_state <> 'none'`)

/** Live runs that a device holds or is offered. */
export const listLiveOfDevice = (db: Db, device: DeviceRef): Promise<RunRow[]> => liveOfDevice.list(db, [device])

const occupancy = query(
  `select 'run' as kind, device as one, harness as other, count(*) as amount from runs
   where ended_at is null and lease_state <> 'none' and device in (select public_id from devices where workspace_id = ? and removed_at is null)
   group by device, harness
   union all
   select 'pause', agent_id, harness, 0 from runs
   where workspace_id = ? and exit_reason = 'rate_limited' and limit_resets_at is null and ended_at > ?
   union all
   select 'quota', account, '', resets_at from quota_windows where workspace_id = ? and resets_at > ?
   union all
   select 'circuit', device, provider, open_until from provider_circuits where workspace_id = ? and open_until > ?`,
  z.object({ kind: z.enum(['run', 'pause', 'quota', 'circuit']), one: text, other: text, amount: int }),
)

/** The room that a new run finds taken. One query reads it, since a wake waits for it. */
export interface Occupancy {
  /** Live runs that devices hold or are offered, by device and harness. */
  live: { device: DeviceRef; harness: string; count: number }[]
  /** Agents and harnesses whose run was ended after `pausedSince` by a rate limit of which nobody said when it is over. */
  paused: { agentRef: AgentRef; harness: string }[]
  /** Accounts whose limit was reached and is not over, or has been only since `resetSince`. */
  windows: Pick<QuotaWindow, 'account' | 'resetsAt'>[]
  /** Breakers that are open, or have been after `triedSince`. */
  circuits: { device: DeviceRef; provider: string; openUntil: number }[]
}

export async function loadOccupancy(
  db: Db,
  of: { workspaceId: WorkspaceUuid; pausedSince: number; resetSince: number; triedSince: number },
): Promise<Occupancy> {
  const { workspaceId } = of
  const since = [of.pausedSince, of.resetSince, of.triedSince].flatMap((time) => [workspaceId, time])
  const rows = await occupancy.list(db, [workspaceId, ...since])
  const ofKind = (kind: string) => rows.filter((row) => row.kind === kind)
  return {
    live: ofKind('run').map(({ one, other, amount }) => ({ device: idFrom(one), harness: other, count: amount })),
    paused: ofKind('pause').map(({ one, other }) => ({ agentRef: idFrom(one), harness: other })),
    windows: ofKind('quota').map(({ one, amount }) => ({ account: one, resetsAt: amount })),
    circuits: ofKind('circuit').map(({ one, other, amount }) => ({
      device: idFrom(one),
      provider: other,
      openUntil: amount,
    })),
  }
}

const running = runs.query(
  `where ended_at is null and status = 'running' and (created_at, id) > (?, ?) order by created_at, id limit ?`,
)

/** Lists running runs of all workspaces, oldest first. `after`: the last one of the page before; null: this is the first page. */
export const listRunning = (db: Db, page: { after: RunRow | null; limit: number }): Promise<RunRow[]> =>
  running.list(db, [page.after?.createdAt ?? -1, page.after?.id ?? '', page.limit])

const liveOfWorkspace = runs.query(`where ended_at is null and workspace_id = ? order by ${placeInLine}, id limit ?`)

/** Live runs of a workspace, in the order in which they wait or waited. */
export const listLiveOfWorkspace = (db: Db, workspaceId: WorkspaceUuid, limit: number): Promise<RunRow[]> =>
  liveOfWorkspace.list(db, [workspaceId, limit])

/** Counts the live runs at whose root is this person, by workspace: in one of them, or in all. */
export async function countLiveCausedBy(
  db: Db,
  of: { personUuid: PersonUuid; workspaceId?: WorkspaceUuid },
): Promise<Map<WorkspaceUuid, number>> {
  const live = db('runs')
    .whereNull('ended_at')
    .where({ caused_by_user_id: of.personUuid, ...(of.workspaceId !== undefined && { workspace_id: of.workspaceId }) })
  return countBy(live, 'workspace_id')
}

/** Live runs of a task, oldest first. */
export const listLiveOfTask = (db: Db, taskId: TaskId): Promise<RunRow[]> => listLiveOfTasks(db, [taskId])

const liveOfTasks = runs.query('where ended_at is null and task_id in ? order by created_at, id')

export async function listLiveOfTasks(db: Db, taskIds: readonly TaskId[]): Promise<RunRow[]> {
  if (taskIds.length === 0) return []
  return liveOfTasks.list(db, [taskIds])
}

/** Live runs of a conversation, oldest first; of one agent when it is named. */
export async function listLiveOfConversation(
  db: Db,
  of: { conversationId: ConversationId; agentRef?: AgentRef },
): Promise<RunRow[]> {
  const query = runs.from(db).whereNull('ended_at').where({ conversation_id: of.conversationId })
  if (of.agentRef !== undefined) void query.where({ agent_id: of.agentRef })
  return runs.list(query.orderBy(['created_at', 'id']))
}

export async function listLiveOfAgent(db: Db, agentRef: AgentRef): Promise<RunRow[]> {
  return runs.list(runs.from(db).whereNull('ended_at').where({ agent_id: agentRef }).orderBy('created_at'))
}
