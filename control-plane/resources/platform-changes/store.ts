import { z } from 'zod'
import { json, nullableJson, text, time, toJson } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

/** What the route answered when the change was approved. */
const result = z.object({ status: z.number().int(), body: z.unknown() })
export type ChangeResult = z.infer<typeof result>

/** Writes that an agent asked for and a person must approve; the approval with the same id is built on them. */
const row = z
  .object({
    id: text,
    workspace_id: text,
    agent_id: text,
    run_id: text,
    route_id: text,
    params: json(z.record(z.string(), z.unknown())),
    body: json(z.unknown()),
    status: z.enum(['pending', 'approved', 'rejected', 'expired']),
    result: nullableJson(result),
    created_at: time,
  })
  .transform((r) => ({
    /** `apr_...` */
    id: r.id,
    workspaceId: r.workspace_id,
    agentId: r.agent_id,
    runId: r.run_id,
    /** The contract's id of the route to call when it is approved. */
    routeId: r.route_id,
    params: r.params,
    body: r.body,
    status: r.status,
    result: r.result,
    createdAt: r.created_at,
  }))
export type PlatformChangeRow = z.infer<typeof row>

export async function insertPlatformChange(
  db: Db,
  change: Omit<PlatformChangeRow, 'status' | 'result'>,
): Promise<void> {
  await db('platform_changes').insert({
    id: change.id,
    workspace_id: change.workspaceId,
    agent_id: change.agentId,
    run_id: change.runId,
    route_id: change.routeId,
    params: toJson(change.params),
    body: toJson(change.body ?? null),
    status: 'pending',
    created_at: change.createdAt,
  })
}

export async function findPlatformChange(db: Db, workspaceId: string, id: string): Promise<PlatformChangeRow | null> {
  const found: unknown = await db('platform_changes').where({ workspace_id: workspaceId, id }).first()
  return found === undefined ? null : row.parse(found)
}

export async function listPlatformChanges(db: Db, ids: readonly string[]): Promise<PlatformChangeRow[]> {
  if (ids.length === 0) return []
  const rows: unknown[] = await db('platform_changes').whereIn('id', [...ids])
  return rows.map((value) => row.parse(value))
}

/** Closes a change that waits. False when it is closed already. */
export async function closePlatformChange(
  db: Db,
  change: { id: string; status: 'approved' | 'rejected' | 'expired'; result: ChangeResult | null },
): Promise<boolean> {
  const changed = await db('platform_changes')
    .where({ id: change.id, status: 'pending' })
    .update({ status: change.status, result: change.result === null ? null : toJson(change.result) })
  return changed === 1
}
