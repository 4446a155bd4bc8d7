import type { AgentRef, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { runs, type RunRow } from './store.ts'

// Runs that make idle sessions smaller, and the runs whose sessions they are.

const idle = runs.query(
  `where workspace_id = ? and created_at > ? and ended_at between ? and ? and exit_reason = 'completed'
     and harness in ? and environment_type = 'device' and session_id is not null and compacts is null
     and ((task_id is null and conversation_id is not null) or exists (
       select 1 from tasks where tasks.id = runs.task_id and tasks.archived_at is null
         and tasks.status not in ('done', 'cancelled')))
     and not exists (
       select 1 from conversations where conversations.id = runs.conversation_id
         and conversations.runtime_changed_at >= runs.created_at)
     and not exists (
       select 1 from runs later where later.agent_id = runs.agent_id and later.created_at > runs.created_at
         and (later.task_id = runs.task_id or later.conversation_id = runs.conversation_id))
     and not exists (select 1 from runs done where done.agent_id = runs.agent_id and done.compacts = 1
       and done.parent_run_id = runs.id)
     and (ended_at, id) > (?, ?)
   order by ended_at, id limit ?`,
)

/**
 * The last runs of their tasks and conversations that ended between the two times, were created after `createdSince`, and
 * left a session that will be gone on with and was not made smaller since, those that ended first first. A run that asked a
 * person is not among them: what the person allows is what it asked, to the letter.
 */
export const listIdle = (
  db: Db,
  of: {
    workspaceId: WorkspaceUuid
    createdSince: number
    from: number
    to: number
    harnesses: readonly string[]
    /** The last one of the page before. */
    after: RunRow | null
    limit: number
  },
): Promise<RunRow[]> => {
  const { after } = of
  const place = [after?.endedAt ?? -1, after?.id ?? '', of.limit]
  return idle.list(db, [of.workspaceId, of.createdSince, of.from, of.to, of.harnesses, ...place])
}

const ofAgent = runs.query('where agent_id = ? and compacts = 1 and ended_at is null')

/** Compactions of the agent that have not ended. */
export const listCompacting = (db: Db, agentRef: AgentRef): Promise<RunRow[]> => ofAgent.list(db, [agentRef])

const late = runs.query(
  "where workspace_id = ? and compacts = 1 and ended_at is null and status = 'queued' and created_at < ?",
)

/** Compactions that have waited since before `createdBefore`. */
export const listLateCompactions = (
  db: Db,
  of: { workspaceId: WorkspaceUuid; createdBefore: number },
): Promise<RunRow[]> => late.list(db, [of.workspaceId, of.createdBefore])

/** The most runs that are taken to have ended in one millisecond. */
const mostAtOnce = 1_000

/** Returns whether the run's session is still as the run left it, as `listIdle` says; the row is locked until the transaction ends. */
export async function isStillIdle(db: Db, run: RunRow): Promise<boolean> {
  if ((await runs.first(lockRows(runs.from(db).where({ id: run.id })))) === null) return false
  const found = await listIdle(db, {
    workspaceId: run.workspaceId,
    createdSince: run.createdAt - 1,
    from: run.endedAt ?? 0,
    to: run.endedAt ?? 0,
    harnesses: [run.harness],
    after: null,
    limit: mostAtOnce,
  })
  return found.some(({ id }) => id === run.id)
}
