import type { RunId } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { findDetails, replaceSpec } from './details-store.ts'
import { command } from '../../db/statement.ts'

const take = command(
  `update runs set harness = fallback_harness, provider_key_id = fallback_key_id, model_id = fallback_model, reasoning_effort = ?,
     fallback_harness = null, fallback_key_id = null, fallback_model = null
   where id = ? and fallback_harness is not null and ended_at is null`,
)

/** The run goes on its fallback harness from now on; nothing happens to one that has none. */
export async function takeFallback(db: Db, runId: RunId): Promise<void> {
  const spec = (await findDetails(db, runId))?.fallbackSpec ?? null
  if (spec === null) return
  if (await take(db, [spec.reasoningEffort, runId])) await replaceSpec(db, runId, spec)
}
