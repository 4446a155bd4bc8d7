import type { AgentRef, ApprovalId, RunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { clients } from '../../http/implement.ts'
import { json, nullableJson, text, time } from '../../db/columns.ts'
import { agentRef, approvalId, runId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { command } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

/** The route's answer when the change was approved. */
const result = z.object({ status: z.number().int(), body: z.unknown() })
export type ChangeResult = z.infer<typeof result>

/** Writes that an agent requested and a person must approve; the approval has the same id. */
const changes = table(
  'platform_changes',
  {
    /** `apr_...` */
    id: approvalId,
    workspaceId: workspaceUuid,
    agentRef,
    runId,
    /** The contract's id of the route to call on approval. */
    routeId: text,
    params: json(z.record(z.string(), z.unknown())),
    body: json(z.unknown()),
    /** The kind of client that asked, by its own word. */
    source: z.enum(clients),
    status: z.enum(['pending', 'approved', 'rejected', 'expired']),
    result: nullableJson(result),
    /** The run whose prompt told the agent what became of it; null: none has. */
    toldRunId: runId.nullable(),
    createdAt: time,
  },
  { columns: { agentRef: 'agent_id' } },
)
export type PlatformChangeRow = RowOf<typeof changes>

export async function insertPlatformChange(
  db: Db,
  change: Omit<PlatformChangeRow, 'status' | 'result' | 'toldRunId'>,
): Promise<void> {
  await changes.insert(db, { ...change, body: change.body ?? null, status: 'pending' })
}

export async function findPlatformChange(
  db: Db,
  workspaceId: WorkspaceUuid,
  id: ApprovalId,
): Promise<PlatformChangeRow | null> {
  return changes.find(db, { workspaceId, id })
}

/** `bodyBytes`: a longer body (JSON) is not read, and null. */
export async function listPlatformChanges(
  db: Db,
  ids: readonly ApprovalId[],
  { bodyBytes }: { bodyBytes: number },
): Promise<PlatformChangeRow[]> {
  if (ids.length === 0) return []
  const body = db.raw("case when octet_length(body) <= ? then body else 'null' end", [bodyBytes])
  const rows = db('platform_changes')
    .select({ ...changes.fields(), body })
    .whereIn('id', [...ids])
  return changes.list(rows)
}

/** Closes a waiting change. Returns false when it is closed already. */
export async function closePlatformChange(
  db: Db,
  change: { id: ApprovalId; status: 'approved' | 'rejected' | 'expired'; result: ChangeResult | null },
): Promise<boolean> {
  const { id, status, result } = change
  return (await changes.update(db, { id, status: 'pending' }, { status, result })) === 1
}

const { id, routeId, params, status, result: resultColumn } = changes.columns
/** A change without its body, which may be long. */
const decided = table('platform_changes', { id, routeId, params, status, result: resultColumn })
export type DecidedChange = RowOf<typeof decided>

const untold = decided.query(
  "where agent_id = ? and told_run_id is null and status <> 'pending' order by created_at, id limit ?",
)

/** Resolved changes of an agent that no prompt has told it about, oldest first. */
export const listUntold = (db: Db, of: { agentRef: AgentRef; limit: number }): Promise<DecidedChange[]> =>
  untold.list(db, [of.agentRef, of.limit])

const markTold = command('update platform_changes set told_run_id = ? where id in ?')

/** Records that the prompt of this run tells what became of these changes. */
export async function setTold(db: Db, { runId, ids }: { runId: RunId; ids: readonly string[] }): Promise<void> {
  if (ids.length > 0) await markTold(db, [runId, [...ids]])
}

const forgetTold = command('update platform_changes set told_run_id = null where told_run_id = ?')

/** Lets the next run tell what this one, which never began, would have told. */
export async function clearTold(db: Db, runId: RunId): Promise<void> {
  await forgetTold(db, [runId])
}
