import { z } from 'zod'
import { json, nullableJson, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/** The route's answer when the change was approved. */
const result = z.object({ status: z.number().int(), body: z.unknown() })
export type ChangeResult = z.infer<typeof result>

/** Writes that an agent requested and a person must approve; the approval has the same id. */
const changes = table('platform_changes', {
  /** `apr_...` */
  id: text,
  workspaceId: text,
  agentId: text,
  runId: text,
  /** The contract's id of the route to call on approval. */
  routeId: text,
  params: json(z.record(z.string(), z.unknown())),
  body: json(z.unknown()),
  status: z.enum(['pending', 'approved', 'rejected', 'expired']),
  result: nullableJson(result),
  createdAt: time,
})
export type PlatformChangeRow = RowOf<typeof changes>

export async function insertPlatformChange(
  db: Db,
  change: Omit<PlatformChangeRow, 'status' | 'result'>,
): Promise<void> {
  await changes.insert(db, { ...change, body: change.body ?? null, status: 'pending' })
}

export async function findPlatformChange(db: Db, workspaceId: string, id: string): Promise<PlatformChangeRow | null> {
  return changes.find(db, { workspaceId, id })
}

/** `bodyBytes`: a longer body (JSON) is not read, and null. */
export async function listPlatformChanges(
  db: Db,
  ids: readonly string[],
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
  change: { id: string; status: 'approved' | 'rejected' | 'expired'; result: ChangeResult | null },
): Promise<boolean> {
  const { id, status, result } = change
  return (await changes.update(db, { id, status: 'pending' }, { status, result })) === 1
}
